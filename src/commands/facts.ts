/**
 * Records facts: what agents did, and sign-ins. No rule decides about them. An agent's fact passes the budget of its node
 * (`fact-budget.ts`) and joins the batch of its stream (`stream-batch.ts`). Implements
 * `docs/contract/domain.md#one-consistency-boundary-the-fleet`.
 */
import type { SigninEvent } from '../domain/accounts/signin.js';
import type { AgentEvent, FactOutcome } from '../domain/agents/facts.js';
import { schemaVersions } from '../domain/log/upcast.js';
import type { Clock } from '../kernel/clock.js';
import { timestamp } from '../kernel/clock.js';
import { errorText } from '../kernel/errors.js';
import type { Actor, ProposedEvent } from '../kernel/event.js';
import { agentShards, agentsStream, streams } from '../kernel/event.js';
import type { Ids } from '../kernel/ids.js';
import type { JsonObject } from '../kernel/json.js';
import { limits } from '../kernel/limits.js';
import type { Logger } from '../kernel/logger.js';
import { createSampledLog } from '../kernel/sampled-log.js';
import type { EventStore, Retention } from '../storage/event-store.js';
import { createFactBudget } from './fact-budget.js';
import type { FactRecorder } from './port.js';
import { createStreamBatch } from './stream-batch.js';
import type { StreamBatch } from './stream-batch.js';
import { tuning } from './tuning.js';

export interface FactRecorderOptions {
  readonly eventStore: EventStore;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly logger: Logger;
}

/** Retention of the streams that the log does not keep whole. */
export const retentions: readonly { readonly stream: string; readonly retention: Retention }[] = [
  ...Array.from({ length: agentShards }, (_, shard) => ({
    stream: `${streams.agentsPrefix}${String(shard).padStart(2, '0')}`,
    retention: { maxAgeSeconds: limits.events.agentsMaxAgeSeconds },
  })),
  { stream: streams.signins, retention: { maxAgeSeconds: limits.events.signinsMaxAgeSeconds } },
  { stream: streams.keyring, retention: { maxCount: 1 } },
];

/** Sets them; cheap enough for every start. @throws ServiceError `unavailable` */
export async function setRetentions(eventStore: EventStore): Promise<void> {
  for (const { stream, retention } of retentions) await eventStore.setRetention(stream, retention);
}

const agentBatch = {
  gatherMs: tuning.agentFactsBatchMs,
  maxFacts: tuning.agentFactsQueue / agentShards,
  maxBytes: tuning.agentFactsQueueBytes / agentShards,
};
const signinBatch = {
  gatherMs: tuning.signinsBatchMs,
  maxFacts: tuning.signinsQueue,
  maxBytes: tuning.signinsQueueBytes,
};

export function createFactRecorder(options: FactRecorderOptions): FactRecorder {
  const { eventStore, clock, ids, logger } = options;
  const batches = new Map<string, StreamBatch>();
  let closed = false;
  const outcomes = new Map<FactOutcome, number>();
  // Repeated for as long as the store refuses: it may be every fact of a sixteenth of the nodes.
  const refusals = createSampledLog({ write: (fields, message) => logger.error(fields, message), clock });

  const batchOf = (stream: string): StreamBatch => {
    let batch = batches.get(stream);
    if (batch === undefined) {
      const onRefused = ({ type, metadata }: ProposedEvent, cause: string): void =>
        refusals.note(
          { reason: 'fact_refused', stream, type, request_id: metadata.request_id, cause },
          'the event store refuses a fact for good',
        );
      const bounds = stream === streams.signins ? signinBatch : agentBatch;
      batch = createStreamBatch(stream, { eventStore, logger, onRefused, ...bounds });
      batches.set(stream, batch);
      // A session that ends late tells facts of streams that had none: nobody waits for those any more.
      if (closed) void batch.close();
    }
    return batch;
  };
  const budget = createFactBudget({
    clock,
    write: (nodeId, event, bytes) => batchOf(agentsStream(nodeId)).add(event, bytes),
  });

  const counted = async (recording: Promise<FactOutcome>): Promise<FactOutcome> => {
    const outcome = await recording;
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    return outcome;
  };
  const propose = (
    event: { type: keyof typeof schemaVersions; data: object },
    actor: Actor,
    requestId: string,
  ): ProposedEvent => ({
    id: ids.next(),
    type: event.type,
    data: event.data as JsonObject,
    metadata: {
      command: { id: ids.next(), index: 0, count: 1 },
      actor,
      request_id: requestId,
      occurred_at: timestamp(clock.now()),
      schema_version: schemaVersions[event.type],
    },
  });

  return {
    agent(nodeId, event: AgentEvent, requestId) {
      return counted(budget.record(nodeId, propose(event, { type: 'agent', id: nodeId, name: nodeId }, requestId)));
    },
    drop(nodeId, obsolete) {
      budget.drop(nodeId, ({ metadata }) => obsolete(metadata));
      batches.get(agentsStream(nodeId))?.drop(({ metadata }) => metadata.actor.id === nodeId && obsolete(metadata));
    },
    signin(event: SigninEvent, actor, requestId) {
      counted(batchOf(streams.signins).add(propose(event, actor, requestId))).catch((error: unknown) => {
        logger.error({ error: errorText(error), type: event.type }, 'a sign-in could not be recorded');
      });
    },
    stats: () => ({ outcomes, held: budget.held }),
    async close() {
      closed = true;
      budget.close();
      await Promise.all([...batches.values()].map((batch) => batch.close()));
      refusals.close();
    },
  };
}
