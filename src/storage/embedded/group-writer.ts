/**
 * Group commit: operations run one after the other, each sees the writes of those before it, and all share one
 * transaction and its flush. One group is in flight at a time; while it flushes, the next one gathers. `environment.ts`
 * wraps LMDB; callers know what the keys mean.
 */
import { timedOut, withDeadline } from '../../kernel/background.js';
import { errorText } from '../../kernel/errors.js';
import { assertWritable, type CommitOutcome, type Durability, type Environment } from './environment.js';
import type { Key } from './lmdb.js';
import { bounds } from '../bounds.js';
import { tuning } from './tuning.js';

/** What an operation reads and changes: the committed state with the group's writes on top. */
export interface Batch<Name extends string> {
  get(database: Name, key: Key): Buffer | undefined;
  /** @throws RangeError for a key or value that cannot be stored */
  put(database: Name, key: Key, value: Buffer): void;
  remove(database: Name, key: Key): void;
}

export type Written<T> =
  { readonly kind: 'durable'; readonly value: T } | Exclude<CommitOutcome, { readonly kind: 'durable' }>;

export interface GroupWriter<Name extends string> {
  /**
   * Runs a synchronous operation in the next group. Resolves when its writes, and the writes it saw, are durable, or
   * visible if that is enough; after `bounds.appendTimeoutMs` at the latest.
   * @param durability how far its writes have got when it resolves: flushed to disk, unless it says visible to reads
   * @throws what the operation throws; then none of its changes is written
   */
  run<T>(operation: (batch: Batch<Name>) => T, durability?: Durability): Promise<Written<T>>;
  /** True when the last commit failed: a probe should then try a write. */
  failing(): boolean;
  /** Writes what is queued and refuses new operations. */
  close(): Promise<void>;
}

interface Waiting<Name extends string> {
  state: 'queued' | 'running' | 'done';
  readonly durability: Durability;
  execute(batch: Batch<Name>): void;
  /** Tells the caller the outcome. */
  settle(outcome: CommitOutcome): void;
}

/** The contents of one commit. */
interface Group<Name extends string> {
  readonly changed: Changed<Name>;
  readonly members: Waiting<Name>[];
  /** Size of all keys and values, roughly. */
  bytes: number;
}

/** An operation waiting for its group, and the answer to its caller. */
function waitingOf<Name extends string, T>(
  operation: (batch: Batch<Name>) => T,
  durability: Durability,
): { readonly waiting: Waiting<Name>; readonly answered: Promise<Written<T>> } {
  let result: { readonly value: T } | undefined;
  let resolve: (outcome: Written<T>) => void = () => undefined;
  let reject: (error: unknown) => void = () => undefined;
  const answered = new Promise<Written<T>>((...settle) => {
    [resolve, reject] = settle;
  });
  const waiting: Waiting<Name> = {
    state: 'queued',
    durability,
    execute(batch) {
      try {
        result = { value: operation(batch) };
      } catch (error) {
        waiting.state = 'done';
        reject(error);
        throw error;
      }
    },
    settle(outcome) {
      waiting.state = 'done';
      if (outcome.kind !== 'durable') resolve(outcome);
      else if (result !== undefined) resolve({ kind: 'durable', value: result.value });
    },
  };
  return { waiting, answered };
}

/** The changes of one database: the last change of each key, as latin-1 text. */
type Entries = Map<string, Buffer | undefined>;
type Changed<Name extends string> = Map<Name, Entries>;

/** The group does not change the key. */
const absent = Symbol('absent');

const textOf = (key: Key): string => (typeof key === 'string' ? key : key.toString('latin1'));

