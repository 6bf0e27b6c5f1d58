/**
 * Records facts about agents, and sign-ins, which no rule decides. Each node has a budget of bytes per minute in the log;
 * beyond it, only the newest fact of each kind is held back and written when the budget allows. `stream-batch.ts` appends
 * the facts. Implements `docs/contract/domain.md#one-consistency-boundary-the-fleet` and
 * `docs/contract/agent-protocol.md#control`, "what one node can write into the log".
 */
import type { SigninEvent } from '../domain/accounts/signin.js';
import type { AgentEvent, FactOutcome } from '../domain/agents/facts.js';
import { proposedFact } from '../domain/log/fact.js';
import { timestamp, type Clock } from '../kernel/clock.js';
import { ServiceError } from '../kernel/errors.js';
import { agentShards, agentStreams, agentsStream, streams, type Actor, type ProposedEvent } from '../kernel/event.js';
import type { Ids } from '../kernel/ids.js';
import { limits } from '../kernel/limits.js';
import { logsError, type Logger } from '../kernel/logger.js';
import { createSampledLog } from '../kernel/sampled-log.js';
import type { EventStore, Retention } from '../storage/event-store.js';
import type { FactRecorder } from './port.js';
import { createStreamBatch, type StreamBatch } from './stream-batch.js';
import { tuning } from './tuning.js';
import { createLru } from '../kernel/lru.js';
import { getOrMake } from '../kernel/maps.js';
import { createTokenBucket, type TokenBucket } from '../kernel/token-bucket.js';
import { eventBytes } from '../storage/event-json.js';

export interface FactRecorderOptions {
  readonly eventStore: EventStore;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly logger: Logger;
}

/** The retention of streams that the log does not keep whole. */
export const retentions: readonly { readonly stream: string; readonly retention: Retention }[] = [
  ...agentStreams.map((stream) => ({ stream, retention: { maxAgeSeconds: limits.events.agentsMaxAgeSeconds } })),
  { stream: streams.signins, retention: { maxAgeSeconds: limits.events.signinsMaxAgeSeconds } },
  { stream: streams.webhooks, retention: { maxAgeSeconds: limits.events.webhooksMaxAgeSeconds } },
  { stream: streams.status, retention: { maxAgeSeconds: limits.events.statusMaxAgeSeconds } },
  { stream: streams.keyring, retention: { maxCount: 1 } },
];

