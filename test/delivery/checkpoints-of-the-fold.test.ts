/** When checkpoints of the fold are written, and which are taken at a start. */
import { createHash } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import { createCheckpointWriter } from '../../src/projections/checkpoints.js';
import { loadFleet, saveFleet } from '../../src/projections/fleet/fold-checkpoint.js';
import { foldVersion } from '../../src/domain/fleet/checkpoint.js';
import { emptyFleet, type Fleet } from '../../src/domain/fleet/fleet.js';
import { silentLogger } from '../../src/kernel/logger.js';
import type { RecordedEvent } from '../../src/kernel/event.js';
import type { EventStore, FoldCheckpoint } from '../../src/storage/event-store.js';

/** A seal that anyone can compute. */
const logChain = { seal: (text: string): string => createHash('md5').update(text).digest('hex') };
let warnings: string[];
const logger = { ...silentLogger, warn: (fields: object) => void warnings.push(JSON.stringify(fields)) };
beforeEach(() => {
  warnings = [];
});

function fleetAt(revision: number): Fleet {
  const fleet = emptyFleet();
  fleet.revision.set(revision);
  fleet.position.set(revision + 100);
  fleet.logChain.set({ mac: `m${revision}`, named: [] });
  return fleet;
}

const turns = async (): Promise<void> => {
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
};

/** Writes checkpoints of two folds. @param save what the store does with one of them */
function writer(every: number, save: () => Promise<void> = () => Promise.resolve(), everyStart: number = every) {
  /** The events that were folded when each round was written. */
  const saved: number[] = [];
  const other: number[] = [];
  let events = 0;
  const checkpoints = createCheckpointWriter({
    folds: [
      {
        async save() {
          saved.push(events);
          await save();
        },
      },
      {
        save() {
          other.push(events);
          return Promise.resolve();
        },
      },
    ],
    logger,
    every,
    everyStart,
  });
  const fold = async (more: number): Promise<void> => {
    events += more;
    checkpoints.folded(more);
    checkpoints.writeIfDue();
    await turns();
  };
  return { checkpoints, fold, saved, other };
}

describe('a checkpoint', () => {
  it('of each fold is written once enough events have passed since the last one', async () => {
    const { fold, saved, other } = writer(10);
    for (const more of [9, 1, 1, 8, 1, 1]) await fold(more);
    expect(saved).toEqual([10, 20]);
    expect(other).toEqual(saved);
    expect(warnings).toEqual([]);
  });

  it('is written sooner when a start has replayed events, so that the next start need not', async () => {
    const written = async (...events: readonly number[]): Promise<readonly number[]> => {
      const { fold, saved } = writer(10, undefined, 3);
      for (const more of events) await fold(more);
      return saved;
    };
    expect(await written(3, 3, 6, 1)).toEqual([3, 13]);
    expect(await written(2, 1, 6, 1)).toEqual([10]);
  });

  it('is written one at a time, and close waits for it', async () => {
    let finish = (): void => undefined;
    const { checkpoints, fold, saved } = writer(10, () => new Promise((resolve) => (finish = resolve)));
    await fold(10);
    await fold(20);
    expect(saved).toEqual([10]);
    finish();
    await turns();
    await fold(0);
    expect(saved).toEqual([10, 30]);
    let closed = false;
    const closing = checkpoints.close().then(() => (closed = true));
    await turns();
    expect(closed).toBe(false);
    finish();
    await closing;
    await fold(10);
    expect(saved).toEqual([10, 30]);
  });

  it('that cannot be written is told, and the next one is written in its time', async () => {
    let away = true;
    const { fold, saved, other } = writer(10, () => (away ? Promise.reject(new Error('full')) : Promise.resolve()));
    await fold(10);
    expect(warnings).toEqual(['{"error":"Error: full"}']);
    away = false;
    await fold(5);
    await fold(5);
    expect(saved).toEqual([10, 20]);
    expect(other).toEqual(saved);
  });

  it('is not stored once it is stopped', async () => {
    const stop = new AbortController();
    const stored: FoldCheckpoint[] = [];
    const saving = saveFleet(storing(stored), logChain, fleetAt(10), stop.signal);
    stop.abort();
    await saving;
    expect(stored).toEqual([]);
  });
});

const storing = (stored: FoldCheckpoint[]) => ({
  saveFoldCheckpoint(_name: string, checkpoint: FoldCheckpoint) {
    stored.push(checkpoint);
    return Promise.resolve();
  },
});

