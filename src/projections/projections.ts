/**
 * Starts the read side: opens the read models, runs the runner, answers the queries and those who wait.
 * The only door into this folder, with the types of `port.ts`. Implements `architecture.md` (projections, blue/green)
 * and `rest.md`, Consistency.
 */
import type { AgentEvent } from '../domain/agents.js';
import { backoff, sleep, timedOut, withDeadline } from '../kernel/background.js';
import type { Loop } from '../kernel/background.js';
import type { Clock } from '../kernel/clock.js';
import { ServiceError } from '../kernel/errors.js';
import { streams } from '../kernel/event.js';
import { limits } from '../kernel/limits.js';
import type { Logger } from '../kernel/logger.js';
import type { EventStore } from '../storage/event-store.js';
import type { ReadStore } from '../storage/read-store.js';
import { auditQueries } from './audit-queries.js';
import { chainQueries } from './chains.js';
import { deploymentQueries } from './deployments.js';
import { shortError } from './fold.js';
import { createHeadProbe } from './head-probe.js';
import { nodeQueries } from './node-queries.js';
import { openParking } from './parked.js';
import type { Parking } from './parked.js';
import type { Projections } from './port.js';
import { createProgress } from './progress.js';
import type { ReadModel } from './read-model.js';
import { groupName, groupVersion, openCollections, openForQueries, readModels } from './read-models.js';
import type { QueryCollections } from './read-models.js';
import { startRunner } from './runner.js';
import type { Runner } from './runner.js';
import { createStatusBoard } from './status.js';
import { startTombstonePurge } from './tombstones.js';
import { upstreamQueries } from './upstreams.js';

export interface ProjectionsOptions {
  readonly eventStore: EventStore;
  readonly readStore: ReadStore;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Another version of the group than this release's, and further read models: for rebuilds and tests. */
  readonly version?: number;
  readonly models?: readonly ReadModel[];
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
export async function startProjections(options: ProjectionsOptions): Promise<Projections> {
  const { eventStore, readStore, clock, logger } = options;
  const version = options.version ?? groupVersion;
  const models = options.models ?? readModels;
  const stop = new AbortController();
  const factListeners = new Set<(fact: AgentEvent) => void>();
  const progress = createProgress(0);
  let opened: Opened | undefined;
  let parking: Parking | undefined;
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

  function tell(fact: AgentEvent): void {
    for (const listener of factListeners) {
      try {
        listener(fact);
      } catch (error) {
        logger.error({ error: shortError(error) }, 'a listener to the facts of agents failed');
      }
    }
  }

  /** The pointer goes over to this version once it has caught up; a newer release's pointer is left where it is. */
  async function activate(): Promise<void> {
    const active = await readStore.activeVersion(groupName);
    if (active === undefined || active < version) {
      await readStore.activate(groupName, version);
      logger.info(
        { version, before: active ?? null },
        'the read models of this version are the ones shown from now on',
      );
    }
    shown = true;
  }

  async function open(): Promise<Opened> {
    const [queries, collections, active, checkpoint] = await Promise.all([
      openForQueries(readStore, version),
      openCollections(readStore, models, version),
      readStore.activeVersion(groupName),
      readStore.loadCheckpoint(groupName, version),
    ]);
    const openedParking = await openParking(readStore, version);
    parking = openedParking;
    shown = active === version;
    const first = active === undefined || active < version;
    progress.passed(checkpoint?.commit ?? 0);
    const runner = startRunner({
      eventStore,
      readStore,
      logger,
      version,
      target: { models, collections, parking: openedParking, logger, rebuilding: () => first && !shown },
      progress,
      status,
      after: checkpoint ?? 'start',
      onCaughtUp: activate,
      onAgentFact: tell,
    });
    const purge = startTombstonePurge({
      readStore,
      logger,
      checkpoint: async () => (await readStore.loadCheckpoint(groupName, version))?.commit,
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
        await sleep(backoff(tries, limits.projections.retryMinMs, limits.projections.retryMaxMs), stop.signal);
      }
    }
  })();
  await Promise.race([opening, firstFailure]);

  function queries(): QueryCollections {
    if (opened !== undefined && shown) return opened.queries;
    throw new ServiceError('unavailable', 'the read models are being filled and can not be shown yet');
  }

  async function reached(position: number, timeoutMs: number): Promise<boolean> {
    const waiting = progress.untilPosition(position, timeoutMs);
    if (progress.position() < position) probe.wake();
    return waiting;
  }

  /** Log position of an event; undefined when it can't be found in time. */
  async function positionOf(stream: string, revision: number, timeoutMs: number): Promise<number | undefined> {
    const looking = (async () => {
      for await (const event of eventStore.read(stream, { direction: 'forward', from: revision, maxCount: 1 })) {
        return event.revision === revision ? event.position : undefined;
      }
      return undefined;
    })().catch(() => undefined);
    const found = await withDeadline(looking, timeoutMs);
    return found === timedOut ? undefined : found;
  }

  return {
    nodes: nodeQueries(() => queries().nodes),
    upstreams: upstreamQueries(() => queries().upstreams),
    chains: chainQueries(() => queries().chains),
    deployments: deploymentQueries(() => queries().deployments),
    audit: auditQueries(eventStore, queries),
    status: status.current,
    onStatusChange: status.onChange,
    reached,
    async applied(stream, revision, timeoutMs) {
      const until = clock.monotonic() + timeoutMs;
      if (progress.revision(stream) === undefined) {
        // Nothing of the stream came since the start: it may lie before the checkpoint, where only positions are known.
        const position = await positionOf(stream, revision, timeoutMs);
        if (position !== undefined) return progress.untilPosition(position, Math.max(0, until - clock.monotonic()));
      }
      return progress.untilRevision(stream, revision, Math.max(0, until - clock.monotonic()));
    },
    onAgentFact(listener) {
      factListeners.add(listener);
      return () => factListeners.delete(listener);
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
