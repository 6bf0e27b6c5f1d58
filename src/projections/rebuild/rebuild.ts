/**
 * Rebuilds read models blue/green: folds the log from its start into new collections, points the layout to them once they have
 * caught up, and drops the old ones when no instance reads them. Running instances switch to the new layout (`projections.ts`).
 * An interrupted rebuild resumes where it stopped. Implements `docs/architecture.md#read-models`.
 */
import { randomUUID } from 'node:crypto';
import { sleep, startLoop } from '../../kernel/background.js';
import { errorText, ServiceError } from '../../kernel/errors.js';
import { logsWarning, type Logger } from '../../kernel/logger.js';
import { isAfter, passedBy, type EventStore } from '../../storage/event-store.js';
import type { Checkpoint, ReadStore } from '../../storage/read-store.js';
import { differenceFrom, ofAnotherLog } from '../engine/another-log.js';
import {
  placeOf,
  readLayoutRecord,
  versionIn,
  writeLayoutRecord,
  anyReader,
  othersRead,
  type Filling,
  type Layout,
  type LayoutRecord,
  type Leftover,
} from '../engine/layout.js';
import { openParking, parkedCollection } from '../engine/parked.js';
import { createProgress, createStatusBoard } from '../engine/progress.js';
import type { ReadModel } from '../read-model.js';
import { groupName, groupVersion, openCollections, readModels } from '../read-models.js';
import { startRunner } from '../engine/runner.js';
import { tuning } from '../tuning.js';

export interface RebuildOptions {
  readonly eventStore: EventStore;
  readonly readStore: ReadStore;
  readonly logger: Logger;
  /** The one read model to rebuild; all of them when absent. */
  readonly only?: string | undefined;
  readonly version?: number;
  readonly models?: readonly ReadModel[];
  readonly signal: AbortSignal;
  /** Called with the events folded by this run, its position in the log, and the log's last known head. */
  onProgress(events: number, position: number, head: number): void;
  /** How long to wait for instances to leave the old layout; for tests. */
  readonly readersMs?: number;
}

export type RebuildOutcome =
  | {
      readonly kind: 'done';
      readonly events: number;
      readonly resumed: boolean;
      /** False when an instance still reads the old collections: the next rebuild drops them. */
      readonly dropped: boolean;
    }
  /** The signal ended it; the next rebuild resumes it. */
  | { readonly kind: 'interrupted'; readonly events: number };

/** The rebuild cannot be done; the message is one sentence for the operator. */
class RebuildRefusedError extends Error {}

/** Name of a place's checkpoint while the place is being filled. */
const fillName = 'read_models_rebuild';
const leaseKind = 'read_model_rebuilds';
const progressMs = 100;

/** @throws RebuildRefusedError, ServiceError `unavailable` */
export async function rebuildReadModels(options: RebuildOptions): Promise<RebuildOutcome> {
  const { eventStore, readStore, only } = options;
  const release = options.version ?? groupVersion;
  const models = options.models ?? readModels;
  if (only !== undefined && !models.some(({ name }) => name === only)) {
    throw new RebuildRefusedError(
      `there is no read model "${only}": expected one of ${models.map(({ name }) => name).join(', ')}`,
    );
  }
  const foreign = only === undefined ? undefined : await ofAnotherLog(eventStore, readStore, release);
  if (foreign !== undefined) throw new RebuildRefusedError(`${foreign}: rebuild all of them, not one`);
  const lease = await takeLease(options, release);
  try {
    const started = await begin(options, release, models);
    const filled = await fill(options, release, models, started.filling);
    if (filled.point === undefined) return { kind: 'interrupted', events: filled.events };
    await lease.assertHeld();
    const record = await switchLayout(options, release, models, started, filled.point);
    const dropped = await dropLeftovers(options, release, record, lease);
    await readStore.deleteCheckpoint(fillName, placeOf(release, started.filling.number));
    return { kind: 'done', events: filled.events, resumed: started.resumed, dropped };
  } finally {
    await lease.close();
  }
}

interface RebuildLease {
  /** Extends it. @throws RebuildRefusedError when another rebuild may have begun, as after a long pause */
  assertHeld(): Promise<void>;
  close(): Promise<void>;
}

