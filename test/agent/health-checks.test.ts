/** Upstream clusters are checked without traffic, at the interval of the snapshot. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { expect, it } from 'vitest';
import type { Gateway } from '../../src/agent/gateway.js';
import { createSamples } from '../../src/agent/relays/meters.js';
import { createUpstreams } from '../../src/agent/relays/upstreams.js';
import type { UpstreamCluster } from '../../src/gen/svc/control/v1/gateway.js';
import { closersAfterEach } from '../support/closers.js';
import { agentRuntime, applied } from '../support/agent-runtime.js';
import { createCertificate } from '../support/certificate.js';
import { eventually } from '../support/eventually.js';
import { cluster, freePort, overTls, tcpRule, udpRule } from '../support/snapshots.js';
import { pinOf } from '../support/tls-client.js';

const closers = closersAfterEach();

const everyMs = 20;

const checked = (name: string, port: number, change: Partial<UpstreamCluster> = {}): UpstreamCluster => ({
  ...cluster(name, [`127.0.0.1:${port}`]),
  healthCheck: { intervalMs: everyMs, path: '' },
  ...change,
});

/** A server that counts its connections. */
async function listening(
  server: Server,
  port: number,
): Promise<{ readonly connections: () => number; close(): Promise<void> }> {
  let connections = 0;
  server.on('connection', (socket) => {
    connections += 1;
    socket.on('error', () => undefined);
    socket.resume();
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const close = async (): Promise<void> => {
    if (!server.listening) return;
    server.close();
    await once(server, 'close');
  };
  closers.push(close);
  return { connections: () => connections, close };
}

const health = (gateway: Gateway) =>
  Object.fromEntries((gateway.report().gateway?.upstreams ?? []).map(({ cluster: name, healthy }) => [name, healthy]));

it('reports a dead upstream as unhealthy and one that has come back as healthy, and counts neither as a request', async () => {
  const [entry, port] = [await freePort(), await freePort()];
  const gateway = agentRuntime(closers);
  await applied(gateway, 1, { tcp: [tcpRule(entry, 'cluster:web')], clusters: [checked('web', port)] });
  await eventually(() => health(gateway)).toEqual({ web: false });
  const server = await listening(createServer(), port);
  await eventually(() => health(gateway)).toEqual({ web: true });
  await server.close();
  await eventually(() => health(gateway)).toEqual({ web: false });
  expect(gateway.report().gateway).toMatchObject({ requests: 0n, upstreams: [{ requests: 0n, errors: 0n }] });
});

it('asks for the pinned key where the rule does', async () => {
  const [right, other] = [createCertificate('right'), createCertificate('other')];
  const [entry, port] = [await freePort(), await freePort()];
  await listening(createTlsServer({ cert: right.cert, key: right.key }), port);
  const gateway = agentRuntime(closers);
  const pinned = (generation: number, pin: string): Promise<void> =>
    applied(gateway, generation, {
      tcp: [tcpRule(entry, 'cluster:web', overTls('cluster:web', [pin], 'web.example'))],
      clusters: [checked('web', port)],
    });
  await pinned(1, pinOf(other));
  await eventually(() => health(gateway)).toEqual({ web: false });
  await pinned(2, pinOf(right));
  await eventually(() => health(gateway)).toEqual({ web: true });
});

it('leaves alone what is not asked for, is disabled, is dialled by UDP only, or has left the snapshot', async () => {
  const ports = await Promise.all([freePort(), freePort(), freePort(), freePort(), freePort()]);
  const servers = await Promise.all(ports.map((port) => listening(createServer(), port)));
  const [unasked, disabled, udp, gone, stays] = ports as [number, number, number, number, number];
  const counts = (): readonly number[] => servers.map((server) => server.connections());
  const gateway = agentRuntime(closers);
  const entries = await Promise.all(['a', 'b', 'c', 'd'].map(() => freePort()));
  const tcp = ['unasked', 'disabled', 'gone', 'stays'].map((name, at) => tcpRule(entries[at]!, `cluster:${name}`));
  const rules = { tcp, udp: [udpRule(await freePort(), 'cluster:udp')] };
  const clusters = [
    checked('unasked', unasked, { healthCheck: undefined }),
    checked('disabled', disabled, { enabled: false }),
    checked('udp', udp),
    checked('stays', stays),
  ];
  await applied(gateway, 1, { ...rules, clusters: [...clusters, checked('gone', gone)] });
  await eventually(() =>
    counts()
      .slice(3)
      .every((count) => count > 1),
  ).toBe(true);
  await applied(gateway, 2, { ...rules, tcp: tcp.filter((_, at) => at !== 2), clusters });
  const [goneBefore = 0, staysBefore = 0] = counts().slice(3);
  await eventually(() => counts()[4]! > staysBefore + 5).toBe(true);
  expect(counts().slice(0, 3)).toEqual([0, 0, 0]);
  // One may have been under way.
  expect(counts()[3]! - goneBefore).toBeLessThanOrEqual(1);
});

it('says nothing of an upstream before its first check, and checks it anew at once when it moves', async () => {
  const [entry, port, dead] = [await freePort(), await freePort(), await freePort()];
  await listening(createServer(), port);
  const gateway = agentRuntime(closers);
  const at = (generation: number, where: number): Promise<void> =>
    applied(gateway, generation, {
      tcp: [tcpRule(entry, 'cluster:web')],
      // Only a check at once can come in time.
      clusters: [checked('web', where, { healthCheck: { intervalMs: 3_600_000, path: '' } })],
    });
  await at(1, port);
  expect(health(gateway)).toEqual({});
  await eventually(() => health(gateway)).toEqual({ web: true });
  await at(2, dead);
  expect(health(gateway)).toEqual({});
  await eventually(() => health(gateway)).toEqual({ web: false });
});

it('does not take a connection to where an upstream was for a word on where it is', () => {
  const upstreams = createUpstreams(createSamples(1), () => undefined);
  const at = (port: number) =>
    new Map([['web', { name: 'web', endpoints: [{ host: '127.0.0.1', port }], enabled: true }]]);
  const origin = { resourceType: 'l4_chain', resourceId: 'c', resourceName: 'c', hopIndex: 0 };
  const dialled = () => {
    const picked = upstreams.pick({ origin, next: { kind: 'cluster', name: 'web' }, security: { kind: 'raw' } });
    if (picked === undefined) throw new Error('refused');
    return picked;
  };
  upstreams.set(at(1));
  const early = dialled();
  upstreams.set(at(2));
  early.settled(undefined);
  expect(upstreams.metrics()).toEqual([]);
  dialled().settled(1);
  expect(upstreams.metrics()).toMatchObject([{ requests: 2n, errors: 1n, healthy: true }]);
});
