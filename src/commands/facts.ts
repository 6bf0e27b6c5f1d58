/**
 * Records facts: what agents did, and sign-ins. No rule decides about them. They are appended in batches per stream, in
 * bounded queues, and retried until they are durable. Implements
 * `docs/contract/domain.md#one-consistency-boundary-the-fleet`.
 *
 * Appends expect any revision, so a retry after an unknown outcome may write a fact twice on a store that forgets ids.
 * That does no harm: every reader of facts treats a repeat as the same fact.
 */
import type { SigninEvent } from '../domain/accounts/signin.js';
import type { AgentEvent } from '../domain/agents/facts.js';
import { schemaVersions } from '../domain/log/upcast.js';
import { sleep } from '../kernel/background.js';
import type { Clock } from '../kernel/clock.js';
import { timestamp } from '../kernel/clock.js';
import { errorText, ServiceError } from '../kernel/errors.js';
import type { Actor, ProposedEvent } from '../kernel/event.js';
import { agentShards, agentsStream, streams, eventBytesMax } from '../kernel/event.js';
import type { Ids } from '../kernel/ids.js';
import type { JsonObject } from '../kernel/json.js';
import { limits } from '../kernel/limits.js';
import type { Logger } from '../kernel/logger.js';
import { backoff } from '../kernel/retry.js';
import { eventBytes } from '../storage/event-json.js';
import type { EventStore, Retention } from '../storage/event-store.js';
import type { FactRecorder } from './port.js';
import { tuning } from './tuning.js';

export interface FactRecorderOptions {
  readonly eventStore: EventStore;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly logger: Logger;
}

/** How long facts are kept, per stream. */
export const factRetentions: readonly { readonly stream: string; readonly retention: Retention }[] = [
  ...Array.from({ length: agentShards }, (_, shard) => ({
    stream: `${streams.agentsPrefix}${String(shard).padStart(2, '0')}`,
    retention: { maxAgeSeconds: limits.events.agentsMaxAgeSeconds },
  })),
  { stream: streams.signins, retention: { maxAgeSeconds: limits.events.signinsMaxAgeSeconds } },
];

/** Sets how long facts are kept; cheap enough for every start. @throws ServiceError `unavailable` */
export async function setFactRetention(eventStore: EventStore): Promise<void> {
  for (const { stream, retention } of factRetentions) await eventStore.setRetention(stream, retention);
}

export function createFactRecorder(options: FactRecorderOptions): FactRecorder {
  const { clock, ids, logger } = options;
  const batches = new Map<string, StreamBatch>();
  const batchOf = (stream: string, everyMs: number, bound: number): StreamBatch => {
    const batch = batches.get(stream) ?? createStreamBatch(stream, everyMs, bound, options);
    batches.set(stream, batch);
    return batch;
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
    async agent(nodeId, event: AgentEvent, requestId) {
      const batch = batchOf(agentsStream(nodeId), tuning.agentFactsBatchMs, tuning.agentFactsQueue / agentShards);
      await batch.add(propose(event, { type: 'agent', id: nodeId, name: nodeId }, requestId));
    },
    signin(event: SigninEvent, actor, requestId) {
      const batch = batchOf(streams.signins, tuning.signinsBatchMs, tuning.signinsQueue);
      batch.add(propose(event, actor, requestId)).catch((error: unknown) => {
        logger.error({ error: errorText(error), type: event.type }, 'a sign-in could not be recorded');
      });
    },
    async close() {
      await Promise.all([...batches.values()].map((batch) => batch.close()));
    },
  };
}

interface StreamBatch {
  /**
   * Resolves when the event is durable.
   * @throws ServiceError `unavailable` when the queue is full or closed, `payload_too_large` when the log takes no such
   * event
   */
  add(event: ProposedEvent): Promise<void>;
  close(): Promise<void>;
}

interface Waiting {
  readonly event: ProposedEvent;
  readonly bytes: number;
  readonly resolve: () => void;
  readonly reject: (error: ServiceError) => void;
}

function createStreamBatch(stream: string, everyMs: number, bound: number, options: FactRecorderOptions): StreamBatch {
  const { eventStore, logger } = options;
  const queue: Waiting[] = [];
  const stop = new AbortController();
  let running: Promise<void> | undefined;

  /** The oldest facts, as many as one append may hold. */
  function nextGroup(): readonly Waiting[] {
    let bytes = 0;
    const end = queue.findIndex((waiting, index) => {
      bytes += waiting.bytes;
      return index >= limits.events.appendEvents || (index > 0 && bytes > limits.events.appendBytes);
    });
    return queue.slice(0, end === -1 ? queue.length : end);
  }

  async function appendNext(): Promise<void> {
    const group = nextGroup();
    const events = group.map(({ event }) => event);
    for (let tries = 0; ; tries += 1) {
      const outcome = await eventStore.append(stream, 'any', events);
      if (outcome.kind === 'appended') {
        queue.splice(0, group.length);
        for (const { resolve } of group) resolve();
        return;
      }
      // Logged once, as the retries do not end.
      if (tries === 0) {
        logger.warn({ stream, outcome: outcome.kind, waiting: queue.length }, 'facts could not be appended yet');
      }
      if (stop.signal.aborted) return rejectAll('the service shut down before the event store took the fact');
      await sleep(backoff(tuning.factRetry, tries), stop.signal);
    }
  }

  function rejectAll(message: string): void {
    for (const { reject } of queue.splice(0)) reject(new ServiceError('unavailable', message));
  }

  async function run(): Promise<void> {
    // Facts that arrive soon after the first join its batch. A close ends this wait.
    await sleep(everyMs, stop.signal);
    try {
      while (queue.length > 0) await appendNext();
    } catch (error) {
      logger.error({ stream, error: errorText(error), waiting: queue.length }, 'facts could not be appended');
      rejectAll('the event store did not take the fact');
    }
    // No await since the queue was found empty: the next fact starts a new run.
    running = undefined;
  }

  return {
    add(event) {
      if (stop.signal.aborted || queue.length >= bound) {
        return Promise.reject(new ServiceError('unavailable', `too many facts are waiting for the stream ${stream}`));
      }
      const bytes = eventBytes(event);
      if (bytes > eventBytesMax) {
        return Promise.reject(
          new ServiceError('payload_too_large', `a fact of ${bytes} bytes is too large to be recorded`),
        );
      }
      return new Promise((resolve, reject) => {
        queue.push({ event, bytes, resolve, reject });
        running ??= run();
      });
    },
    async close() {
      stop.abort();
      await running;
    },
  };
}
