/** When checkpoints of the fold are written, and which are taken at a start. */
import { createHash } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import { createCheckpointWriter, loadFleet } from '../../src/projections/fleet/fold-checkpoint.js';
import { foldVersion } from '../../src/domain/fleet/checkpoint.js';
import { emptyFleet } from '../../src/domain/fleet/fleet.js';
import type { Fleet } from '../../src/domain/fleet/fleet.js';
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

/** @param save what the store does with a checkpoint */
function writer(
  every: number,
  from: number,
  save: () => Promise<void> = () => Promise.resolve(),
  everyStart: number = every,
) {
  const saved: FoldCheckpoint[] = [];
  const stop = new AbortController();
  const checkpoints = createCheckpointWriter({
    eventStore: {
      async saveFoldCheckpoint(_name, checkpoint) {
        saved.push(checkpoint);
        await save();
      },
    },
    logger,
    logChain,
    every,
    everyStart,
    from,
    signal: stop.signal,
  });
  return { checkpoints, saved, stop };
}

describe('a checkpoint', () => {
  it('is written once enough events have passed since the last one', async () => {
    const { checkpoints, saved } = writer(10, 5);
    for (const revision of [14, 15, 16, 24, 25, 26]) {
      checkpoints.writeIfDue(fleetAt(revision));
      await turns();
    }
    expect(saved.map(({ revision }) => revision)).toEqual([15, 25]);
    expect(warnings).toEqual([]);
  });

  it('is written sooner when a start has replayed events, so that the next start need not', async () => {
    const revisions = async (from: number, ...seen: readonly number[]): Promise<readonly number[]> => {
      const { checkpoints, saved } = writer(10, from, undefined, 3);
      for (const revision of seen) {
        checkpoints.writeIfDue(fleetAt(revision));
        await turns();
      }
      return saved.map(({ revision }) => revision);
    };
    expect(await revisions(5, 8, 11, 17, 18)).toEqual([8, 18]);
    expect(await revisions(5, 7, 8, 14, 15)).toEqual([15]);
  });

  it('is written one at a time, and close waits for it', async () => {
    let finish = (): void => undefined;
    const { checkpoints, saved } = writer(10, -1, () => new Promise((resolve) => (finish = resolve)));
    checkpoints.writeIfDue(fleetAt(10));
    checkpoints.writeIfDue(fleetAt(30));
    await turns();
    checkpoints.writeIfDue(fleetAt(40));
    await turns();
    expect(saved).toHaveLength(1);
    let closed = false;
    const closing = checkpoints.close().then(() => (closed = true));
    await turns();
    expect(closed).toBe(false);
    finish();
    await closing;
    checkpoints.writeIfDue(fleetAt(50));
    await turns();
    expect(saved.map(({ revision }) => revision)).toEqual([10, 50]);
    finish();
  });

  it('that cannot be written is told, and the next one is written in its time', async () => {
    let away = true;
    const { checkpoints, saved } = writer(10, -1, () => (away ? Promise.reject(new Error('full')) : Promise.resolve()));
    checkpoints.writeIfDue(fleetAt(10));
    await turns();
    expect(warnings).toEqual(['{"error":"Error: full"}']);
    away = false;
    checkpoints.writeIfDue(fleetAt(15));
    checkpoints.writeIfDue(fleetAt(20));
    await turns();
    expect(saved.map(({ revision }) => revision)).toEqual([10, 20]);
  });

  it('is not written once the fold is stopped', async () => {
    const { checkpoints, saved, stop } = writer(10, -1);
    checkpoints.writeIfDue(fleetAt(10));
    stop.abort();
    await checkpoints.close();
    expect(saved).toEqual([]);
  });
});

describe('a stored checkpoint', () => {
  const stored = async (revision = 9): Promise<FoldCheckpoint> => {
    const { checkpoints, saved } = writer(1, -1);
    checkpoints.writeIfDue(fleetAt(revision));
    await turns();
    const [checkpoint] = saved;
    if (checkpoint === undefined) throw new Error('no checkpoint was written');
    return checkpoint;
  };
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
    const fleet = await load(await stored());
    expect([fleet?.revision.value, fleet?.position.value]).toEqual([9, 109]);
    expect(await load(rewritten(await stored(), (lines) => lines))).toBeDefined();
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
    const fleet = fleetAt(9);
    const { checkpoints, saved } = writer(1, -1);
    checkpoints.writeIfDue(fleet);
    await turns();
    const asked: unknown[] = [];
    const store = {
      loadFoldCheckpoint: () => Promise.resolve(saved[0]),
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
    expect(await load(change(await stored()))).toBeUndefined();
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain('"revision":');
  });
});
