/**
 * Group commit: operations decide one after the other on what their predecessors of the group wrote, and share one
 * transaction and its flush. One group is in flight at a time; while it flushes, the next one gathers. Not an LMDB
 * wrapper (`environment.ts`) and without any meaning of keys.
 */
import { timedOut, withDeadline } from '../../kernel/background.js';
import { errorText } from '../../kernel/errors.js';
import { limits } from '../../kernel/limits.js';
import type { Change, Environment } from './environment.js';

/** What an operation sees and changes: committed state with the writes of the group over it. */
export interface Batch<Name extends string> {
  get(database: Name, key: Buffer): Buffer | undefined;
  put(database: Name, key: Buffer, value: Buffer): void;
  remove(database: Name, key: Buffer): void;
}

export type Written<T> =
  | { readonly kind: 'durable'; readonly value: T }
  | { readonly kind: 'not_written'; readonly cause: string }
  | { readonly kind: 'unknown'; readonly cause: string };

export interface GroupWriter<Name extends string> {
  /**
   * Runs a synchronous operation in the next group. Resolves when its writes, and those that it has seen, are durable,
   * at the latest after `limits.events.appendTimeoutMs`.
   * @throws what the operation throws; nothing of it is written then.
   */
  run<T>(operation: (batch: Batch<Name>) => T): Promise<Written<T>>;
  /** True while the last commit failed: a probe should write before it says that all is well. */
  failing(): boolean;
  /** Lets what waits be written, refuses what comes. */
  close(): Promise<void>;
}

interface Waiting<Name extends string> {
  state: 'queued' | 'running' | 'done';
  execute(batch: Batch<Name>): void;
  /** Tells the caller. */
  settle(outcome: Written<undefined>): void;
}

type Overlay<Name extends string> = Map<string, Change<Name>>;
const overlayKey = (database: string, key: Buffer): string => `${database}\u0000${key.toString('latin1')}`;

/** The environment's reads with one or two layers of uncommitted changes on top. */
function layered<Name extends string>(
  environment: Environment<Name>,
  group: Overlay<Name>,
  own: Overlay<Name>,
): Batch<Name> {
  return {
    get(database, key) {
      const name = overlayKey(database, key);
      const change = own.get(name) ?? group.get(name);
      return change === undefined ? environment.get(database, key) : change.value;
    },
    put(database, key, value) {
      own.set(overlayKey(database, key), { database, key, value });
    },
    remove(database, key) {
      own.set(overlayKey(database, key), { database, key, value: undefined });
    },
  };
}

export function createGroupWriter<Name extends string>(environment: Environment<Name>): GroupWriter<Name> {
  let queue: Waiting<Name>[] = [];
  let busy = false;
  let scheduled = false;
  let failed = false;
  let closing = false;
  let idle: (() => void) | undefined;

  function schedule(): void {
    if (busy || scheduled) return;
    scheduled = true;
    // After this turn of the event loop, so that all callers of the turn share the flush.
    setImmediate(() => {
      scheduled = false;
      void turn();
    });
  }

  /** Takes operations until the group is full. Returns those that must wait for the commit. */
  function gather(group: Overlay<Name>): Waiting<Name>[] {
    const members: Waiting<Name>[] = [];
    let bytes = 0;
    let taken = 0;
    const until = performance.now() + limits.storage.groupMs;
    for (const waiting of queue) {
      if (taken >= limits.storage.groupOperations || bytes >= limits.storage.groupBytes) break;
      if (performance.now() > until) break;
      taken += 1;
      if (waiting.state !== 'queued') continue;
      waiting.state = 'running';
      const own: Overlay<Name> = new Map();
      try {
        waiting.execute(layered(environment, group, own));
      } catch {
        continue; // It has told its caller; none of its changes is kept.
      }
      for (const [name, change] of own) {
        group.set(name, change);
        bytes += change.key.length + (change.value?.length ?? 0);
      }
      members.push(waiting);
    }
    queue = queue.slice(taken);
    return members;
  }

  async function turn(): Promise<void> {
    busy = true;
    const group: Overlay<Name> = new Map();
    const members = gather(group);
    let outcome: Written<undefined> = { kind: 'durable', value: undefined };
    if (group.size > 0) {
      const committed = await environment.commit([...group.values()]).catch((error: unknown) => ({
        kind: 'unknown' as const,
        cause: errorText(error),
      }));
      outcome = committed.kind === 'durable' ? { kind: 'durable', value: undefined } : committed;
      failed = outcome.kind !== 'durable';
    }
    for (const member of members) member.settle(outcome);
    busy = false;
    if (queue.length > 0) schedule();
    else idle?.();
  }

  return {
    async run<T>(operation: (batch: Batch<Name>) => T): Promise<Written<T>> {
      if (closing) return { kind: 'not_written', cause: 'the store is closed' };
      if (queue.length >= limits.storage.writeQueue) return { kind: 'not_written', cause: 'too many writes wait' };
      let waiting: Waiting<Name> | undefined;
      const promise = new Promise<Written<T>>((resolve, reject) => {
        let result: { readonly value: T } | undefined;
        const entry: Waiting<Name> = {
          state: 'queued',
          execute(batch) {
            try {
              result = { value: operation(batch) };
            } catch (error) {
              entry.state = 'done';
              reject(error);
              throw error;
            }
          },
          settle(outcome) {
            entry.state = 'done';
            if (outcome.kind !== 'durable') resolve(outcome);
            else if (result !== undefined) resolve({ kind: 'durable', value: result.value });
          },
        };
        waiting = entry;
        queue.push(entry);
        schedule();
      });
      const answer = await withDeadline(promise, limits.events.appendTimeoutMs);
      if (answer !== timedOut) return answer;
      if (waiting?.state === 'queued') {
        waiting.state = 'done';
        return { kind: 'not_written', cause: 'the disk is too slow: the write was not begun in time' };
      }
      return { kind: 'unknown', cause: 'the disk is too slow: the write was not confirmed in time' };
    },
    failing: () => failed,
    async close() {
      closing = true;
      if (!busy && queue.length === 0) return;
      await withDeadline(
        new Promise<void>((resolve) => {
          idle = resolve;
        }),
        limits.events.appendTimeoutMs,
      );
    },
  };
}
