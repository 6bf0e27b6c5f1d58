/** Agents behind a TCP balancer that sends PROXY headers: whose address a connection has, and which are closed. */
import { status } from '@grpc/grpc-js';
import { afterEach, describe, expect, test } from 'vitest';
import { issueControlPsk } from '../../src/security/psk.js';
import { h2cPreface } from '../../src/transport/listener/sniff.js';
import { startAgentFixture } from '../support/agent-fixture.js';
import { startBalancer } from '../support/balancer.js';
import { eventually } from '../support/eventually.js';
import { reading, startListenerFixture, type ListenerFixture } from '../support/listener-fixture.js';
import { extension, localProxyHeader, proxyHeader, rawProxyHeader } from '../support/proxy-header.js';
import { createRawAgent, isRefused } from '../support/raw-agent.js';

describe('the listener', () => {
  let fixture: ListenerFixture;

  const start = async (proxyFrom = ['192.0.2.0/24', '127.0.0.0/8']): Promise<ListenerFixture> =>
    (fixture = await startListenerFixture({ proxyFrom }));
  afterEach(() => fixture.close());

  test.each([
    ['an IPv4 client', proxyHeader('198.51.100.7'), '198.51.100.7'],
    ['an IPv6 client', proxyHeader('2001:DB8::0:7'), '2001:db8::7'],
    ['a client with extensions', proxyHeader('198.51.100.8', 1, extension(3, Buffer.alloc(4))), '198.51.100.8'],
    ['the balancer itself (LOCAL)', localProxyHeader(extension(4, Buffer.alloc(100))), '127.0.0.1'],
    ['nobody (UNSPEC)', rawProxyHeader(0x21, 0x00, Buffer.alloc(0)), '127.0.0.1'],
  ])('takes the address from a header that names %s, and hands over what follows it', async (_, header, address) => {
    const { accepted, dial } = await start();
    await dial(Buffer.concat([header, h2cPreface, Buffer.from('frames')]));
    await eventually(() => accepted.length).toBe(1);
    expect(accepted[0]!.remoteAddress).toBe(address);
    const read = reading(accepted[0]!);
    await eventually(() => read.text).toBe(Buffer.concat([h2cPreface, Buffer.from('frames')]).toString('latin1'));
  });

  test('takes the header in pieces of any size, one byte at a time included', async () => {
    const { accepted, dial } = await start();
    const bytes = Buffer.concat([proxyHeader('2001:db8::9', 1, extension(5, Buffer.alloc(20))), h2cPreface]);
    for (const size of [1, 7, 15, 16, 17, 51, 60]) {
      const socket = await dial();
      for (let at = 0; at < bytes.length; at += size) {
        socket.write(bytes.subarray(at, at + size));
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
    await eventually(() => accepted.length).toBe(7);
    expect(new Set(accepted.map(({ remoteAddress }) => remoteAddress))).toEqual(new Set(['2001:db8::9']));
  });

  test('closes a connection of a balancer without a header, with a malformed one, and with one that is cut off', async () => {
    const { accepted, clock, dial, listener, refusals } = await start();
    const header = proxyHeader('198.51.100.7');
    const sockets = [
      await dial(h2cPreface),
      await dial(rawProxyHeader(0x21, 0x12, Buffer.alloc(12))),
      await dial(header.subarray(0, 20)),
      await dial(Buffer.concat([header, Buffer.from('GET /')])),
    ];
    await eventually(() => listener.stats().open.sniffing).toBe(1);
    clock.advance(5_001);
    await eventually(() => sockets.map((socket) => socket.closed)).toEqual([true, true, true, true]);
    expect(accepted).toEqual([]);
    expect(listener.stats()).toMatchObject({ closed: { no_proxy_header: 2, silent: 1, foreign: 1 } });
    expect(refusals).toContainEqual({ reason: 'connection_no_proxy_header', address: '127.0.0.1' });
  });

  test('takes a header from anywhere else for a wrong first byte, and the preface alone for an agent', async () => {
    const { accepted, dial, listener } = await start(['192.0.2.0/24', '2001:db8::/32']);
    const socket = await dial(Buffer.concat([proxyHeader('198.51.100.7'), h2cPreface]));
    await eventually(() => socket.closed).toBe(true);
    await dial(h2cPreface);
    await eventually(() => accepted.length).toBe(1);
    expect(accepted[0]!.remoteAddress).toBe('127.0.0.1');
    expect(listener.stats()).toMatchObject({ closed: { foreign: 1, no_proxy_header: 0 } });
  });
});

test('failures of one client do not spend the budget of another behind the same balancer', async () => {
  const fixture = await startAgentFixture({
    proxyFrom: ['127.0.0.1'],
    admissionDelayMs: 50,
    failuresPerAddress: { perSecond: 0.001, burst: 2 },
  });
  const agents: { disconnect(): void }[] = [];
  const balancers: { close(): Promise<void> }[] = [];
  const agentFrom = async (address: string, nodeId: string, psk: string) => {
    const balancer = await startBalancer(() => [fixture.port], { clientAddress: () => address });
    balancers.push(balancer);
    const agent = createRawAgent({ host: '127.0.0.1', port: balancer.port, clock: fixture.clock }, nodeId, psk);
    agents.push(agent);
    return agent;
  };
  try {
    const { controlPsk } = issueControlPsk(fixture.servicePublic);
    const attacker = await agentFrom('198.51.100.66', 'node-1', controlPsk);
    for (let failure = 0; failure < 2; failure += 1) {
      expect(await attacker.open()).toMatchObject({ code: status.UNAUTHENTICATED });
    }
    expect(await attacker.open()).toMatchObject({ code: status.RESOURCE_EXHAUSTED });
    const good = await agentFrom('198.51.100.7', 'node-1', await fixture.issue('node-1'));
    expect(isRefused(await good.open())).toBe(false);
  } finally {
    for (const agent of agents) agent.disconnect();
    for (const balancer of balancers) await balancer.close();
    await fixture.close();
  }
});