/** Allows one rebuild at a time. Waits long enough for the lease of a killed run to end. */
async function takeLease({ readStore, logger, signal }: RebuildOptions, release: number): Promise<RebuildLease> {
  const name = `${groupName}@${release}`;
  const claim = { name, holder: randomUUID(), ttlMs: tuning.rebuildLeaseMs, data: null };
  const until = performance.now() + tuning.rebuildLeaseMs * 1.5;
  while (!(await readStore.leases.acquire(leaseKind, claim))) {
    if (performance.now() > until || signal.aborted) {
      throw new RebuildRefusedError('another rebuild of these read models is running: wait until it ends');
    }
    await sleep(tuning.probeEveryMs * 10, signal);
  }
  const renew = (): Promise<readonly string[]> => readStore.leases.renew(leaseKind, [claim]);
  const loop = startLoop(
    tuning.rebuildLeaseMs / 4,
    async () => void (await renew()),
    logsWarning(logger, 'the lease of the rebuild was not renewed'),
  );
  return {
    async assertHeld() {
      if ((await renew()).length === 0) return;
      throw new RebuildRefusedError('another rebuild of these read models has begun meanwhile; this one gives up');
    },
    async close() {
      await loop.close();
      await readStore.leases.release(leaseKind, name, claim.holder).catch(() => undefined);
    },
  };
}

interface Begun {
  readonly record: LayoutRecord;
  readonly filling: Filling;
  readonly resumed: boolean;
}

/** Records what to fill before filling begins, or finds the interrupted rebuild to resume. */
async function begin(options: RebuildOptions, release: number, models: readonly ReadModel[]): Promise<Begun> {
  const { readStore } = options;
  const record = await readLayoutRecord(readStore, release);
  const only = options.only ?? null;
  const unfinished = record.filling;
  if (unfinished !== undefined && unfinished.only === only && (await ofThisLog(options, release, unfinished))) {
    return { record, filling: unfinished, resumed: true };
  }
  const taken = [record.layout.number, unfinished?.number ?? 0, ...record.leftovers.map(({ number }) => number)];
  const filling: Filling = { number: Math.max(...taken) + 1, only };
  // An interrupted rebuild of something else, or of another log, is given up: its collections are dropped with the
  // other leftovers.
  const leftovers =
    unfinished === undefined ? record.leftovers : [...record.leftovers, filledBy(unfinished, release, models)];
  const next = { ...record, filling, leftovers };
  await writeLayoutRecord(readStore, release, next);
  return { record: next, filling, resumed: false };
}

/** An interrupted rebuild of another log cannot be resumed. */
async function ofThisLog(
  { eventStore, readStore }: RebuildOptions,
  release: number,
  filling: Filling,
): Promise<boolean> {
  const checkpoint = await readStore.loadCheckpoint(fillName, placeOf(release, filling.number));
  return (await differenceFrom(eventStore, checkpoint?.anchors ?? [])) === undefined;
}

const inScope = (models: readonly ReadModel[], only: string | null): readonly ReadModel[] =>
  only === null ? models : models.filter(({ name }) => name === only);

/** The collections of an abandoned rebuild. */
function filledBy({ number, only }: Filling, release: number, models: readonly ReadModel[]): Leftover {
  const version = placeOf(release, number);
  return { number, collections: inScope(models, only).map(({ name }) => ({ name, version })) };
}

/** Folds the log into the new place until it has caught up. The point is undefined if the signal ended it earlier. */
async function fill(
  options: RebuildOptions,
  release: number,
  models: readonly ReadModel[],
  filling: Filling,
): Promise<{ readonly events: number; readonly point: Checkpoint | undefined }> {
  const { eventStore, readStore, logger, signal } = options;
  const place = placeOf(release, filling.number);
  const scope = inScope(models, filling.only);
  const collections = await openCollections(readStore, scope, place);
  const parking = await openParking(readStore, place);
  const after = await readStore.loadCheckpoint(fillName, place);
  const progress = createProgress(after === undefined ? 0 : passedBy(after));
  const status = createStatusBoard(progress.position, parking.list, logger);
  const caughtUp = new AbortController();
  let events = 0;
  const runner = startRunner({
    eventStore,
    // The place gets the group's checkpoint when the layout is switched, not before.
    readStore: {
      ...readStore,
      saveCheckpoint: (_name, version, at) => readStore.saveCheckpoint(fillName, version, at),
    },
    logger,
    version: place,
    target: { models: scope, collections, parking, logger, rebuilding: () => true },
    progress: {
      ...progress,
      applied(commands) {
        for (const command of commands) events += command.events.length;
        progress.applied(commands);
      },
    },
    status,
    after: after ?? 'start',
    onCaughtUp: async () => caughtUp.abort(),
  });
  const stopped = new AbortController();
  void runner.ended.then(() => stopped.abort());
  const ended = AbortSignal.any([signal, caughtUp.signal, stopped.signal]);
  try {
    let head = await eventStore.headPosition();
    const position = (): number => {
      const handled = runner.handled();
      return handled === 'start' ? 0 : passedBy(handled);
    };
    while (!ended.aborted) {
      options.onProgress(events, position(), head);
      await sleep(progressMs, ended);
      head = Math.max(head, position());
    }
    if (caughtUp.signal.aborted) options.onProgress(events, head, head);
  } finally {
    await runner.close();
    progress.close();
  }
  if (!caughtUp.signal.aborted && stopped.signal.aborted && !signal.aborted) {
    const { lastError } = status.current();
    throw new RebuildRefusedError(`the log cannot be folded: ${lastError ?? 'the reason is in the log output'}`);
  }
  if (!caughtUp.signal.aborted) return { events, point: undefined };
  const point = await readStore.loadCheckpoint(fillName, place);
  // A log without events of this service leaves no checkpoint.
  return { events, point: point ?? { commit: 0, prepare: 0, anchors: [] } };
}

