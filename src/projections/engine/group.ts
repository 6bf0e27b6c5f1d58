/**
 * The read models in one layout: opens them, runs their runner, and lets callers wait for a position. `projections.ts` chooses
 * the layout. Implements `docs/architecture.md#read-models` and `docs/contract/rest.md#consistency`.
 */
import { sleep, type Loop } from '../../kernel/background.js';
import { ServiceError } from '../../kernel/errors.js';
import { allStreams } from '../../kernel/event.js';
import type { Logger } from '../../kernel/logger.js';
import { backoff, storeRetry } from '../../kernel/retry.js';
import { passedBy, type EventStore } from '../../storage/event-store.js';
import type { ReadStore } from '../../storage/read-store.js';
import { shortError } from './fold.js';
import { createHeadProbe } from './head-probe.js';
import { placeOf, readLayout, versionIn, type Layout } from './layout.js';
import { openParking, type Parking } from './parked.js';
import type { Projections } from '../port.js';
import { createProgress, createStatusBoard, type Progress, type StatusBoard } from './progress.js';
import { removeExpired, startRemovals } from './removals.js';
import type { ReadModel } from '../read-model.js';
import { groupName, openCollections, openForQueries, type QueryCollections } from '../read-models.js';
import { startRunner, type Runner } from './runner.js';
import { tuning } from '../tuning.js';

export interface GroupOptions {
  readonly eventStore: EventStore;
  readonly readStore: ReadStore;
  readonly logger: Logger;
  /** `StoreClocks.deletionTime`. */
  deletionTime(newest: number | undefined): number | undefined;
  /** Version of the release's read models. */
  readonly release: number;
  readonly models: readonly ReadModel[];
  /** Absent: the layout in use when the store is first reached. */
  readonly layout?: Layout | undefined;
  onAnotherLog?(sentence: string): void;
}

export interface Group extends Pick<Projections, 'status' | 'onStatusChange' | 'reached' | 'newestAt' | 'close'> {
  /** @throws ServiceError `unavailable` while they are not open, or have never caught up with the log */
  queries(): QueryCollections;
  /** Number of the layout; undefined until the store is reached. */
  number(): number | undefined;
}

interface Opened {
  readonly queries: QueryCollections;
  /** Queries may read this version: it has caught up with the log once. */
  queryable(): boolean;
  readonly number: number;
  readonly parking: Parking;
  readonly runner: Runner;
  readonly removals: Loop;
}

/** Opens the read models in their layout, and starts to follow the log. @throws ServiceError `unavailable` */
async function open(options: GroupOptions, progress: Progress, status: StatusBoard): Promise<Opened> {
  const { eventStore, readStore, logger, release, models } = options;
  const deletionTime = (): number | undefined => options.deletionTime(progress.newestAt());
  const layout = options.layout ?? (await readLayout(readStore, release));
  const place = placeOf(release, layout.number);
  const versionOf = (model: string): number => versionIn(layout, release, model);
  const [queries, collections, active, checkpoint] = await Promise.all([
    openForQueries(readStore, versionOf),
    openCollections(readStore, models, versionOf),
    readStore.activeVersion(groupName),
    readStore.loadCheckpoint(groupName, place),
  ]);
  const parking = await openParking(readStore, place);
  const isFirstFill = active === undefined || active < release;
  let queryable = active === release;
  const expiry = (): Promise<number> => removeExpired({ models, collections, deletionTime });

  /** Points the store to this version once it has caught up, unless a newer release has set the pointer. */
  async function activate(): Promise<void> {
    // A log may still deliver expired events, whose documents must not be shown.
    await expiry();
    const before = await readStore.activeVersion(groupName);
    if (before === undefined || before < release) {
      await readStore.activate(groupName, release);
      logger.info(
        { version: release, before: before ?? null },
        'queries read the read models of this version from now on',
      );
    }
    queryable = true;
  }

  progress.passed(checkpoint === undefined ? 0 : passedBy(checkpoint));
  const runner = startRunner({
    eventStore,
    readStore,
    logger,
    version: place,
    target: { models, collections, parking, logger, rebuilding: () => isFirstFill && !queryable },
    progress,
    status,
    after: checkpoint ?? 'start',
    onCaughtUp: activate,
    onAnotherLog: (sentence) => options.onAnotherLog?.(sentence),
  });
  const removals = startRemovals(tuning.expiryEveryMs, expiry, logger);
  return { queries, queryable: () => queryable, number: layout.number, parking, runner, removals };
}

/**
 * Returns once the read models are open or have failed to open once; then it retries in the background, and queries answer
 * `unavailable`. `status()` tells whether they have caught up.
 */
export async function startGroup(options: GroupOptions): Promise<Group> {
  const { eventStore, logger } = options;
  const stop = new AbortController();
  const progress = createProgress(0);
  let opened: Opened | undefined;
  const status = createStatusBoard(progress.position, () => opened?.parking.list() ?? [], logger);
  const probe = createHeadProbe({
    eventStore,
    streams: allStreams,
    progress,
    logger,
    handled: () => opened?.runner.handled() ?? 'start',
  });

  let failed: () => void = () => undefined;
  const firstFailure = new Promise<void>((resolve) => {
    failed = resolve;
  });
  const opening = (async () => {
    for (let tries = 0; !stop.signal.aborted; tries += 1) {
      try {
        opened = await open(options, progress, status);
        status.set({ lastError: null });
        return;
      } catch (error) {
        logger.warn({ error: shortError(error), tries }, 'the read models cannot be opened yet');
        status.set({ lastError: shortError(error) });
        failed();
        await sleep(backoff(storeRetry, tries), stop.signal);
      }
    }
  })();
  await Promise.race([opening, firstFailure]);

  async function reached(position: number, timeoutMs: number): Promise<boolean> {
    const waiting = progress.untilPosition(position, timeoutMs);
    if (progress.position() < position) probe.wake();
    return waiting;
  }

  return {
    queries() {
      if (opened?.queryable() === true) return opened.queries;
      throw new ServiceError('unavailable', 'the read models are being filled and cannot be queried yet');
    },
    number: () => opened?.number ?? options.layout?.number,
    status: status.current,
    onStatusChange: status.onChange,
    reached,
    newestAt: progress.newestAt,
    async close() {
      stop.abort();
      progress.close();
      await opening;
      await probe.close();
      await opened?.removals.close();
      await opened?.runner.close();
    },
  };
}
