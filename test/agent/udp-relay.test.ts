/** The RAW UDP relay: sessions, the choice of endpoints, and how sessions end. */
import { describe, expect, it } from 'vitest';
import { createPins } from '../../src/agent/relays/pins.js';
import { createRealityTargets } from '../../src/agent/relays/reality-targets.js';
import { createMeter, createSamples } from '../../src/agent/relays/meters.js';
import { createLinks } from '../../src/agent/relays/links.js';
import type { RelayListener } from '../../src/agent/relays/relay.js';
import { createRuntime } from '../../src/agent/runtime.js';
import { openUdpListener } from '../../src/agent/relays/udp-listener.js';
import { createUpstreams } from '../../src/agent/relays/upstreams.js';
import { systemClock } from '../../src/kernel/clock.js';
import { createSampledLog } from '../../src/kernel/sampled-log.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { cluster, freePort, snapshot, udpRule } from '../support/snapshots.js';
import { eventually } from '../support/eventually.js';
import { udpPeers } from '../support/udp-peers.js';

const { closers, echo, client, ask } = udpPeers();

describe('a RAW UDP relay', () => {
  it('carries datagrams through two hops and keeps clients apart', async () => {
    const target = await echo('t');
    const [first, second] = [await freePort(), await freePort()];
    const gateway = createRuntime({ rejectUnsupported: true, logger: silentLogger, clock: systemClock });
    closers.push(() => gateway.close());
    const report = await gateway.apply(
      snapshot(1, {
        udp: [udpRule(first, `127.0.0.1:${second}`), udpRule(second, 'cluster:u')],
        clusters: [cluster('u', [target])],
      }),
    );
    expect(report?.errors).toEqual([]);
    const [a, b] = [client(), client()];
    expect(await Promise.all([ask(a, first, 'from a'), ask(b, first, 'from b')])).toEqual(['t:from a', 't:from b']);
    const row = gateway.runtimeListeners().find(({ listenPort }) => listenPort === first);
    expect(row).toMatchObject({ transport: 'udp', state: 'running', activeSessions: 2n });
    expect(Number(row?.bytesIn)).toBeGreaterThanOrEqual(12);
  });

  it('keeps a session at its endpoint and sends new ones to a changed endpoint, or none if disabled', async () => {
    const [one, two, port] = [await echo('one'), await echo('two'), await freePort()];
    const gateway = createRuntime({ rejectUnsupported: true, logger: silentLogger, clock: systemClock });
    closers.push(() => gateway.close());
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
    const target = await echo('t');
    const { listener, port } = await listenerTo(target, 100);
    expect(await ask(client(), port, 'x')).toBe('t:x');
    await eventually(() => listener.meter.values.activeSessions).toBe(0);
    expect(listener.meter.values).toMatchObject({ totalSessions: 1, errorSessions: 0 });
  });

  it('ends a session whose next hop refuses datagrams and begins a new one', async () => {
    const { listener, port } = await listenerTo(`127.0.0.1:${await freePort()}`, 60_000);
    const socket = client();
    const again = setInterval(() => socket.send('x', port, '127.0.0.1'), 20);
    await eventually(() => listener.meter.values.errorSessions).toBeGreaterThanOrEqual(2);
    clearInterval(again);
  });
});

async function listenerTo(target: string, idleMs: number): Promise<{ listener: RelayListener; port: number }> {
  const port = await freePort();
  const upstreams = createUpstreams(createSamples(16), () => undefined);
  const dependencies = {
    upstreams,
    links: createLinks(),
    pins: createPins(),
    targets: createRealityTargets({ clock: systemClock, logger: silentLogger, changed: () => undefined }),
    clock: systemClock,
    logger: silentLogger,
    totals: createMeter(),
    refusals: createSampledLog({ write: () => undefined, clock: systemClock }),
  };
  const listener = await openUdpListener('127.0.0.1', port, dependencies, { idleMs });
  closers.push(() => listener.close(0));
  const [host = '', targetPort] = target.split(':');
  const fallback = {
    origin: { resourceType: 'l4_chain', resourceId: 'c', resourceName: 'c', hopIndex: 0 },
    next: { kind: 'endpoint', endpoint: { host, port: Number(targetPort) } },
    security: { kind: 'raw' },
  } as const;
  listener.route({ enc: [], fallback, rawFirst: false });
  return { listener, port };
}