/** Points the layout to the new place. The last write switches all queries at once. */
async function switchLayout(
  { readStore, logger }: RebuildOptions,
  release: number,
  models: readonly ReadModel[],
  { record, filling }: Begun,
  point: Checkpoint,
): Promise<LayoutRecord> {
  const { layout } = record;
  const place = placeOf(release, filling.number);
  const scope = inScope(models, filling.only);
  const old = placeOf(release, layout.number);
  const oldPoint = await readStore.loadCheckpoint(groupName, old);
  if (filling.only === null) {
    if (point.commit > 0) await readStore.saveCheckpoint(groupName, place, point);
  } else if (oldPoint !== undefined) {
    // The other read models have reached their own checkpoint; events in between are folded again, which changes
    // nothing.
    await readStore.saveCheckpoint(groupName, place, isAfter(point, oldPoint) ? oldPoint : point);
    await copyParked(readStore, old, place, filling.only);
  }
  const next: Layout = {
    number: filling.number,
    places: new Map([...layout.places, ...scope.map(({ name }) => [name, place] as const)]),
  };
  const replaced: Leftover = {
    number: layout.number,
    collections: scope.map(({ name }) => ({ name, version: versionIn(layout, release, name) })),
  };
  const switched = { layout: next, filling: undefined, leftovers: [...record.leftovers, replaced] };
  await writeLayoutRecord(readStore, release, switched);
  logger.info({ layout: next.number, before: layout.number }, 'queries read the rebuilt read models from now on');
  return switched;
}

/** Parked entities of the read models that are not rebuilt stay parked. */
async function copyParked(readStore: ReadStore, from: number, to: number, except: string): Promise<void> {
  const parked = (await openParking(readStore, from)).list().filter(({ projection }) => projection !== except);
  if (parked.length > 0) await (await openParking(readStore, to)).add(parked);
}

/** Drops unused collections once every instance has left them. @returns whether all were dropped */
async function dropLeftovers(
  options: RebuildOptions,
  release: number,
  record: LayoutRecord,
  lease: RebuildLease,
): Promise<boolean> {
  const { readStore, logger, signal } = options;
  const { number } = record.layout;
  const { layoutPollMs } = tuning;
  const readersMs = options.readersMs ?? tuning.rebuildReadersMs;
  try {
    const until = performance.now() + readersMs;
    // An instance that is just starting may have read the old layout without announcing it: it does so within two
    // turns.
    if (await anyReader(readStore)) await sleep(Math.min(2 * layoutPollMs, readersMs), signal);
    while (await othersRead(readStore, release, number)) {
      if (performance.now() > until || signal.aborted) return false;
      await sleep(Math.min(layoutPollMs / 4, readersMs), signal);
    }
    await lease.assertHeld();
    for (const leftover of record.leftovers) {
      for (const { name, version } of leftover.collections) await readStore.drop(name, version);
      const place = placeOf(release, leftover.number);
      await readStore.drop(parkedCollection, place);
      await readStore.deleteCheckpoint(groupName, place);
      await readStore.deleteCheckpoint(fillName, place);
    }
    await writeLayoutRecord(readStore, release, { ...record, leftovers: [] });
    return true;
  } catch (error) {
    // The rebuild itself is done: the next one drops the leftovers.
    if (!(error instanceof ServiceError || error instanceof RebuildRefusedError)) throw error;
    logger.warn({ error: errorText(error) }, 'the replaced read models could not be dropped yet');
    return false;
  }
}
