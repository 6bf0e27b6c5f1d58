/** What is measured of each next hop. */
import { describe, expect, it } from 'vitest';
import { createLinks } from '../../src/agent/relays/links.js';
import { relayLimits } from '../../src/agent/relays/limits.js';
import { OuterTransport } from '../../src/gen/svc/control/v1/transport.js';

const origin = (resourceId: string) => ({ resourceType: 'l4_chain', resourceId, resourceName: '', hopIndex: 0 });
const endpoint = { host: '2001:db8::1', port: 443 };

describe('the links of a node', () => {
  it('are one for each resource, endpoint and transport', () => {
    const links = createLinks();
    const one = links.of(origin('c1'), endpoint, 'tcp');
    expect(links.of(origin('c1'), { ...endpoint }, 'tcp')).toBe(one);
    links.of(origin('c1'), endpoint, 'udp');
    links.of(origin('c2'), endpoint, 'tcp');
    expect(links.metrics().map(({ resourceId, peerEndpoint, outer }) => [resourceId, peerEndpoint, outer])).toEqual([
      ['c1', '[2001:db8::1]:443', OuterTransport.TCP],
      ['c1', '[2001:db8::1]:443', OuterTransport.UDP],
      ['c2', '[2001:db8::1]:443', OuterTransport.TCP],
    ]);
  });

  it('have no figures before they are measured, then smoothed ones', () => {
    const links = createLinks();
    const link = links.of(origin('c'), endpoint, 'tcp');
    const figures = (): unknown[] =>
      links.metrics().map(({ rttMs, jitterMs, lossRatio }) => [rttMs, jitterMs, lossRatio])[0]!;
    expect(figures()).toEqual([undefined, undefined, undefined]);
    link.failed();
    expect(figures()).toEqual([undefined, undefined, 1]);
    link.connected(8);
    expect(figures()).toEqual([8, 0, 0.5]);
    link.connected(16);
    // RFC 6298: an eighth of the new round trip, a quarter of its distance.
    expect(figures()).toEqual([9, 2, 1 / 3]);
  });

  it('forget losses after 64 connects', () => {
    const links = createLinks();
    const link = links.of(origin('c'), endpoint, 'tcp');
    link.failed();
    for (let i = 0; i < 64; i += 1) link.connected(1);
    expect(links.metrics()[0]?.lossRatio).toBe(0);
  });

  it('count bytes and sessions, and are forgotten with what dials them once nothing uses them', () => {
    const links = createLinks();
    const link = links.of(origin('c'), endpoint, 'tcp');
    const end = link.meter.begin();
    link.meter.sent(10);
    link.meter.received(20);
    links.keep([]);
    expect(links.metrics()[0]).toMatchObject({ bytesOut: 10n, bytesIn: 20n, activeSessions: 1n });
    end(false);
    links.keep([{ origin: origin('c'), endpoint, transport: 'tcp' }]);
    expect(links.metrics()).toHaveLength(1);
    links.keep([{ origin: origin('c'), endpoint: { ...endpoint, port: 444 }, transport: 'tcp' }]);
    expect(links.metrics()).toEqual([]);
  });

  it('are bounded in number; what is above the bound is relayed and not measured', () => {
    const links = createLinks();
    for (let i = 0; i < relayLimits.links + 10; i += 1) links.of(origin(`c${i}`), endpoint, 'tcp').connected(1);
    expect(links.metrics()).toHaveLength(relayLimits.links);
  });
});
