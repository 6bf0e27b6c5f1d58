/** The RAW UDP relay: sessions, the choice of endpoints, and how sessions end. */
import { afterEach, describe, expect, it } from 'vitest';
import { relayLimits } from '../../src/agent/relays/limits.js';
import { agentRuntime, applied } from '../support/agent-runtime.js';
import { cluster, freePort, snapshot, udpRule } from '../support/snapshots.js';
import { eventually } from '../support/eventually.js';
import { udpPeers } from '../support/udp-peers.js';

const { closers, echo, client, ask } = udpPeers();
const limits = { ...relayLimits };
afterEach(() => void Object.assign(relayLimits, limits));

describe('a RAW UDP relay', () => {
  it('carries datagrams through two hops and keeps clients apart', async () => {
    const target = await echo('t');
    const [first, second] = [await freePort(), await freePort()];
    const gateway = agentRuntime(closers);
    await applied(gateway, 1, {
      udp: [udpRule(first, `127.0.0.1:${second}`), udpRule(second, 'cluster:u')],
      clusters: [cluster('u', [target])],
    });
    const [a, b] = [client(), client()];
    expect(await Promise.all([ask(a, first, 'from a'), ask(b, first, 'from b')])).toEqual(['t:from a', 't:from b']);
    const row = gateway.runtimeListeners().find(({ listenPort }) => listenPort === first);
    expect(row).toMatchObject({ transport: 'udp', state: 'running', activeSessions: 2n });
    expect(Number(row?.bytesIn)).toBeGreaterThanOrEqual(12);
  });

  it('keeps a session at its endpoint and sends new ones to a changed endpoint, or none if disabled', async () => {
    const [one, two, port] = [await echo('one'), await echo('two'), await freePort()];
    const gateway = agentRuntime(closers);
    const rules = { udp: [udpRule(port, 'cluster:u')] };
    await gateway.apply(snapshot(1, { ...rules, clusters: [cluster('u', [one])] }));
    const old = client();
    expect(await ask(old, port, 'x')).toBe('one:x');
    await gateway.apply(snapshot(2, { ...rules, clusters: [cluster('u', [two])] }));
    expect(await ask(client(), port, 'y')).toBe('two:y');
    expect(await ask(old, port, 'z')).toBe('one:z');
    await gateway.apply(snapshot(3, { ...rules, clusters: [cluster('u', [two], false)] }));
    client().send('refused', port, '127.0.0.1');
    await eventually(() => gateway.runtimeListeners()[0]?.errorSessions).toBe(1n);
    expect(await ask(old, port, 'still')).toBe('one:still');
  });

  it('ends a session after a time of silence', async () => {
    Object.assign(relayLimits, { udpIdleMs: 100 });
    const [target, port, gateway] = [await echo('t'), await freePort(), agentRuntime(closers)];
    await applied(gateway, 1, { udp: [udpRule(port, target)] });
    expect(await ask(client(), port, 'x')).toBe('t:x');
    await eventually(() => gateway.runtimeListeners()[0]?.activeSessions).toBe(0n);
    expect(gateway.runtimeListeners()).toMatchObject([{ totalSessions: 1n, errorSessions: 0n }]);
  });

  it('ends a session whose next hop refuses datagrams and begins a new one', async () => {
    const [port, gateway] = [await freePort(), agentRuntime(closers)];
    await applied(gateway, 1, { udp: [udpRule(port, `127.0.0.1:${await freePort()}`)] });
    const socket = client();
    const again = setInterval(() => socket.send('x', port, '127.0.0.1'), 20);
    closers.push(async () => clearInterval(again));
    await eventually(() => gateway.runtimeListeners()[0]?.errorSessions).toBeGreaterThanOrEqual(2n);
  });

  it('counts no request of an upstream for a session that finds no room', async () => {
    Object.assign(relayLimits, { udpFlowsPerListener: 1 });
    const [target, port, gateway] = [await echo('t'), await freePort(), agentRuntime(closers)];
    await applied(gateway, 1, { udp: [udpRule(port, 'cluster:u')], clusters: [cluster('u', [target])] });
    expect(await ask(client(), port, 'x')).toBe('t:x');
    const late = client();
    const again = setInterval(() => late.send('y', port, '127.0.0.1'), 50);
    closers.push(async () => clearInterval(again));
    await eventually(() => gateway.runtimeListeners()[0]?.errorSessions ?? 0n).toBeGreaterThan(0n);
    expect(gateway.report().gateway?.upstreams).toMatchObject([{ cluster: 'u', requests: 1n }]);
  });
});
