/**
 * The read side as others see it: the read models in the layout that is shown, and the change to another one while the
 * service runs: after a rebuild the new place is followed beside the old one, and shown once it is as far.
 * The only door into this folder, with the types of `port.ts`. Implements `docs/architecture.md` (projections, blue/green).
 */
import { randomUUID } from 'node:crypto';
import type { AgentEvent } from '../domain/agents/facts.js';
import { sleep, startLoop, withDeadline } from '../kernel/background.js';
import type { Clock } from '../kernel/clock.js';
import { createListeners } from '../kernel/listeners.js';
import type { Logger } from '../kernel/logger.js';
import type { EventStore } from '../storage/event-store.js';
import type { ReadStore } from '../storage/read-store.js';
import { auditQueries } from './models/audit-queries.js';
import { deploymentQueries } from './models/deployments.js';
import { shortError } from './engine/fold.js';
import { startGroup } from './engine/group.js';
import type { Group } from './engine/group.js';
import { readLayout } from './engine/layout.js';
import { announceReading, stopReading } from './engine/layout-readers.js';
import type { Layout } from './engine/layout.js';
import { nodeQueries } from './models/node-queries.js';
import type { Projections, ProjectionStatus } from './port.js';
import type { ReadModel } from './read-model.js';
import { groupVersion, readModels } from './read-models.js';
import { allResourceQueries } from './models/resources.js';
import { tuning } from './tuning.js';

export interface ProjectionsOptions {
  readonly eventStore: EventStore;
  readonly readStore: ReadStore;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Another version of the group than this release's, and further read models: for tests. */
  readonly version?: number;
  readonly models?: readonly ReadModel[];
  /** Milliseconds between looks at where the read models are; for tests. */
  readonly layoutPollMs?: number;
}

/**
 * Returns once the read models are open, or at the first failure to open them: then it goes on trying by itself, and
 * the queries answer `unavailable` meanwhile. Whether they have caught up is in `status()`.
 */
export async function startProjections(options: ProjectionsOptions): Promise<Projections> {
  const { eventStore, readStore, logger } = options;
  const release = options.version ?? groupVersion;
  const models = options.models ?? readModels;
  const stop = new AbortController();
  const reader = randomUUID();
  const factListeners = createListeners<AgentEvent>((error) =>
    logger.error({ error: shortError(error) }, 'a listener to the facts of agents failed'),
  );
  const statusListeners = createListeners<ProjectionStatus>((error) =>
    logger.error({ error: shortError(error) }, 'a listener to the state of the projections failed'),
  );
  const retiring = new Map<Group, Promise<void>>();
  let toldPosition = -1;
  /** The one that is shown, and the one that is to be shown. */
  let current: Group | undefined;
  let next: Group | undefined;

  /** Two groups follow the log while one takes over from the other: each fact is told once, by the first to have it. */
  function tellFact(fact: AgentEvent, position: number): void {
    if (position <= toldPosition) return;
    toldPosition = position;
    factListeners.tell(fact);
  }

  async function start(layout?: Layout): Promise<Group> {
    const group = await startGroup({ ...options, release, models, layout, onAgentFact: tellFact });
    group.onStatusChange((status) => {
      if (group === current) statusListeners.tell(status);
    });
    return group;
  }

  /** So that a rebuild does not drop what is still read here. */
  async function tellWhatIsRead(): Promise<void> {
    const numbers = [current, next, ...retiring.keys()].flatMap((group) => group?.number() ?? []);
    await announceReading(readStore, reader, release, [...new Set(numbers)], tuning.layoutLeaseMs);
  }

  /** The old one goes on for a while, for those who wait on it. */
  function retire(group: Group): void {
    const ending = (async () => {
      await sleep(tuning.layoutLingerMs, stop.signal);
      await group.close();
      retiring.delete(group);
    })();
    retiring.set(group, ending);
  }

  async function look(): Promise<void> {
    await tellWhatIsRead();
    const layout = await readLayout(readStore, release);
    const newest = next ?? current;
    if (newest?.number() !== undefined && newest.number() !== layout.number && !stop.signal.aborted) {
      await next?.close();
      next = undefined;
      next = await start(layout);
      logger.info({ layout: layout.number }, 'the read models were rebuilt; following them at their new place');
    }
    if (next === undefined || current === undefined || !next.status().caughtUp) return;
    if (next.status().position < current.status().position) return;
    const before = current;
    [current, next] = [next, undefined];
    retire(before);
    logger.info({ layout: layout.number }, 'the rebuilt read models are the ones shown from now on');
    statusListeners.tell(current.status());
  }

  const complain = (error: unknown): void =>
    logger.warn({ error: shortError(error) }, 'where the read models are could not be asked');
  // Before it is looked where they are: a rebuild then waits for what is found.
  await withDeadline(tellWhatIsRead().catch(complain), tuning.probeTimeoutMs);
  const first = await start();
  current = first;
  const shown = (): Group => current ?? first;
  await withDeadline(tellWhatIsRead().catch(complain), tuning.probeTimeoutMs);
  const loop = startLoop(options.layoutPollMs ?? tuning.layoutPollMs, look, complain);

  return {
    nodes: nodeQueries(() => shown().queries().nodes),
    resources: allResourceQueries((type) => shown().queries().resources[type]),
    deployments: deploymentQueries(() => shown().queries().deployments),
    audit: auditQueries(eventStore, () => shown().queries()),
    status: () => shown().status(),
    onStatusChange: statusListeners.add,
    reached: (position, timeoutMs) => shown().reached(position, timeoutMs),
    revision: (stream) => shown().revision(stream),
    applied: (stream, revision, timeoutMs) => shown().applied(stream, revision, timeoutMs),
    onAgentFact: factListeners.add,
    async close() {
      stop.abort();
      const groups = [current, next];
      await Promise.all([...groups.map((group) => group?.close()), ...retiring.values()]);
      await loop.close();
      // Its last turn may have opened one, or put one in the place of another, meanwhile.
      if (!groups.includes(next)) await next?.close();
      await Promise.all(retiring.values());
      await withDeadline(stopReading(readStore, reader).catch(complain), tuning.probeTimeoutMs);
    },
  };
}
