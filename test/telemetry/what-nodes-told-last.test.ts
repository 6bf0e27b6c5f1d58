/** Heartbeats and metrics in the read store: batched, newest only, unchanged runtime tables not written again. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ServiceError } from '../../src/kernel/errors.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { openEmbedded } from '../../src/storage/embedded/open-embedded.js';
import type { EmbeddedStores } from '../../src/storage/embedded/open-embedded.js';
import type { Collection, CollectionSpec, Fields, ReadStore } from '../../src/storage/read-store.js';
import type { HeartbeatFacts } from '../../src/telemetry/port.js';
import { createTelemetry } from '../../src/telemetry/telemetry.js';
import { createManualClock } from '../support/manual-clock.js';
import type { ManualClock } from '../support/manual-clock.js';

let folder: string;
let clock: ManualClock;
let stores: EmbeddedStores;
/** Documents put, by collection. */
let puts: Map<string, number>;
let away: boolean;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'telemetry-'));
  clock = createManualClock();
  stores = await openEmbedded({ dataDir: folder, clock, logger: silentLogger });
  puts = new Map();
  away = false;
});
afterEach(async () => {
  await stores.close();
  rmSync(folder, { recursive: true, force: true });
});

const counting = (): ReadStore => ({
  ...stores.readStore,
  async collection<F extends Fields>(spec: CollectionSpec): Promise<Collection<F>> {
    const collection = await stores.readStore.collection<F>(spec);
    return {
      ...collection,
      async set(documents) {
        if (away) throw new ServiceError('unavailable', 'away');
        puts.set(spec.name, (puts.get(spec.name) ?? 0) + documents.length);
        await collection.set(documents);
      },
    };
  },
});
const start = () => createTelemetry({ readStore: counting(), clock, logger: silentLogger });

const heartbeat = (cpu_usage: number, state = 'listening'): HeartbeatFacts => ({
  cpu_usage,
  memory_usage: 0.5,
  uptime_seconds: 10,
  link_metrics: [],
  runtime_listeners: [{ transport: 'tcp', listen_addr: '0.0.0.0', listen_port: 443, state, routes: [], bytes_in: 7 }],
});

describe('a heartbeat', () => {
  it('is told as it came, with the time of its receipt', async () => {
    const telemetry = await start();
    telemetry.heartbeat('n1', heartbeat(0.25));
    await telemetry.flush();
    expect((await telemetry.telemetry(['n1', 'n2'])).get('n1')).toEqual({
      ...heartbeat(0.25),
      last_seen_at: null,
      reported_at: '2025-01-01T00:00:00.000Z',
    });
    expect((await telemetry.telemetry(['n2'])).get('n2')).toEqual({
      last_seen_at: null,
      reported_at: null,
      cpu_usage: null,
      memory_usage: null,
      uptime_seconds: null,
      runtime_listeners: [],
      link_metrics: [],
    });
    await telemetry.close();
  });

  it('with an unchanged runtime table rewrites only its time', async () => {
    const telemetry = await start();
    for (let round = 0; round < 3; round += 1) {
      telemetry.heartbeat('n1', heartbeat(round / 10));
      await telemetry.flush();
      clock.advance(10_000);
    }
    expect(puts.get('node_runtime')).toBe(1);
    expect(puts.get('node_heartbeats')).toBe(3);
    expect((await telemetry.telemetry(['n1'])).get('n1')?.reported_at).toBe('2025-01-01T00:00:20.000Z');
    telemetry.heartbeat('n1', heartbeat(0.3, 'failed'));
    await telemetry.flush();
    expect(puts.get('node_runtime')).toBe(2);
    expect((await telemetry.telemetry(['n1'])).get('n1')?.runtime_listeners[0]?.state).toBe('failed');
    await telemetry.close();
  });

  it('with an empty list means that nothing listens', async () => {
    const telemetry = await start();
    telemetry.heartbeat('n1', heartbeat(0.1));
    telemetry.heartbeat('n1', { ...heartbeat(0.1), runtime_listeners: [] });
    await telemetry.flush();
    expect((await telemetry.telemetry(['n1'])).get('n1')?.runtime_listeners).toEqual([]);
    await telemetry.close();
  });

  it('is written even if unchanged once the node was elsewhere', async () => {
    const [one, two] = [await start(), await start()];
    const facts = { session_id: 's1', instance_id: 'i1', pushed_generation: 0, pushed_at: null };
    one.heartbeat('n1', heartbeat(0.1));
    await one.flush();
    two.heartbeat('n1', heartbeat(0.1, 'failed'));
    await two.flush();
    await one.sessionOpened('n1', facts, 30_000);
    one.heartbeat('n1', heartbeat(0.1));
    await one.flush();
    expect((await one.telemetry(['n1'])).get('n1')?.runtime_listeners[0]?.state).toBe('listening');
    await one.close();
    await two.close();
  });

  it('that came while another of the node waited takes its place', async () => {
    const telemetry = await start();
    for (let round = 0; round < 100; round += 1) telemetry.heartbeat('n1', heartbeat(round / 100));
    await telemetry.flush();
    expect(puts.get('node_heartbeats')).toBe(1);
    expect((await telemetry.telemetry(['n1'])).get('n1')?.cpu_usage).toBe(0.99);
    await telemetry.close();
  });

  it('waits while the read store is away, the newest of each node only', async () => {
    const telemetry = await start();
    away = true;
    telemetry.heartbeat('n1', heartbeat(0.1));
    await expect(telemetry.flush()).rejects.toThrow('away');
    telemetry.heartbeat('n1', heartbeat(0.2));
    away = false;
    await telemetry.flush();
    expect((await telemetry.telemetry(['n1'])).get('n1')?.cpu_usage).toBe(0.2);
    expect(puts.get('node_heartbeats')).toBe(1);
    await telemetry.close();
  });

  it('is durable once telemetry has closed', async () => {
    const telemetry = await start();
    telemetry.heartbeat('n1', heartbeat(0.1));
    await telemetry.close();
    const again = await start();
    expect((await again.telemetry(['n1'])).get('n1')?.cpu_usage).toBe(0.1);
    await again.close();
  });
});

describe('metrics', () => {
  it('keep the last report, counters of 64 bits included', async () => {
    const telemetry = await start();
    telemetry.metrics('n1', { sequence: 3n, connections: { active: 5n } });
    await telemetry.flush();
    const collection = await stores.readStore.collection({ name: 'node_metrics', version: 1, indexes: [] });
    expect((await collection.get('n1'))?.fields).toEqual({
      received_at: '2025-01-01T00:00:00.000Z',
      report: { sequence: 3, connections: { active: 5 } },
    });
    await telemetry.close();
  });
});

describe('a node that is gone', () => {
  it('is forgotten, with what still waited', async () => {
    const telemetry = await start();
    telemetry.heartbeat('n1', heartbeat(0.1));
    await telemetry.flush();
    telemetry.heartbeat('n1', heartbeat(0.2));
    await telemetry.forget(['n1']);
    await telemetry.flush();
    expect((await telemetry.telemetry(['n1'])).get('n1')?.cpu_usage).toBeNull();
    await telemetry.close();
  });
});
