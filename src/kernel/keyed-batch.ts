/**
 * Write-behind by key: writes the newest value of each key in batches, and retries while the store is away. Telemetry
 * and last-good snapshots go through it. A newer value of a key replaces the older one, and `put` never waits.
 * Implements `docs/contract/agent-protocol.md#heartbeats-commands-metrics`.
 */
import { timedOut, withDeadline } from './background.js';
import { runsOf } from './maps.js';
import { backoff, type RetryPolicy } from './retry.js';

export interface KeyedBatchOptions<V> {
  /** How long a value waits for others, in milliseconds. */
  readonly everyMs: number;
  /** The maximum number of entries in one write, and their maximum weight. */
  readonly batchEntries: number;
  readonly batchWeight?: number;
  /** The maximum number of entries that may wait, and their maximum weight; above it, the oldest one is dropped. */
  readonly maxEntries: number;
  readonly maxWeight?: number;
  weigh?(value: V): number;
  write(entries: readonly (readonly [key: string, value: V])[]): Promise<void>;
  /** A write failed, and its entries wait for the next attempt. Only the first failure in a row is reported. */
  onError(error: unknown): void;
  /** A value was dropped for lack of room. */
  onDropped?(key: string): void;
  readonly retry: RetryPolicy;
  /** How long `close` tries to write the remaining entries. */
  readonly closeWithinMs: number;
}

export interface KeyedBatch<V> {
  put(key: string, value: V): void;
  /** The value waiting to be written. */
  get(key: string): V | undefined;
  delete(key: string): void;
  readonly size: number;
  /** Writes everything waiting now. Rejects with the store's error; the entries then keep waiting. */
  flush(): Promise<void>;
  /** Accepts nothing more and writes what is waiting, for at most `closeWithinMs`. Never rejects. */
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

  /** One writer at a time, so that an older value cannot overtake a newer one. */
  const drain = (): Promise<void> => {
    const turn = writing.then(async () => {
      // Values put meanwhile wait for the next drain; otherwise a busy caller could keep this one going forever.
      for (let left = waiting.size; left > 0;) {
        const [batch] = runsOf(waiting, ([, value]) => weigh(value), batchWeight, options.batchEntries);
        if (batch === undefined) return;
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
        if (outcome === timedOut)
          options.onError(new Error(`${waiting.size} entries could not be written before the shutdown`));
      } catch (error) {
        options.onError(error);
      }
    },
  };
}
