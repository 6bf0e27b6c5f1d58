/**
 * Writes that may be late but not lost lightly: the newest value of each key, written in batches, kept and tried again
 * while the store is away. What telemetry and kept snapshots go through; not a queue, for an older value of a key is
 * replaced, and nobody who puts one ever waits. Implements `docs/contract/agent-protocol.md`, "go to the read store in batches".
 */
import { timedOut, withDeadline } from './background.js';
import { backoff } from './retry.js';
import type { RetryPolicy } from './retry.js';

export interface KeyedBatchOptions<V> {
  /** Milliseconds that a value may wait for others. */
  readonly everyMs: number;
  /** Entries, and their weight, written at once. */
  readonly batchEntries: number;
  readonly batchWeight?: number;
  /** Entries, and their weight, that may wait; beyond, the one that waited longest is dropped. */
  readonly maxEntries: number;
  readonly maxWeight?: number;
  weigh?(value: V): number;
  write(entries: readonly (readonly [key: string, value: V])[]): Promise<void>;
  /** A write failed, the first of several in a row: its entries wait for the next try. */
  onError(error: unknown): void;
  /** There was no room for it. */
  onDropped?(key: string): void;
  readonly retry: RetryPolicy;
  /** How long `close` tries before it gives up. */
  readonly closeWithinMs: number;
}

export interface KeyedBatch<V> {
  put(key: string, value: V): void;
  /** What waits to be written. */
  get(key: string): V | undefined;
  delete(key: string): void;
  readonly size: number;
  /** Writes what waits now. Rejects with the store's error; the entries go on waiting. */
  flush(): Promise<void>;
  /** Writes what waits, for `closeWithinMs` at most, and takes nothing more. Never rejects. */
  close(): Promise<void>;
}

export function createKeyedBatch<V>(options: KeyedBatchOptions<V>): KeyedBatch<V> {
  const weigh = options.weigh ?? (() => 0);
  const maxWeight = options.maxWeight ?? Number.POSITIVE_INFINITY;
  const batchWeight = options.batchWeight ?? Number.POSITIVE_INFINITY;
  const waiting = new Map<string, V>();
  let weight = 0;
  let timer: NodeJS.Timeout | undefined;
  let failures = 0;
  let closed = false;
  let writing: Promise<void> = Promise.resolve();

  const remove = (key: string): void => {
    const value = waiting.get(key);
    if (value === undefined) return;
    waiting.delete(key);
    weight -= weigh(value);
  };

  const schedule = (): void => {
    if (closed || timer !== undefined || waiting.size === 0) return;
    const ms = failures === 0 ? options.everyMs : backoff(options.retry, failures);
    timer = setTimeout(() => {
      timer = undefined;
      drain().catch((error: unknown) => {
        if (failures === 1) options.onError(error);
      });
    }, ms);
    timer.unref();
  };

  const nextBatch = (): (readonly [string, V])[] => {
    const batch: (readonly [string, V])[] = [];
    let taken = 0;
    for (const entry of waiting) {
      const entryWeight = weigh(entry[1]);
      if (batch.length > 0 && taken + entryWeight > batchWeight) break;
      batch.push(entry);
      taken += entryWeight;
      if (batch.length >= options.batchEntries) break;
    }
    return batch;
  };

  /** One writer at a time, so an older value can't overtake a newer one. */
  const drain = (): Promise<void> => {
    const turn = writing.then(async () => {
      // What is put meanwhile waits for the next drain, else a busy caller would keep this one for ever.
      for (let left = waiting.size; left > 0;) {
        const batch = nextBatch();
        if (batch.length === 0) return;
        await options.write(batch);
        failures = 0;
        left -= batch.length;
        for (const [key, value] of batch) if (waiting.get(key) === value) remove(key);
      }
    });
    writing = turn.then(
      () => undefined,
      () => {
        failures += 1;
      },
    );
    return turn.finally(schedule);
  };

  return {
    put(key, value) {
      if (closed) return;
      remove(key);
      waiting.set(key, value);
      weight += weigh(value);
      while (waiting.size > 1 && (waiting.size > options.maxEntries || weight > maxWeight)) {
        const oldest = waiting.keys().next();
        if (oldest.done === true) break;
        remove(oldest.value);
        options.onDropped?.(oldest.value);
      }
      schedule();
    },
    get: (key) => waiting.get(key),
    delete: remove,
    get size() {
      return waiting.size;
    },
    flush: drain,
    async close() {
      closed = true;
      clearTimeout(timer);
      timer = undefined;
      try {
        const outcome = await withDeadline(drain(), options.closeWithinMs);
        if (outcome === timedOut) options.onError(new Error(`${waiting.size} entries were not written at the end`));
      } catch (error) {
        options.onError(error);
      }
    },
  };
}
