/**
 * Group commit: operations run one after the other, each sees the writes of those before it, and all share one
 * transaction and its flush. One group is in flight at a time; while it flushes, the next one gathers. `environment.ts`
 * wraps LMDB; the callers know what keys mean.
 */
import { timedOut, withDeadline, yieldToEventLoop } from '../../kernel/background.js';
import { errorText } from '../../kernel/errors.js';
import { assertWritable } from './environment.js';
import type { Durability, Environment } from './environment.js';
import type { Key } from './lmdb.js';
import { bounds } from '../bounds.js';
import { tuning } from './tuning.js';

/** An operation's view: the committed state with the group's writes on top. */
export interface Batch<Name extends string> {
  get(database: Name, key: Key): Buffer | undefined;
  /** @throws RangeError for a key or a value that cannot be stored */
  put(database: Name, key: Key, value: Buffer): void;
  remove(database: Name, key: Key): void;
  /** Empties a database that is not read through the batch, before anything that the group writes to it. */
  clear(database: Name): void;
}

export interface RunOptions {
  /** One of many operations of one caller. Its group may gather over several turns of the event loop. */
  readonly bulk?: boolean;
  /** What its writes have reached when it resolves: on the disk (`flushed`, when absent), or in what is read. */
  readonly durability?: Durability;
  /** Runs as the first of its group, so that reading the environment directly misses nothing. */
  readonly first?: boolean;
}

export type Written<T> =
  | { readonly kind: 'durable'; readonly value: T }
  | { readonly kind: 'not_written'; readonly cause: string }
  | { readonly kind: 'unknown'; readonly cause: string };

export interface GroupWriter<Name extends string> {
  /**
   * Runs a synchronous operation in the next group. Resolves when its writes, and those that it has seen, are durable, or
   * visible if that is enough, after `bounds.appendTimeoutMs` at the latest.
   * @throws what the operation throws; nothing of it is written then
   */
  run<T>(operation: (batch: Batch<Name>) => T, options?: RunOptions): Promise<Written<T>>;
  /** True when the last commit failed: a probe should then try a write. */
  failing(): boolean;
  /** Writes what is queued and refuses new operations. */
  close(): Promise<void>;
}

interface Waiting<Name extends string> {
  state: 'queued' | 'running' | 'done';
  readonly bulk: boolean;
  readonly first: boolean;
  readonly durability: Durability;
  execute(batch: Batch<Name>): void;
  /** Reports the outcome to the caller. */
  settle(outcome: Written<undefined>): void;
}

/** The writes of one commit. */
interface Group<Name extends string> {
  readonly changed: Changed<Name>;
  readonly members: Waiting<Name>[];
  operations: number;
  changes: number;
  bytes: number;
}

const isFull = ({ operations, bytes, changes }: Group<string>, bulk: boolean): boolean =>
  bytes >= tuning.groupBytes || (bulk ? changes >= tuning.bulkChanges : operations >= tuning.groupOperations);

