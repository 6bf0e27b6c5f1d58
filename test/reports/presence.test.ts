/**
 * Who is online, as leases on the embedded store: opened, renewed, taken over, ended by time
 * (`docs/contract/agent-protocol.md#heartbeats-commands-metrics`).
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ServiceError } from '../../src/kernel/errors.js';
import { silentLogger } from '../../src/kernel/logger.js';
import type { Leases, ReadStore } from '../../src/storage/read-store.js';
import type { PresenceFacts } from '../../src/reports/port.js';
import { createTelemetry } from '../../src/reports/telemetry.js';
import type { TelemetryService } from '../../src/reports/telemetry.js';
import { createManualClock } from '../support/manual-clock.js';
import type { ManualClock } from '../support/manual-clock.js';
import { openTemporaryStores } from '../support/temporary-stores.js';
import type { TemporaryStores } from '../support/temporary-stores.js';

let clock: ManualClock;
let stores: TemporaryStores;
let open: TelemetryService[];

beforeEach(async () => {
  clock = createManualClock();
  stores = await openTemporaryStores(clock);
  open = [];
});
afterEach(async () => {
  for (const telemetry of open) await telemetry.close();
  await stores.close();
});

const start = async (readStore: ReadStore = stores.readStore): Promise<TelemetryService> => {
  const telemetry = await createTelemetry({ readStore, clock, logger: silentLogger });
  open.push(telemetry);
  return telemetry;
};
const facts = (session_id: string, pushed_generation = 0): PresenceFacts => ({
  session_id,
  instance_id: 'i1',
  pushed_generation,
  pushed_at: null,
});
const withLeases = (leases: Partial<Leases>): ReadStore => ({
  ...stores.readStore,
  leases: { ...stores.readStore.leases, ...leases },
});

describe('a node', () => {
  it('is online from the opening of its session until it ends', async () => {
    const telemetry = await start();
    await telemetry.sessionOpened('n1', facts('s1'), 30_000);
    expect([...(await telemetry.online())]).toEqual([['n1', facts('s1')]]);
    await telemetry.sessionEnded('n1', 's1');
    expect(await telemetry.presence('n1')).toBeUndefined();
  });

  it('is online on the instance of its session before the lease is taken, and on every other one from then on', async () => {
    let take: (() => void) | undefined;
    const held = new Promise<void>((resolve) => (take = resolve));
    const telemetry = await start(
      withLeases({ take: (kind, claim) => held.then(() => stores.readStore.leases.take(kind, claim)) }),
    );
    const other = await start();
    const opening = telemetry.sessionOpened('n1', facts('s1'), 30_000);
    expect(await telemetry.presence('n1')).toEqual(facts('s1'));
    expect([...(await telemetry.online())]).toEqual([['n1', facts('s1')]]);
    expect(await other.presence('n1')).toBeUndefined();
    take?.();
    await opening;
    expect(await other.presence('n1')).toEqual(facts('s1'));
  });

  it('goes offline when its lease is not renewed, as after a kill', async () => {
    const [telemetry, other] = [await start(), await start()];
    await telemetry.sessionOpened('n1', facts('s1'), 30_000);
    clock.advance(29_999);
    expect(await other.presence('n1')).toEqual(facts('s1'));
    clock.advance(1);
    expect((await other.online()).size).toBe(0);
  });

  it('stays online with any sign of life, and shows the newest facts', async () => {
    const [telemetry, other] = [await start(), await start()];
    await telemetry.sessionOpened('n1', facts('s1'), 30_000);
    clock.advance(20_000);
    telemetry.alive('n1', facts('s1', 7), 30_000);
    await telemetry.flush();
    clock.advance(20_000);
    expect(await other.presence('n1')).toEqual(facts('s1', 7));
    expect((await telemetry.vitals(['n1'])).get('n1')?.last_seen_at).toBe('2025-01-01T00:00:20.000Z');
  });

  it('stays online when a session ends that is no longer its live one', async () => {
    const telemetry = await start();
    await telemetry.sessionOpened('n1', facts('s1'), 30_000);
    await telemetry.sessionOpened('n1', facts('s2'), 30_000);
    await telemetry.sessionEnded('n1', 's1');
    expect(await telemetry.presence('n1')).toEqual(facts('s2'));
  });
});

describe('a session', () => {
  it('is reported as lost once, at its next renewal, after another instance has taken the node over', async () => {
    const [one, two] = [await start(), await start()];
    const lost: string[] = [];
    one.onLost((nodeId, sessionId) => lost.push(`${nodeId} ${sessionId}`));
    await one.sessionOpened('n1', facts('s1'), 30_000);
    await two.sessionOpened('n1', facts('s2'), 30_000);
    clock.advance(1_000);
    one.alive('n1', facts('s1'), 30_000);
    await one.flush();
    one.alive('n1', facts('s1'), 30_000);
    await one.flush();
    expect(lost).toEqual(['n1 s1']);
    expect(await one.presence('n1')).toEqual(facts('s2'));
  });

  it('is reported as lost when its successor is on the same instance; the successor is not', async () => {
    const telemetry = await start();
    const lost: string[] = [];
    telemetry.onLost((_nodeId, sessionId) => lost.push(sessionId));
    await telemetry.sessionOpened('n1', facts('s1'), 30_000);
    await telemetry.sessionOpened('n1', facts('s2'), 30_000);
    clock.advance(1_000);
    telemetry.alive('n1', facts('s1'), 30_000);
    telemetry.alive('n1', facts('s2'), 30_000);
    await telemetry.flush();
    expect(lost).toEqual(['s1']);
  });

  it('takes its lease again when that is missing, as after a restore', async () => {
    const telemetry = await start();
    const lost: string[] = [];
    telemetry.onLost((_nodeId, sessionId) => lost.push(sessionId));
    await telemetry.sessionOpened('n1', facts('s1'), 30_000);
    await stores.readStore.leases.release('presence', 'n1', 's1');
    clock.advance(1_000);
    telemetry.alive('n1', facts('s1'), 30_000);
    await telemetry.flush();
    expect(lost).toEqual([]);
    expect(await (await start()).presence('n1')).toEqual(facts('s1'));
  });

  it('that has ended stays ended after a late sign of life', async () => {
    const telemetry = await start();
    await telemetry.sessionOpened('n1', facts('s1'), 30_000);
    clock.advance(1_000);
    telemetry.alive('n1', facts('s1'), 30_000);
    await telemetry.sessionEnded('n1', 's1');
    telemetry.alive('n1', facts('s1'), 30_000);
    await telemetry.flush();
    expect(await telemetry.presence('n1')).toBeUndefined();
  });
});

describe('while the read store is away', () => {
  const away = (): Promise<never> => Promise.reject(new ServiceError('unavailable', 'away'));

  it('a session cannot be opened, as it would not become the live one', async () => {
    const telemetry = await start(withLeases({ take: away }));
    await expect(telemetry.sessionOpened('n1', facts('s1'), 30_000)).rejects.toThrow('away');
  });

  it('renewals wait, and the newest is written once the store is back', async () => {
    let failing = true;
    const telemetry = await start(
      withLeases({ renew: (kind, claims) => (failing ? away() : stores.readStore.leases.renew(kind, claims)) }),
    );
    await telemetry.sessionOpened('n1', facts('s1'), 30_000);
    telemetry.alive('n1', facts('s1', 1), 30_000);
    await expect(telemetry.flush()).rejects.toThrow('away');
    telemetry.alive('n1', facts('s1', 2), 30_000);
    failing = false;
    await telemetry.flush();
    expect(await (await start()).presence('n1')).toEqual(facts('s1', 2));
  });

  it('a session ends without an error, and its lease is released later', async () => {
    let failing = true;
    const telemetry = await start(
      withLeases({
        release: (kind, name, holder) => (failing ? away() : stores.readStore.leases.release(kind, name, holder)),
      }),
    );
    await telemetry.sessionOpened('n1', facts('s1'), 30_000);
    await telemetry.sessionEnded('n1', 's1');
    expect(await telemetry.presence('n1')).toEqual(facts('s1'));
    failing = false;
    await telemetry.flush();
    expect(await telemetry.presence('n1')).toBeUndefined();
  });
});
