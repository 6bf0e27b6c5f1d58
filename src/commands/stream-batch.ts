/**
 * Appends the facts of one stream in batches, from a bounded queue, until the log has them. `facts.ts` limits what a node
 * may write. Implements `docs/contract/domain.md#one-consistency-boundary-the-fleet`, "batched".
 *
 * Appends expect any revision, so a retry after an unknown outcome may write a fact twice on a store that forgets ids.
 * Every reader of facts tolerates that.
 */
import type { FactOutcome } from '../domain/agents/facts.js';
import { sleep } from '../kernel/background.js';
import { errorText, ServiceError, unreachable } from '../kernel/errors.js';
import type { ProposedEvent } from '../kernel/event.js';
import { limits } from '../kernel/limits.js';
import type { Logger } from '../kernel/logger.js';
import { runsOf } from '../kernel/maps.js';
import { backoff } from '../kernel/retry.js';
import { eventBytes } from '../storage/event-json.js';
import type { EventStore } from '../storage/event-store.js';
import { tuning } from './tuning.js';

const { appendBytes, appendEvents } = limits.events;

export interface StreamBatchOptions {
  readonly eventStore: Pick<EventStore, 'append'>;
  readonly logger: Logger;
  /** How long the first fact waits for others to join its batch, in milliseconds. */
  readonly gatherMs: number;
  /** The limits on waiting facts: their number, and their bytes. */
  readonly maxFacts: number;
  readonly maxBytes: number;
  /** The log refuses a fact for good. */
  onRefused(event: ProposedEvent, cause: string): void;
}

export interface StreamBatch {
  /**
   * Resolves when the fact is durable, or is given up: superseded, or refused by the log.
   * @param bytes of the event, when they have been counted
   * @throws ServiceError `unavailable` when the queue is full or closed
   */
  add(event: ProposedEvent, bytes?: number): Promise<FactOutcome>;
  /** Drops facts that have not been written yet; one whose append is under way may still be written. */
  drop(obsolete: (event: ProposedEvent) => boolean): void;
  /** Tries once to write what waits, then gives up. */
  close(): Promise<void>;
}

interface Waiting {
  readonly event: ProposedEvent;
  readonly bytes: number;
  readonly settle: (outcome: FactOutcome) => void;
  readonly fail: (error: ServiceError) => void;
}

/** The facts that wait, in the order of arrival. Each leaves once, with its outcome. */
function createQueue({ onRefused }: Pick<StreamBatchOptions, 'onRefused'>) {
  const facts = new Set<Waiting>();
  let bytes = 0;
  const leaves = (waiting: Waiting): boolean => {
    if (!facts.delete(waiting)) return false;
    bytes -= waiting.bytes;
    return true;
  };
  const settle = (waiting: Waiting, outcome: FactOutcome): void => {
    if (leaves(waiting)) waiting.settle(outcome);
  };
  return {
    facts: facts as ReadonlySet<Waiting>,
    bytes: () => bytes,
    add(waiting: Waiting) {
      facts.add(waiting);
      bytes += waiting.bytes;
    },
    settle,
    refuse(waiting: Waiting, cause: string) {
      onRefused(waiting.event, cause);
      settle(waiting, 'refused');
    },
    failAll(message: string) {
      for (const waiting of facts) if (leaves(waiting)) waiting.fail(new ServiceError('unavailable', message));
    },
  };
}

const eventsOf = (group: readonly Waiting[]): readonly ProposedEvent[] => group.map(({ event }) => event);

export function createStreamBatch(stream: string, options: StreamBatchOptions): StreamBatch {
  const { eventStore, logger } = options;
  const { facts, bytes: queueBytes, add, settle, refuse, failAll } = createQueue(options);
  const stop = new AbortController();
  let running: Promise<void> | undefined;

  /** Appends one group, which only shrinks between tries, because a store recognises a repeat by its first events. */
  const appendNext = async (): Promise<void> => {
    let [group = []] = runsOf(facts, ({ bytes }) => bytes, appendBytes, appendEvents);
    for (let tries = 0; ; tries += 1) {
      group = group.filter((waiting) => facts.has(waiting));
      if (group.length === 0) return;
      const outcome = await eventStore.append(stream, 'any', eventsOf(group));
      switch (outcome.kind) {
        case 'appended':
          for (const waiting of group) settle(waiting, 'recorded');
          return;
        case 'refused':
          if (tries + 1 < tuning.factRefusals) break;
          // One fact of several may be to blame.
          if (group.length > 1 && outcome.what === 'append') return appendOneByOne(group);
          // If the stream takes nothing, later facts would wait in vain.
          for (const waiting of outcome.what === 'stream' ? facts : group) refuse(waiting, outcome.cause);
          return;
        case 'conflict':
        case 'unknown':
        case 'unavailable':
          break;
        default:
          unreachable(outcome);
      }
      // Logged once, as the retries do not end.
      if (tries === 0) {
        logger.warn({ stream, outcome: outcome.kind, waiting: facts.size }, 'facts could not be appended yet');
      }
      if (stop.signal.aborted) return failAll('the service shut down before the event store took the fact');
      await sleep(backoff(tuning.factRetry, tries), stop.signal);
      // An earlier try was written after all, with a fact that has been dropped since.
      if (outcome.kind === 'conflict' && group.length > 1) return appendOneByOne(group);
    }
  };

  const appendOneByOne = async (group: readonly Waiting[]): Promise<void> => {
    for (const waiting of group) {
      if (!facts.has(waiting)) continue;
      const outcome = await eventStore.append(stream, 'any', [waiting.event]);
      if (outcome.kind === 'appended') settle(waiting, 'recorded');
      else if (outcome.kind === 'refused') refuse(waiting, outcome.cause);
      // Anything else is tried again with the rest of the group.
      else return;
    }
  };

  /** Appends what waits now. Later facts wait for the next turn, so that a steady stream shares batches. */
  const appendWaiting = async (): Promise<void> => {
    const newest = [...facts].at(-1);
    while (newest !== undefined && facts.has(newest)) await appendNext();
  };

  const run = async (): Promise<void> => {
    try {
      while (facts.size > 0) {
        // Facts that arrive soon after the first join its batch. A close ends this wait.
        await sleep(options.gatherMs, stop.signal);
        await appendWaiting();
      }
    } catch (error) {
      logger.error({ stream, error: errorText(error), waiting: facts.size }, 'facts could not be appended');
      failAll('the event store did not take the fact');
    }
    // No await since the queue was found empty: the next fact starts a new run.
    running = undefined;
  };

  return {
    async add(event, bytes = eventBytes(event)) {
      if (bytes > tuning.factBytes) {
        options.onRefused(event, `a fact of ${bytes} bytes is too large to be recorded`);
        return 'refused';
      }
      if (stop.signal.aborted || facts.size >= options.maxFacts || queueBytes() + bytes > options.maxBytes) {
        throw new ServiceError('unavailable', `too many facts are waiting for the stream ${stream}`);
      }
      return new Promise((resolve, reject) => {
        add({ event, bytes, settle: resolve, fail: reject });
        running ??= run();
      });
    },
    drop(obsolete) {
      for (const waiting of facts) if (obsolete(waiting.event)) settle(waiting, 'superseded');
    },
    async close() {
      stop.abort();
      await running;
    },
  };
}
