/** Fold checkpoints in EventStoreDB: bounded, whole or not there, and out of the way of the service's own streams. */
import { randomBytes } from 'node:crypto';
import { afterEach, describe, expect, it } from 'vitest';
import type { FoldCheckpoint } from '../../../src/storage/event-store.js';
import { foldStream } from '../../../src/storage/eventstoredb/fold-checkpoints.js';
import { openHouse, takeUntil, type House } from './house.js';
import { tuning } from '../../../src/storage/eventstoredb/tuning.js';

const checkpoint = (size: number, revision: number): FoldCheckpoint => ({
  foldVersion: 1,
  revision,
  position: revision * 10,
  sha256: 'cd'.repeat(32),
  bytes: new Uint8Array(randomBytes(size)),
});
const { foldChunkBytes } = tuning;

describe('fold checkpoints in EventStoreDB', () => {
  let house: House;
  const stream = foldStream('svc-fleet');
  const events = () => house.server.log.stream(stream)?.events ?? [];
  afterEach(async () => {
    await house.close();
  });

  it('are stored as bytes in chunks, and the stream keeps a bounded number of them', async () => {
    house = await openHouse();
    const saved = checkpoint(foldChunkBytes * 3 + 17, 7);
    for (let round = 0; round < 4; round += 1)
      await house.store.saveFoldCheckpoint('svc-fleet', { ...saved, revision: round });
    await house.store.saveFoldCheckpoint('svc-fleet', saved);
    const loaded = await house.store.loadFoldCheckpoint('svc-fleet');
    expect(loaded?.revision).toBe(7);
    expect(Buffer.compare(loaded!.bytes, saved.bytes)).toBe(0);
    const chunks = events().filter(({ isJson }) => !isJson);
    expect(chunks.every(({ data }) => data.length <= foldChunkBytes)).toBe(true);
    const found = house.server.log.stream(stream)!;
    expect(found.events.filter((event) => house.server.log.isVisible(event, found.limits)).length).toBeLessThanOrEqual(
      15,
    );
  });

  it('stay the old one while a new one is not finished', async () => {
    house = await openHouse();
    const old = checkpoint(foldChunkBytes + 1, 1);
    await house.store.saveFoldCheckpoint('svc-fleet', old);
    // The manifest of the new one never gets through.
    let appends = 0;
    house.server.faults.choose = () => ((appends += 1) > 3 ? { kind: 'deadline' } : undefined);
    await expect(house.store.saveFoldCheckpoint('svc-fleet', checkpoint(foldChunkBytes * 4, 2))).rejects.toMatchObject({
      code: 'unavailable',
    });
    house.server.faults.choose = undefined;
    expect((await house.store.loadFoldCheckpoint('svc-fleet'))?.revision).toBe(1);
    await house.store.saveFoldCheckpoint('svc-fleet', checkpoint(3, 3));
    expect((await house.store.loadFoldCheckpoint('svc-fleet'))?.revision).toBe(3);
  });

  it('that are not whole any more are not there, and that is said', async () => {
    house = await openHouse();
    await house.store.saveFoldCheckpoint('svc-fleet', checkpoint(foldChunkBytes * 3, 1));
    await house.store.setRetention(stream, { maxCount: 2 });
    expect(await house.store.loadFoldCheckpoint('svc-fleet')).toBeUndefined();
    expect(house.lines.some(({ level, message }) => level === 'warn' && message.includes('not whole'))).toBe(true);
  });

  it('survive repeated and lost chunks of a bad connection', async () => {
    house = await openHouse();
    const saved = checkpoint(foldChunkBytes * 5, 9);
    house.server.faults.choose = undefined;
    house.server.faults.appends = [
      { kind: 'cut', written: true },
      { kind: 'cut', written: false },
      { kind: 'commit_timeout', laterMs: 5 },
      { kind: 'not_ready' },
      { kind: 'deadline' },
    ];
    await house.store.saveFoldCheckpoint('svc-fleet', saved);
    const loaded = await house.store.loadFoldCheckpoint('svc-fleet');
    expect(Buffer.compare(loaded!.bytes, saved.bytes)).toBe(0);
  });

  it('are not delivered to those who follow the streams of the service', async () => {
    house = await openHouse();
    await house.store.saveFoldCheckpoint('svc-fleet', checkpoint(100, 1));
    const stop = new AbortController();
    const items = house.store.subscribe({ prefix: 'svc-', after: 'start', signal: stop.signal });
    const taken = await takeUntil(items, ({ kind }) => kind === 'caught_up');
    expect(taken.filter(({ kind }) => kind === 'events')).toEqual([]);
  });
});
