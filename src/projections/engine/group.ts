/**
 * The read models in one layout: opens them, runs their runner, answers those who wait. Tries until the store is there.
 * Which layout is shown, and the change to another one, is the concern of `projections.ts`.
 * Implements `docs/architecture.md` (projections, blue/green) and `docs/contract/rest.md#consistency`.
 */
import type { AgentEvent } from '../../domain/agents/facts.js';
import { sleep, timedOut, withDeadline } from '../../kernel/background.js';
import type { Loop } from '../../kernel/background.js';
import type { Clock } from '../../kernel/clock.js';
import { ServiceError } from '../../kernel/errors.js';
import { streams } from '../../kernel/event.js';
import type { Logger } from '../../kernel/logger.js';
import { backoff, storeRetry } from '../../kernel/retry.js';
import type { EventStore } from '../../storage/event-store.js';
import { firstFrom } from '../../storage/event-store.js';
import type { ReadStore } from '../../storage/read-store.js';
import { shortError } from './fold.js';
import { createHeadProbe } from './head-probe.js';
import { placeOf, readLayout, versionIn } from './layout.js';
import type { Layout } from './layout.js';
import { openParking } from './parked.js';
import type { Parking } from './parked.js';
import type { Projections } from '../port.js';
import { createProgress } from './progress.js';
import type { ReadModel } from '../read-model.js';
import { groupName, openCollections, openForQueries } from '../read-models.js';
import type { QueryCollections } from '../read-models.js';
import { startRunner } from './runner.js';
import type { Runner } from './runner.js';
import { createStatusBoard } from './status.js';
import { startTombstonePurge } from './tombstones.js';

export interface GroupOptions {
  readonly eventStore: EventStore;
  readonly readStore: ReadStore;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Version of the release's read models. */
  readonly release: number;
  readonly models: readonly ReadModel[];
  /** Absent: the one that is shown when the store can be asked. */
  readonly layout?: Layout | undefined;
  onAgentFact(fact: AgentEvent, position: number): void;
}

export interface Group extends Pick<
  Projections,
  'status' | 'onStatusChange' | 'applied' | 'reached' | 'revision' | 'close'
> {
  /** @throws ServiceError `unavailable` while they are not open, or have never held the whole log */
  queries(): QueryCollections;
  /** Of the layout; undefined while the store has not been reached. */
  number(): number | undefined;
}

interface Opened {
  readonly queries: QueryCollections;
  readonly runner: Runner;
  readonly purge: Loop;
}

/**
 * Returns once the read models are open, or at the first failure to open them: then it goes on trying by itself, and
 * the queries answer `unavailable` meanwhile. Whether they have caught up is in `status()`.
 */
export async function startGroup(options: GroupOptions): Promise<Group> {
  const { eventStore, readStore, clock, logger, release, models } = options;
  const stop = new AbortController();
  const progress = createProgress(0);
  let opened: Opened | undefined;
  let parking: Parking | undefined;
  let layoutNumber = options.layout?.number;
  /** Queries may read this version: it has held the whole log once. */
  let shown = false;
  const status = createStatusBoard(progress.position, () => parking?.list() ?? [], logger);
  const probe = createHeadProbe({
    eventStore,
    prefix: streams.prefix,
    progress,
    logger,
    handled: () => opened?.runner.handled() ?? 'start',
  });

  /** The pointer goes over to this version once it has caught up; a newer release's pointer is left where it is. */
  async function activate(): Promise<void> {
    const active = await readStore.activeVersion(groupName);
    if (active === undefined || active < release) {
      await readStore.activate(groupName, release);
      logger.info(
        { version: release, before: active ?? null },
        'the read models of this version are the ones shown from now on',
      );
    }
    shown = true;
  }

  async function open(): Promise<Opened> {
    const layout = options.layout ?? (await readLayout(readStore, release));
    const place = placeOf(release, layout.number);
    const versionOf = (model: string): number => versionIn(layout, release, model);
    const [queries, collections, active, checkpoint] = await Promise.all([
      openForQueries(readStore, versionOf),
      openCollections(readStore, models, versionOf),
      readStore.activeVersion(groupName),
      readStore.loadCheckpoint(groupName, place),
    ]);
    const openedParking = await openParking(readStore, place);
    parking = openedParking;
    layoutNumber = layout.number;
    shown = active === release;
    const first = active === undefined || active < release;
    progress.passed(checkpoint?.commit ?? 0);
    const runner = startRunner({
      eventStore,
      readStore,
      logger,
      version: place,
      target: { models, collections, parking: openedParking, logger, rebuilding: () => first && !shown },
      progress,
      status,
      after: checkpoint ?? 'start',
      onCaughtUp: activate,
      onAgentFact: options.onAgentFact,
    });
    const purge = startTombstonePurge({
      readStore,
      logger,
      checkpoint: async () => (await readStore.loadCheckpoint(groupName, place))?.commit,
      collections: () => collections.values(),
    });
    return { queries, runner, purge };
  }

  let failed: () => void = () => undefined;
  const firstFailure = new Promise<void>((resolve) => {
    failed = resolve;
  });
  const opening = (async () => {
    for (let tries = 0; !stop.signal.aborted; tries += 1) {
      try {
        opened = await open();
        status.set({ lastError: null });
        return;
      } catch (error) {
        logger.warn({ error: shortError(error), tries }, 'the read models can not be opened yet');
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

  /** Log position of an event; undefined when it can't be found in time. */
  async function positionOf(stream: string, revision: number, timeoutMs: number): Promise<number | undefined> {
    const looking = firstFrom(eventStore, stream, revision).catch(() => undefined);
    const found = await withDeadline(looking, timeoutMs);
    return found === timedOut || found?.revision !== revision ? undefined : found.position;
  }

  return {
    queries() {
      if (opened !== undefined && shown) return opened.queries;
      throw new ServiceError('unavailable', 'the read models are being filled and can not be shown yet');
    },
    number: () => layoutNumber,
    status: status.current,
    onStatusChange: status.onChange,
    reached,
    revision: progress.revision,
    async applied(stream, revision, timeoutMs) {
      const until = clock.monotonic() + timeoutMs;
      if (progress.revision(stream) === undefined) {
        // Nothing of the stream came since the start: it may lie before the checkpoint, where only positions are known.
        const position = await positionOf(stream, revision, timeoutMs);
        if (position !== undefined) return progress.untilPosition(position, Math.max(0, until - clock.monotonic()));
      }
      return progress.untilRevision(stream, revision, Math.max(0, until - clock.monotonic()));
    },
    async close() {
      stop.abort();
      progress.close();
      await opening;
      await probe.close();
      await opened?.purge.close();
      await opened?.runner.close();
    },
  };
}
