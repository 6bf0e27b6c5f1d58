/** Fold checkpoints in EventStoreDB: bounded, complete or absent, and apart from the service's own streams. */
import { createHash, randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { FoldCheckpoint } from '../../../src/storage/event-store.js';
import { foldStream } from '../../../src/storage/eventstoredb/fold-checkpoints.js';
import { impatient, openFixture, takeUntil, type Fixture } from './fixture.js';
import { tuning } from '../../../src/storage/eventstoredb/tuning.js';

function checkpoint(size: number, revision: number): FoldCheckpoint {
  const bytes = new Uint8Array(randomBytes(size));
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  return { foldVersion: 1, revision, position: revision * 10, sha256, bytes };
}
const { foldChunkBytes } = tuning;

describe('fold checkpoints in EventStoreDB', () => {
  let fixture: Fixture;
  const stream = foldStream('svc-fleet');
  const events = () => fixture.server.log.stream(stream)?.events ?? [];
  beforeEach(async () => {
    fixture = await openFixture();
  });
  afterEach(() => fixture.close());

  it('are stored in chunks of bytes, and their stream is bounded', async () => {
    const saved = checkpoint(foldChunkBytes * 3 + 17, 7);
    for (let round = 0; round < 4; round += 1)
      await fixture.store.saveFoldCheckpoint('svc-fleet', { ...saved, revision: round });
    await fixture.store.saveFoldCheckpoint('svc-fleet', saved);
    const loaded = await fixture.store.loadFoldCheckpoint('svc-fleet');
    expect(loaded?.revision).toBe(7);
    expect(Buffer.compare(loaded!.bytes, saved.bytes)).toBe(0);
    const chunks = events().filter(({ isJson }) => !isJson);
    expect(chunks.every(({ data }) => data.length <= foldChunkBytes)).toBe(true);
    const stored = fixture.server.log.stream(stream)!;
    expect(
      stored.events.filter((event) => fixture.server.log.isVisible(event, stored.limits)).length,
    ).toBeLessThanOrEqual(15);
  });

  it('are the old ones while a new one is incomplete', async () => {
    const old = checkpoint(foldChunkBytes + 1, 1);
    await fixture.store.saveFoldCheckpoint('svc-fleet', old);
    // The manifest of the new checkpoint is never written.
    let appends = 0;
    fixture.server.faults.choose = () => ((appends += 1) > 3 ? { kind: 'deadline' } : undefined);
    await expect(
      fixture.store.saveFoldCheckpoint('svc-fleet', checkpoint(foldChunkBytes * 4, 2)),
    ).rejects.toMatchObject({
      code: 'unavailable',
    });
    fixture.server.faults.choose = undefined;
    expect((await fixture.store.loadFoldCheckpoint('svc-fleet'))?.revision).toBe(1);
    await fixture.store.saveFoldCheckpoint('svc-fleet', checkpoint(3, 3));
    expect((await fixture.store.loadFoldCheckpoint('svc-fleet'))?.revision).toBe(3);
  });

  it('are the old ones when saving one that is much larger was interrupted again and again', async () => {
    await fixture.close();
    fixture = await openFixture(undefined, impatient);
    await fixture.store.saveFoldCheckpoint('svc-fleet', checkpoint(100, 1));
    for (let round = 0; round < 2; round += 1) {
      let appends = 0;
      fixture.server.faults.choose = () => ((appends += 1) > 9 ? { kind: 'deadline' } : undefined);
      const larger = fixture.store.saveFoldCheckpoint('svc-fleet', checkpoint(foldChunkBytes * 11, 2));
      await expect(larger).rejects.toMatchObject({ code: 'unavailable' });
      fixture.server.faults.choose = undefined;
      expect((await fixture.store.loadFoldCheckpoint('svc-fleet'))?.revision).toBe(1);
    }
    await fixture.store.saveFoldCheckpoint('svc-fleet', checkpoint(foldChunkBytes * 11, 2));
    expect((await fixture.store.loadFoldCheckpoint('svc-fleet'))?.revision).toBe(2);
  });

  it('are ignored with a warning when incomplete', async () => {
    await fixture.store.saveFoldCheckpoint('svc-fleet', checkpoint(foldChunkBytes * 3, 1));
    await fixture.store.setRetention(stream, { maxCount: 2 });
    expect(await fixture.store.loadFoldCheckpoint('svc-fleet')).toBeUndefined();
    expect(fixture.lines.some(({ level, message }) => level === 'warn' && message.includes('incomplete'))).toBe(true);
  });

  it('survive repeated and lost chunks on a bad connection', async () => {
    const saved = checkpoint(foldChunkBytes * 5, 9);
    fixture.server.faults.appends = [
      { kind: 'cut', written: true },
      { kind: 'cut', written: false },
      { kind: 'commit_timeout', laterMs: 5 },
      { kind: 'not_ready' },
      { kind: 'deadline' },
    ];
    await fixture.store.saveFoldCheckpoint('svc-fleet', saved);
    const loaded = await fixture.store.loadFoldCheckpoint('svc-fleet');
    expect(Buffer.compare(loaded!.bytes, saved.bytes)).toBe(0);
  });

  it("are not delivered to subscriptions of the service's streams", async () => {
    await fixture.store.saveFoldCheckpoint('svc-fleet', checkpoint(100, 1));
    const stop = new AbortController();
    const items = fixture.store.subscribe({
      streams: ['svc-a', 'svc-b', 'svc-c'],
      after: 'start',
      signal: stop.signal,
    });
    const taken = await takeUntil(items, ({ kind }) => kind === 'caught_up');
    expect(taken.filter(({ kind }) => kind === 'events')).toEqual([]);
  });
});
