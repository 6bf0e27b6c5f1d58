/**
 * Keeps the standing facts of all nodes younger than the log's retention of facts: the loop around
 * `src/commands/standing-facts.ts`, its reads of facts and presence, and its metrics.
 */
import { createStandingFacts } from '../commands/standing-facts.js';
import { tuning } from '../commands/tuning.js';
import { startLoop } from '../kernel/background.js';
import type { Clock } from '../kernel/clock.js';
import { errorText } from '../kernel/errors.js';
import type { Ids } from '../kernel/ids.js';
import type { Logger } from '../kernel/logger.js';
import type { NumberSource } from '../instance/metrics.js';
import type { FleetQueries } from '../projections/port.js';
import type { AgentFacts } from '../reports/facts.js';
import type { EventStore } from '../storage/event-store.js';
import type { ReadStore } from '../storage/read-store.js';
import type { Reports } from '../reports/port.js';

interface StandingFactsOptions {
  readonly eventStore: EventStore;
  readonly readStore: ReadStore;
  readonly fleet: Pick<FleetQueries, 'nodeIds'>;
  readonly facts: Pick<AgentFacts, 'of' | 'holds'>;
  readonly reports: Pick<Reports, 'presence'>;
  readonly instanceId: string;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly logger: Logger;
  /** Why this instance may not write now. */
  readOnly(): string | undefined;
}

interface StandingFactsKeeper {
  metrics(): readonly NumberSource[];
  close(): Promise<void>;
}

export function keepStandingFacts(options: StandingFactsOptions): StandingFactsKeeper {
  const { clock, facts, fleet, ids, instanceId, logger } = options;
  const standing = createStandingFacts({
    eventStore: options.eventStore,
    leases: options.readStore.leases,
    instanceId,
    clock,
    ids,
    logger,
    facts,
    nodeIds: fleet.nodeIds,
    holderOf: (nodeId) => options.reports.presence(nodeId)?.instance_id,
  });
  let nextAt = 0;
  const loop = startLoop(
    tuning.standingFactsFirstMs,
    async (signal) => {
      if (clock.monotonic() < nextAt || options.readOnly() !== undefined) return;
      await standing.turn(signal);
      nextAt = clock.monotonic() + tuning.standingFactsEveryMs;
    },
    (error) => logger.warn({ error: errorText(error) }, 'standing facts could not be written again'),
  );
  return {
    metrics: () => [
      {
        type: 'counter',
        name: 'svc_standing_facts_total',
        help: 'Nodes whose facts were renewed before they expire.',
        read: standing.written,
      },
      {
        type: 'gauge',
        name: 'svc_standing_facts_oldest_seconds',
        help: 'Age of the oldest facts that nodes depend on; the log keeps facts for 90 days.',
        read: standing.oldestSeconds,
      },
    ],
    async close() {
      await loop.close();
      await standing.close();
    },
  };
}
