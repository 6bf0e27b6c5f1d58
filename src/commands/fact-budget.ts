/**
 * Bounds the bytes of facts that one node can write into the log in a minute. Beyond it facts are held back; of each
 * kind only the newest, which is written when the budget allows. `stream-batch.ts` has their order in the stream, and
 * retries. Implements `docs/contract/agent-protocol.md#control`, "what one node can write into the log".
 */
import type { FactOutcome } from '../domain/agents/facts.js';
import type { Clock } from '../kernel/clock.js';
import { ServiceError } from '../kernel/errors.js';
import type { ProposedEvent } from '../kernel/event.js';
import { limits } from '../kernel/limits.js';
import { createLru } from '../kernel/lru.js';
import { createTokenBucket } from '../kernel/token-bucket.js';
import type { TokenBucket } from '../kernel/token-bucket.js';
import { eventBytes } from '../storage/event-json.js';
import { tuning } from './tuning.js';

export interface FactBudget {
  /** Writes the fact now or later. Rejects as `write` does, or when too much is held back. */
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

export function createFactBudget({ clock, write }: FactBudgetDeps): FactBudget {
  /** By node and not by session, so that a reconnect refills nothing. A bucket that is forgotten is full again. */
  const buckets = createLru<string, TokenBucket>({ maxEntries: tuning.factBudgets });
  /** By node, then by type; the types in the order in which they were last reported. */
  const held = new Map<string, Map<string, Held>>();
  let heldFacts = 0;
  let heldBytes = 0;
  let timer: NodeJS.Timeout | undefined;
  let closed = false;

  /** Takes the bytes of a fact, if the node has them. */
  const take = (nodeId: string, bytes: number): boolean => {
    const now = clock.monotonic();
    const { perMinute, burst } = limits.agent.factBytes;
    const bucket = buckets.getOrCreate(nodeId, () => createTokenBucket(perMinute / 60, burst, now));
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
      // No budget would ever allow it; it is refused there.
      if (bytes > tuning.factBytes) return write(nodeId, event, bytes);
      // All later facts wait behind one that is held back, because the log keeps their order.
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