async function storedFleet(revision = 9): Promise<FoldCheckpoint> {
  const stored: FoldCheckpoint[] = [];
  await saveFleet(storing(stored), logChain, fleetAt(revision), new AbortController().signal);
  const [checkpoint] = stored;
  if (checkpoint === undefined) throw new Error('no checkpoint was written');
  return checkpoint;
}

describe('a stored checkpoint', () => {
  const load = (checkpoint: FoldCheckpoint | undefined) => {
    const store = {
      loadFoldCheckpoint: () => Promise.resolve(checkpoint),
      async *read(stream: string, { from }: { readonly from: number }) {
        yield { stream, revision: from, metadata: { link: { mac: `m${from}` } } } as unknown as RecordedEvent;
      },
    } as unknown as EventStore;
    return loadFleet(store, logChain, logger);
  };
  const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
  /** The checkpoint with other lines, sealed and hashed as it should be. */
  const rewritten = (checkpoint: FoldCheckpoint, change: (lines: string) => string): FoldCheckpoint => {
    const text = Buffer.from(checkpoint.bytes).toString('utf8');
    const lines = change(text.slice(0, text.lastIndexOf('\n', text.length - 2) + 1));
    const seal = logChain.seal(`svc-fleet ${foldVersion} ${sha256(Buffer.from(lines))}`);
    const bytes = Buffer.from(`${lines}${JSON.stringify(['seal', seal])}\n`);
    return { ...checkpoint, bytes, sha256: sha256(bytes) };
  };

  it('gives the fleet back', async () => {
    const fleet = await load(await storedFleet());
    expect([fleet?.revision.value, fleet?.position.value]).toEqual([9, 109]);
    expect(await load(rewritten(await storedFleet(), (lines) => lines))).toBeDefined();
    expect(await load(undefined)).toBeUndefined();
    expect(warnings).toEqual([]);
  });

  it.each<[string, object | undefined, boolean]>([
    ['the command that it ends with', { revision: 9, metadata: { link: { mac: 'm9' } } }, true],
    ['another command there', { revision: 9, metadata: { link: { mac: 'other' } } }, false],
    ['a command without a link there', { revision: 9, metadata: {} }, false],
    ['only later commands', { revision: 10, metadata: { link: { mac: 'm9' } } }, false],
    ['fewer commands', undefined, false],
  ])('of a chained log is used only if the log holds %s', async (_name, event, used) => {
    const checkpoint = await storedFleet();
    const asked: unknown[] = [];
    const store = {
      loadFoldCheckpoint: () => Promise.resolve(checkpoint),
      async *read(stream: string, { from }: { readonly from: number }) {
        asked.push([stream, from]);
        if (event !== undefined) yield { stream, ...event } as RecordedEvent;
      },
    } as unknown as EventStore;
    expect((await loadFleet(store, logChain, logger)) !== undefined).toBe(used);
    expect([asked, warnings.length]).toEqual([[['svc-fleet', 9]], used ? 0 : 1]);
  });

  it.each<[string, (checkpoint: FoldCheckpoint) => FoldCheckpoint]>([
    ['another fold version', (checkpoint) => ({ ...checkpoint, foldVersion: foldVersion - 1 })],
    ['another hash', (checkpoint) => ({ ...checkpoint, sha256: sha256(Buffer.from('x')) })],
    ['another revision', (checkpoint) => ({ ...checkpoint, revision: 8 })],
    ['another position', (checkpoint) => ({ ...checkpoint, position: 8 })],
    ['a line that nothing knows', (checkpoint) => rewritten(checkpoint, (lines) => `${lines}["moon","x",1]\n`)],
    [
      'another seal',
      (checkpoint) => {
        const bytes = Buffer.from(Buffer.from(checkpoint.bytes).toString('utf8').replace('"seal","', '"seal","0'));
        return { ...checkpoint, bytes, sha256: sha256(bytes) };
      },
    ],
    [
      'no seal',
      (checkpoint) => {
        const bytes = Buffer.from('x\n');
        return { ...checkpoint, bytes, sha256: sha256(bytes) };
      },
    ],
  ])('with %s is not used, and that is told with its revision', async (_name, change) => {
    expect(await load(change(await storedFleet()))).toBeUndefined();
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain('"revision":');
  });
});
