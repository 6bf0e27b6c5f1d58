/**
 * Keeps the standing facts of all nodes younger than the log keeps facts: the loop around `src/commands/standing-facts.ts`,
 * with what it reads from the read models and from presence, and its metrics.
 */
import { createStandingFacts } from '../commands/standing-facts.js';
import type { KnownNode } from '../commands/standing-facts.js';
import { tuning } from '../commands/tuning.js';
import { neverConnected } from '../domain/agents/node-agent-facts.js';
import { startLoop } from '../kernel/background.js';
import type { Clock } from '../kernel/clock.js';
import { errorText } from '../kernel/errors.js';
import type { Ids } from '../kernel/ids.js';
import type { Logger } from '../kernel/logger.js';
import type { NumberSource } from '../instance/metrics.js';
import type { FleetQueries, Projections } from '../projections/port.js';
import type { EventStore } from '../storage/event-store.js';
import type { ReadStore } from '../storage/read-store.js';
import type { Telemetry } from '../telemetry/port.js';

interface StandingFactsOptions {
  readonly eventStore: EventStore;
  readonly readStore: ReadStore;
  readonly fleet: Pick<FleetQueries, 'nodeIds'>;
  readonly projections: Pick<Projections, 'agents' | 'applied'>;
  readonly telemetry: Pick<Telemetry, 'online'>;
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
  const { clock, fleet, ids, instanceId, logger, projections } = options;
  const nodes = async (nodeIds: readonly string[]): Promise<readonly KnownNode[]> => {
    const agents = await projections.agents.getMany(nodeIds);
    return nodeIds.map((id) => ({ id, agent: agents.get(id) ?? neverConnected }));
  };
  const standing = createStandingFacts({
    eventStore: options.eventStore,
    leases: options.readStore.leases,
    instanceId,
    clock,
    ids,
    logger,
    page: (number, size) => nodes([...fleet.nodeIds()].slice((number - 1) * size, number * size)),
    nodes,
    online: () => options.telemetry.online(),
    applied: (stream, revision, timeoutMs) => projections.applied(stream, revision, timeoutMs),
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
        help: 'Nodes whose facts were written again before they expire.',
        read: standing.written,
      },
      {
        type: 'gauge',
        name: 'svc_standing_facts_oldest_seconds',
        help: 'Age of the oldest facts that nodes stand on; the log keeps facts for 90 days.',
        read: standing.oldestSeconds,
      },
    ],
    async close() {
      await loop.close();
      await standing.close();
    },
  };
}