/** An operation as it waits for its group, and what its caller is answered. */
function waitingOf<Name extends string, T>(
  operation: (batch: Batch<Name>) => T,
  { bulk = false, first = false, durability = 'flushed' }: RunOptions,
): { readonly waiting: Waiting<Name>; readonly answered: Promise<Written<T>> } {
  let result: { readonly value: T } | undefined;
  let resolve: (outcome: Written<T>) => void = () => undefined;
  let reject: (error: unknown) => void = () => undefined;
  const answered = new Promise<Written<T>>((...settle) => {
    [resolve, reject] = settle;
  });
  const waiting: Waiting<Name> = {
    state: 'queued',
    bulk,
    first,
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

/** True for databases that operations change and never read through the batch. */
type Unread<Name extends string> = (database: Name) => boolean;

/** The changes of a group in a database that operations read: the last change of each key, as latin-1 text. */
type Entries = Map<string, Buffer | undefined>;

interface Changed<Name extends string> {
  readonly overlay: Map<Name, Entries>;
  /** Writes to databases that no operation reads, in order: a list costs less than a map of that many keys. */
  readonly lists: Map<Name, (readonly [key: string, value: Buffer | undefined])[]>;
  readonly cleared: Set<Name>;
}

/** The group has no change of the key. */
const absent = Symbol('absent');

const textOf = (key: Key): string => (typeof key === 'string' ? key : key.toString('latin1'));

/** The value of a map, created if missing. */
function ofKey<K, V>(map: Map<K, V>, key: K, create: () => V): V {
  const present = map.get(key);
  if (present !== undefined) return present;
  const created = create();
  map.set(key, created);
  return created;
}

/** Reads of the environment beneath the group's changes, and a way to undo the changes of one operation. */
function layered<Name extends string>(
  environment: Environment<Name>,
  { overlay, lists, cleared }: Changed<Name>,
  unread: Unread<Name>,
): { readonly batch: Batch<Name>; bytes(): number; changes(): number; undo(): void } {
  const before: {
    readonly entries: Entries;
    readonly key: string;
    readonly value: Buffer | undefined | typeof absent;
  }[] = [];
  const lengths = new Map([...lists].map(([name, list]) => [name, list.length]));
  const clearedHere: Name[] = [];
  let [bytes, changes] = [0, 0];
  const set = (database: Name, key: Key, value: Buffer | undefined): void => {
    const text = textOf(key);
    assertWritable(text, value);
    bytes += text.length + (value?.length ?? 0);
    if (unread(database)) {
      ofKey(lists, database, () => []).push([text, value]);
      changes += 1;
      return;
    }
    const entries = ofKey<Name, Entries>(overlay, database, () => new Map());
    const earlier = entries.get(text);
    const isNew = earlier === undefined && !entries.has(text);
    before.push({ entries, key: text, value: isNew ? absent : earlier });
    entries.set(text, value);
    if (isNew) changes += 1;
  };
  return {
    batch: {
      get(database, key) {
        if (unread(database)) throw new Error(`operations do not read the database ${database}`);
        const entries = overlay.get(database);
        if (entries === undefined) return environment.get(database, key);
        const text = textOf(key);
        const change = entries.get(text);
        return change === undefined && !entries.has(text) ? environment.get(database, text) : change;
      },
      put: set,
      remove: (database, key) => set(database, key, undefined),
      clear(database) {
        if (!unread(database)) throw new Error(`operations read the database ${database}`);
        if (cleared.has(database)) return;
        cleared.add(database);
        clearedHere.push(database);
        changes += 1;
      },
    },
    bytes: () => bytes,
    changes: () => changes,
    undo() {
      for (const { entries, key, value } of before.reverse()) {
        if (value === absent) entries.delete(key);
        else entries.set(key, value);
      }
      for (const name of clearedHere) cleared.delete(name);
      for (const [name, list] of lists) list.length = lengths.get(name) ?? 0;
    },
  };
}

export function createGroupWriter<Name extends string>(
  environment: Environment<Name>,
  unread: Unread<Name> = () => false,
): GroupWriter<Name> {
  let queue: Waiting<Name>[] = [];
  let busy = false;
  let scheduled = false;
  let failed = false;
  /** The newest writes are visible and not known to be on the disk. */
  let unflushed = false;
  let closing = false;
  let idle: (() => void) | undefined;

  function schedule(): void {
    if (busy || scheduled) return;
    scheduled = true;
    // After this turn of the event loop, so that all callers of this turn share the flush.
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
      if (isFull(group, waiting.bulk) || performance.now() > until) break;
      if (waiting.first && group.operations > 0) break;
      taken += 1;
      if (waiting.state !== 'queued') continue;
      waiting.state = 'running';
      const { batch, bytes, changes, undo } = layered(environment, group.changed, unread);
      try {
        waiting.execute(batch);
      } catch {
        undo(); // The caller knows already; drop the operation's changes.
        continue;
      }
      group.bytes += bytes();
      group.changes += changes();
      group.operations += 1;
      group.members.push(waiting);
    }
    queue = queue.slice(taken);
  }

  async function turn(): Promise<void> {
    busy = true;
    const group: Group<Name> = {
      changed: { overlay: new Map(), lists: new Map(), cleared: new Set() },
      members: [],
      operations: 0,
      changes: 0,
      bytes: 0,
    };
    gather(group);
    // Large commits make bulk writes fast: a page that many of the changes touch is written once.
    while (queue[0]?.bulk === true && !isFull(group, true)) {
      await yieldToEventLoop();
      gather(group);
    }
    let outcome: Written<undefined> = { kind: 'durable', value: undefined };
    const { changed, members } = group;
    const durability = members.some((member) => member.durability === 'flushed') ? 'flushed' : 'visible';
    // An operation that changes nothing may rest on what it has seen.
    if (group.changes > 0 || (unflushed && durability === 'flushed')) {
      const committed = await environment
        .commit([...changed.overlay, ...changed.lists], [...changed.cleared], durability)
        .catch((error: unknown) => ({
          kind: 'unknown' as const,
          cause: errorText(error),
        }));
      outcome = committed.kind === 'durable' ? { kind: 'durable', value: undefined } : committed;
      failed = outcome.kind !== 'durable';
      unflushed = outcome.kind === 'unknown' || (outcome.kind === 'durable' ? durability === 'visible' : unflushed);
    }
    for (const member of members) member.settle(outcome);
    busy = false;
    if (queue.length > 0) schedule();
    else idle?.();
  }

  return {
    async run<T>(operation: (batch: Batch<Name>) => T, options: RunOptions = {}): Promise<Written<T>> {
      if (closing) return { kind: 'not_written', cause: 'the store is closed' };
      if (queue.length >= tuning.writeQueue) return { kind: 'not_written', cause: 'too many writes are waiting' };
      const { waiting, answered } = waitingOf(operation, options);
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
