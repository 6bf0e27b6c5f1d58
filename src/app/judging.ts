/**
 * The parts on the core that judge the reports of nodes: the counts of the whole fleet, the facts about status, and the
 * progress of rollouts. See `docs/architecture.md`.
 */
import type { CommandHandlers } from '../commands/handlers-port.js';
import { systemContext } from '../commands/system.js';
import type { Observe } from '../domain/rollout/rollout.js';
import { offlineAfterSeconds } from '../domain/settings/settings.js';
import { keepCounts, type Counts } from '../reports/counts.js';
import { failingListeners } from '../reports/status.js';
import { startRolloutRunner } from '../rollouts/runner.js';
import { createObserver } from '../status/observer.js';
import { startStatusWriter } from '../status/writer.js';
import type { Agents } from './agents.js';
import type { Core } from './core.js';

/** Observes nodes when a wave of a rollout is released. */
export function observeOf(reports: Agents['reports']): Observe {
  return {
    isOnline: (nodeId) => reports.presence(nodeId) !== undefined,
    failing(nodeId) {
      const states = reports.listenerStates(nodeId)?.states;
      if (states?.size === 0) return undefined;
      return [...(states ?? [])].flatMap(([key, state]) => (state === 'running' ? [] : [key]));
    },
  };
}

/** Starts all of it. @returns the counts @throws ServiceError `unavailable` */
export async function startJudging(
  core: Core,
  reports: Agents['reports'],
  rollouts: CommandHandlers['rollouts'],
): Promise<Counts> {
  const { clock, clocks, ids, logger, closers, queries, statusLedger } = core;
  const counts = keepCounts({
    fleet: queries,
    agentFacts: core.agentFacts,
    reports,
    clock,
    logger,
    onReport: reports.onReport,
    onFact: (listener) => core.agentFacts.onFact(({ fact }) => listener(fact.data.node_id)),
    onBatch: core.committed.onBatch,
  });
  closers.add('counts', counts);
  const observed = { fleet: queries, agentFacts: core.agentFacts, reports, counts, ledger: statusLedger };
  const statusWriter = startStatusWriter({
    eventStore: core.eventStore,
    leases: core.readStore.leases,
    ledger: statusLedger,
    source: createObserver({ ...observed, clock: clocks.shared }),
    instanceId: core.instanceId,
    ids,
    clock: clocks.shared,
    graceMs: () => offlineAfterSeconds(queries.settings()) * 1000,
    readOnly: core.readOnly,
    logger,
  });
  closers.add('status writer', statusWriter);
  const rolloutRunner = await startRolloutRunner({
    readStore: core.readStore,
    gateway: core.fleet,
    fleet: () => core.committed.fleet(),
    observe: observeOf(reports),
    failing: (nodeId) => failingListeners(observed, nodeId),
    factsOf: core.agentFacts.of,
    revert: (id) => rollouts.revert(systemContext('rollout'), id),
    revertUnconfirmed: (one) => rollouts.revertUnconfirmed(systemContext('confirmation'), one),
    instanceId: core.instanceId,
    clock: clocks.shared,
    offlineAfterMs: () => offlineAfterSeconds(queries.settings()) * 1000,
    readOnly: core.readOnly,
    logger,
  });
  closers.add('rollout runner', rolloutRunner);
  return counts;
}