/** Reads the environment beneath the group's changes, and can undo the changes of one operation. */
function layered<Name extends string>(
  environment: Environment<Name>,
  changed: Changed<Name>,
): { readonly batch: Batch<Name>; bytes(): number; undo(): void } {
  const before: {
    readonly entries: Entries;
    readonly key: string;
    readonly value: Buffer | undefined | typeof absent;
  }[] = [];
  let bytes = 0;
  const set = (database: Name, key: Key, value: Buffer | undefined): void => {
    const text = textOf(key);
    assertWritable(text, value);
    bytes += text.length + (value?.length ?? 0);
    const entries: Entries = changed.get(database) ?? new Map();
    changed.set(database, entries);
    before.push({ entries, key: text, value: entries.has(text) ? entries.get(text) : absent });
    entries.set(text, value);
  };
  return {
    batch: {
      get(database, key) {
        const entries = changed.get(database);
        const text = textOf(key);
        return entries?.has(text) === true ? entries.get(text) : environment.get(database, text);
      },
      put: set,
      remove: (database, key) => set(database, key, undefined),
    },
    bytes: () => bytes,
    undo() {
      for (const { entries, key, value } of before.reverse()) {
        if (value === absent) entries.delete(key);
        else entries.set(key, value);
      }
    },
  };
}

/**
 * @param onCommit called after each commit, whatever its outcome and even if its callers no longer wait: reads may now
 *   give different results
 */
export function createGroupWriter<Name extends string>(
  environment: Environment<Name>,
  onCommit: () => void = () => undefined,
): GroupWriter<Name> {
  let queue: Waiting<Name>[] = [];
  let busy = false;
  let scheduled = false;
  let failed = false;
  /** The newest writes are visible, but perhaps not yet on disk. */
  let unflushed = false;
  let closing = false;
  let idle: (() => void) | undefined;

  function schedule(): void {
    if (busy || scheduled) return;
    scheduled = true;
    // At the end of this turn of the event loop, so that all callers of this turn share the flush.
    setImmediate(() => {
      scheduled = false;
      void turn();
    });
  }

  /** Takes operations until the group is full or the turn has lasted long enough. */
  function gather(group: Group<Name>): void {
    let taken = 0;
    const until = performance.now() + tuning.groupMs;
    for (const waiting of queue) {
      if (group.bytes >= tuning.groupBytes || group.members.length >= tuning.groupOperations) break;
      if (performance.now() > until) break;
      taken += 1;
      if (waiting.state !== 'queued') continue;
      waiting.state = 'running';
      const { batch, bytes, undo } = layered(environment, group.changed);
      try {
        waiting.execute(batch);
      } catch {
        undo(); // The caller knows already; drop the operation's changes.
        continue;
      }
      group.bytes += bytes();
      group.members.push(waiting);
    }
    queue = queue.slice(taken);
  }

  async function turn(): Promise<void> {
    busy = true;
    const group: Group<Name> = { changed: new Map(), members: [], bytes: 0 };
    gather(group);
    let outcome: CommitOutcome = { kind: 'durable' };
    const { changed, members } = group;
    const durability = members.some((member) => member.durability === 'flushed') ? 'flushed' : 'visible';
    // An operation that changes nothing may depend on the writes it has seen.
    const changes = [...changed].filter(([, entries]) => entries.size > 0);
    if (changes.length > 0 || (unflushed && durability === 'flushed')) {
      outcome = await environment
        .commit(changes, durability)
        .catch((error: unknown) => ({ kind: 'unknown' as const, cause: errorText(error) }));
      failed = outcome.kind !== 'durable';
      unflushed = outcome.kind === 'unknown' || (outcome.kind === 'durable' ? durability === 'visible' : unflushed);
      onCommit();
    }
    for (const member of members) member.settle(outcome);
    busy = false;
    if (queue.length > 0) schedule();
    else idle?.();
  }

  return {
    async run<T>(operation: (batch: Batch<Name>) => T, durability: Durability = 'flushed'): Promise<Written<T>> {
      if (closing) return { kind: 'not_written', cause: 'the store is closed' };
      if (queue.length >= tuning.writeQueue) return { kind: 'not_written', cause: 'too many writes are waiting' };
      const { waiting, answered } = waitingOf(operation, durability);
      queue.push(waiting);
      schedule();
      const answer = await withDeadline(answered, bounds.appendTimeoutMs);
      if (answer !== timedOut) return answer;
      if (waiting.state === 'queued') {
        waiting.state = 'done';
        return { kind: 'not_written', cause: 'the disk is too slow: the write was not started in time' };
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
        bounds.appendTimeoutMs,
      );
    },
  };
}