/** Runs at every start. @throws ServiceError `unavailable` */
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
  // Sampled, because every fact of a sixteenth of the nodes may be refused.
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
      // A session that ends late may bring the first fact of a stream after the close.
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
  const propose = (event: AgentEvent | SigninEvent, actor: Actor, requestId: string): ProposedEvent =>
    proposedFact(event, ids, { actor, requestId, at: timestamp(clock.now()) });

  return {
    agent(nodeId, event: AgentEvent, requestId) {
      return counted(budget.record(nodeId, propose(event, { type: 'agent', id: nodeId, name: nodeId }, requestId)));
    },
    drop(nodeId, obsolete) {
      budget.drop(nodeId, ({ metadata }) => obsolete(metadata));
      batches.get(agentsStream(nodeId))?.drop(({ metadata }) => metadata.actor.id === nodeId && obsolete(metadata));
    },
    signin(event: SigninEvent, actor, requestId) {
      counted(batchOf(streams.signins).add(propose(event, actor, requestId))).catch(
        logsError(logger, 'a sign-in could not be recorded', { type: event.type }),
      );
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

export interface FactBudget {
  /** Writes the fact now or later. Rejects if `write` does, or if too much is held back. */
  record(nodeId: string, event: ProposedEvent): Promise<FactOutcome>;
  /** Drops facts of a node that are held back. */
  drop(nodeId: string, obsolete: (event: ProposedEvent) => boolean): void;
  /** Facts held back. */
  readonly held: number;
  /** Writes what the budgets allow now, and gives up the rest. */
  close(): void;
}

interface FactBudgetDeps {
  readonly clock: Clock;
  /** @param bytes of the event, as `eventBytes` counts them */
  write(nodeId: string, event: ProposedEvent, bytes: number): Promise<FactOutcome>;
}

interface Held {
  readonly event: ProposedEvent;
  readonly bytes: number;
  readonly settle: (outcome: FactOutcome | Promise<FactOutcome>) => void;
  readonly fail: (error: ServiceError) => void;
}

/** @internal exported for tests */
export function createFactBudget({ clock, write }: FactBudgetDeps): FactBudget {
  /** By node rather than session, so that a reconnect refills nothing. An evicted bucket is full again. */
  const buckets = createLru<TokenBucket>(tuning.factBudgets);
  /** By node, then by type in the order of the last reports. */
  const held = new Map<string, Map<string, Held>>();
  let heldFacts = 0;
  let heldBytes = 0;
  let timer: NodeJS.Timeout | undefined;
  let closed = false;

  /** Takes the bytes of a fact, if the node has them. */
  const take = (nodeId: string, bytes: number): boolean => {
    const now = clock.monotonic();
    const { perMinute, burst } = limits.agent.factBytes;
    const bucket = getOrMake(buckets, nodeId, () => createTokenBucket(perMinute / 60, burst, now));
    if (bucket.wait(now, bytes) > 0) return false;
    bucket.take(now, bytes);
    return true;
  };

  const remove = (nodeId: string, type: string): Held | undefined => {
    const ofNode = held.get(nodeId);
    const found = ofNode?.get(type);
    if (ofNode === undefined || found === undefined) return undefined;
    ofNode.delete(type);
    if (ofNode.size === 0) held.delete(nodeId);
    heldFacts -= 1;
    heldBytes -= found.bytes;
    return found;
  };

  const hold = (nodeId: string, event: ProposedEvent, bytes: number): Promise<FactOutcome> => {
    remove(nodeId, event.type)?.settle('coalesced');
    if (closed || heldBytes + bytes > tuning.heldFactsBytes) {
      return Promise.reject(new ServiceError('unavailable', 'too many facts of agents are held back'));
    }
    return new Promise((settle, fail) => {
      const ofNode = held.get(nodeId) ?? new Map<string, Held>();
      ofNode.set(event.type, { event, bytes, settle, fail });
      held.set(nodeId, ofNode);
      heldFacts += 1;
      heldBytes += bytes;
      timer ??= setInterval(release, tuning.heldFactsEveryMs);
      timer.unref();
    });
  };

  const release = (): void => {
    for (const [nodeId, ofNode] of held) {
      for (const [type, { bytes }] of ofNode) {
        if (!take(nodeId, bytes)) break;
        const next = remove(nodeId, type);
        next?.settle(write(nodeId, next.event, next.bytes));
      }
    }
    if (held.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };

  return {
    record(nodeId, event) {
      const bytes = eventBytes(event);
      // No budget would ever allow it, and the batch refuses it.
      if (bytes > tuning.factBytes) return write(nodeId, event, bytes);
      // Later facts wait for one that is held back, because the log keeps their order.
      if (!held.has(nodeId) && take(nodeId, bytes)) return write(nodeId, event, bytes);
      return hold(nodeId, event, bytes);
    },
    drop(nodeId, obsolete) {
      for (const [type, { event }] of held.get(nodeId) ?? []) {
        if (obsolete(event)) remove(nodeId, type)?.settle('superseded');
      }
    },
    get held() {
      return heldFacts;
    },
    close() {
      closed = true;
      release();
      clearInterval(timer);
      timer = undefined;
      for (const [nodeId, ofNode] of held) {
        for (const type of ofNode.keys()) {
          remove(nodeId, type)?.fail(
            new ServiceError('unavailable', 'the service shut down before the node might write the fact'),
          );
        }
      }
    },
  };
}
