/**
 * State that can be rolled back. Tables, cells and indexes record in one journal how to undo each change, so rolling back a
 * command costs as much as the command changed. Values are immutable; only the containers change.
 * Implements `docs/contract/domain.md#commands-and-events`.
 */

/** A point to roll back to. */
type Mark = number;

export interface Journal {
  mark(): Mark;
  /** Undoes everything since the mark, newest first. */
  rollback(to: Mark): void;
  /** Makes all changes final. */
  commit(): void;
  /** False while nothing can be rolled back: then nobody need make an undo. */
  readonly recording: boolean;
  record(undo: () => void): void;
  /** Makes changes that are final at once: of a fold that is restored, which is dropped when that fails. */
  unrecorded(change: () => void): void;
}

export function createJournal(): Journal {
  let undos: (() => void)[] = [];
  let recording = true;
  return {
    get recording() {
      return recording;
    },
    mark: () => undos.length,
    rollback(to) {
      while (undos.length > to) undos.pop()?.();
    },
    commit() {
      undos = [];
    },
    record(undo) {
      undos.push(undo);
    },
    unrecorded(change) {
      recording = false;
      try {
        change();
      } finally {
        recording = true;
      }
    },
  };
}

export interface Cell<V> {
  readonly value: V;
  set(value: V): void;
}

export function createCell<V>(journal: Journal, initial: V): Cell<V> {
  let current = initial;
  return {
    get value() {
      return current;
    },
    set(value) {
      if (journal.recording) {
        const previous = current;
        journal.record(() => {
          current = previous;
        });
      }
      current = value;
    },
  };
}

/** No row is undefined. */
export interface Table<V> {
  readonly size: number;
  get(id: string): V | undefined;
  has(id: string): boolean;
  set(id: string, value: V): void;
  delete(id: string): void;
  ids(): IterableIterator<string>;
  values(): IterableIterator<V>;
  entries(): IterableIterator<[string, V]>;
}

export function createTable<V>(journal: Journal): Table<V> {
  const rows = new Map<string, V>();
  const restore =
    (id: string, previous: V | undefined): (() => void) =>
    () => {
      if (previous === undefined) rows.delete(id);
      else rows.set(id, previous);
    };
  return {
    get size() {
      return rows.size;
    },
    get: (id) => rows.get(id),
    has: (id) => rows.has(id),
    set(id, value) {
      if (journal.recording) journal.record(restore(id, rows.get(id)));
      rows.set(id, value);
    },
    delete(id) {
      const previous = rows.get(id);
      if (previous === undefined) return;
      if (journal.recording) journal.record(restore(id, previous));
      rows.delete(id);
    },
    ids: () => rows.keys(),
    values: () => rows.values(),
    entries: () => rows.entries(),
  };
}

/** Many values per key. Adding or removing a value takes constant time. */
export interface Index {
  add(key: string, value: string): void;
  remove(key: string, value: string): void;
  get(key: string): ReadonlySet<string>;
  entries(): IterableIterator<[string, ReadonlySet<string>]>;
}

const noValues: ReadonlySet<string> = new Set();

export function createIndex(journal: Journal): Index {
  const sets = new Map<string, Set<string>>();
  const insert = (key: string, value: string): void => {
    const set = sets.get(key);
    if (set === undefined) sets.set(key, new Set([value]));
    else set.add(value);
  };
  const erase = (key: string, value: string): void => {
    const set = sets.get(key);
    set?.delete(value);
    if (set?.size === 0) sets.delete(key);
  };
  return {
    add(key, value) {
      if (sets.get(key)?.has(value) === true) return;
      if (journal.recording) journal.record(() => erase(key, value));
      insert(key, value);
    },
    remove(key, value) {
      if (sets.get(key)?.has(value) !== true) return;
      if (journal.recording) journal.record(() => insert(key, value));
      erase(key, value);
    },
    get: (key) => sets.get(key) ?? noValues,
    entries: () => sets.entries(),
  };
}
