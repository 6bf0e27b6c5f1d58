/**
 * Queries on the layout in use, and the switch to another one while the service runs: after a rebuild, the new collections are
 * followed beside the old ones and queried once they have caught up. Implements `docs/architecture.md#read-models`, blue/green.
 */
import { randomUUID } from 'node:crypto';
import { sleep, startLoop, withDeadline } from '../kernel/background.js';
import { createListeners } from '../kernel/listeners.js';
import type { Logger } from '../kernel/logger.js';
import type { EventStore } from '../storage/event-store.js';
import type { ReadStore } from '../storage/read-store.js';
import { auditQueries, auditTrail } from './models/audit-queries.js';
import { deploymentQueries } from './models/deployments.js';
import { incidentQueries } from './models/incidents.js';
import { namesAt } from './models/names.js';
import { shortError } from './engine/fold.js';
import { startGroup, type Group } from './engine/group.js';
import { announceReading, forgetDeadReaders, readLayout, stopReading, type Layout } from './engine/layout.js';
import type { Projections, ProjectionStatus } from './port.js';
import type { ReadModel } from './read-model.js';
import { groupVersion, readModels } from './read-models.js';
import { tuning } from './tuning.js';

export interface ProjectionsOptions {
  readonly eventStore: EventStore;
  readonly readStore: ReadStore;
  readonly logger: Logger;
  /** `StoreClocks.deletionTime`. */
  deletionTime(newest: number | undefined): number | undefined;
  /** A version and read models other than this release's: for tests. */
  readonly version?: number;
  readonly models?: readonly ReadModel[];
  /** Milliseconds between reads of the layout: for tests. */
  readonly layoutPollMs?: number;
  /** Called when the read models have stopped at another log; the sentence has no full stop. */
  onAnotherLog?(sentence: string): void;
}

/**
 * Resolves once the read models are open or have failed to open once; then it keeps trying, and queries throw `unavailable`.
 * `status()` tells whether they have caught up.
 */
export async function startProjections(options: ProjectionsOptions): Promise<Projections> {
  const { eventStore, readStore, logger } = options;
  const release = options.version ?? groupVersion;
  const models = options.models ?? readModels;
  const stop = new AbortController();
  const reader = randomUUID();
  const statusListeners = createListeners<ProjectionStatus>((error) =>
    logger.error({ error: shortError(error) }, 'a listener for the status of the projections failed'),
  );
  const retiring = new Map<Group, Promise<void>>();
  /** The group that is queried, and the one that replaces it. */
  let current: Group | undefined;
  let next: Group | undefined;

  async function start(layout?: Layout): Promise<Group> {
    const group = await startGroup({ ...options, release, models, layout });
    group.onStatusChange((status) => {
      if (group === current) statusListeners.tell(status);
    });
    return group;
  }

  /** Prevents a rebuild from dropping collections that this instance still reads. */
  async function announceLayouts(): Promise<void> {
    const numbers = [current, next, ...retiring.keys()].flatMap((group) => group?.number() ?? []);
    await announceReading(readStore, reader, release, [...new Set(numbers)], tuning.layoutLeaseMs);
  }

  /** The old group runs for a while longer, for callers that wait for it. */
  function retire(group: Group): void {
    const ending = (async () => {
      await sleep(tuning.layoutLingerMs, stop.signal);
      await group.close();
      retiring.delete(group);
    })();
    retiring.set(group, ending);
  }

  async function followLayout(): Promise<void> {
    await announceLayouts();
    const layout = await readLayout(readStore, release);
    const newest = next ?? current;
    if (newest?.number() !== undefined && newest.number() !== layout.number && !stop.signal.aborted) {
      await next?.close();
      next = undefined;
      next = await start(layout);
      logger.info({ layout: layout.number }, 'the read models were rebuilt; following the new collections');
    }
    if (next === undefined || current === undefined || !next.status().caughtUp) return;
    if (next.status().position < current.status().position) return;
    const before = current;
    [current, next] = [next, undefined];
    retire(before);
    logger.info({ layout: layout.number }, 'queries now read the rebuilt read models');
    statusListeners.tell(current.status());
  }

  const logFailure = (error: unknown): void =>
    logger.warn({ error: shortError(error) }, 'the layout of the read models could not be read');
  // Announced before the layout is read, so that a rebuild waits for this instance.
  await withDeadline(announceLayouts().catch(logFailure), tuning.probeTimeoutMs);
  const first = await start();
  current = first;
  const inUse = (): Group => current ?? first;
  const announced = announceLayouts().then(() => forgetDeadReaders(readStore));
  await withDeadline(announced.catch(logFailure), tuning.probeTimeoutMs);
  const loop = startLoop(options.layoutPollMs ?? tuning.layoutPollMs, followLayout, logFailure);

  return {
    deployments: deploymentQueries(() => inUse().queries().deployments),
    audit: auditQueries(eventStore, () => inUse().queries()),
    incidents: incidentQueries(() => inUse().queries().incidents),
    names: async (lookups) => namesAt(inUse().queries().names, lookups),
    auditTrail: auditTrail(eventStore, () => inUse().queries()),
    status: () => inUse().status(),
    onStatusChange: statusListeners.add,
    reached: (position, timeoutMs) => inUse().reached(position, timeoutMs),
    newestAt: () => inUse().newestAt(),
    async close() {
      stop.abort();
      const groups = [current, next];
      await Promise.all([...groups.map((group) => group?.close()), ...retiring.values()]);
      await loop.close();
      // The last run of the loop may have opened another group meanwhile.
      if (!groups.includes(next)) await next?.close();
      await Promise.all(retiring.values());
      await withDeadline(stopReading(readStore, reader).catch(logFailure), tuning.probeTimeoutMs);
    },
  };
}
