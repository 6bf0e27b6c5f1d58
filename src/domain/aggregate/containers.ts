/**
 * The containers of an aggregate's state (cells, tables, indexes), and drafts of them: a draft reads through to its base
 * and keeps its own changes until they are merged or dropped. So a try costs only what it changes, and nobody else sees it.
 * Values are immutable; only the containers change. Implements `docs/contract/domain.md#commands-and-events`.
 */

/** The changes of one container of a draft; empty again once merged or dropped. */
interface Change {
  merge(): void;
  drop(): void;
}

interface Container<Self> {
  /** A draft of this container, which registers itself in `changes` with its first change. */
  draft(changes: Change[]): Self;
}

export interface Cell<V> extends Container<Cell<V>> {
  readonly value: V;
  set(value: V): void;
}

/** No row is undefined. */
export interface Table<V> extends Container<Table<V>> {
  readonly size: number;
  get(id: string): V | undefined;
  has(id: string): boolean;
  set(id: string, value: V): void;
  delete(id: string): void;
  ids(): IterableIterator<string>;
  values(): IterableIterator<V>;
  entries(): IterableIterator<[string, V]>;
}

/** The values of one key of an index. A set is one. */
export interface Values extends Iterable<string> {
  readonly size: number;
  has(value: string): boolean;
}

/** Many values per key. Adding or removing a value takes constant time. */
export interface Index extends Container<Index> {
  add(key: string, value: string): void;
  remove(key: string, value: string): void;
  get(key: string): Values;
  /** The keys that have values. */
  keys(): IterableIterator<string>;
}

/** An object whose fields are containers, or such objects. */
type Tree = { readonly [field: string]: object };

/** Changes that only their holder sees. After `merge` or `drop` the draft equals its base. */
export interface Draft<State> {
  readonly state: State;
  /** Makes the changes in the base, which must not have changed since the first of them. */
  merge(): void;
  drop(): void;
}

/** A draft of all containers of a state. */
export function draftOf<State extends object>(state: State): Draft<State> {
  const changes: Change[] = [];
  const draft = (node: object): object =>
    isContainer(node)
      ? node.draft(changes)
      : Object.fromEntries(Object.entries(node as Tree).map(([field, inner]) => [field, draft(inner)]));
  return {
    // Every field has the kind of its original.
    state: draft(state) as State,
    merge: () => changes.splice(0).forEach((change) => change.merge()),
    drop: () => changes.splice(0).forEach((change) => change.drop()),
  };
}

const isContainer = (node: object): node is Container<object> => 'draft' in node;

export function createCell<V>(initial: V): Cell<V> {
  let value = initial;
  const cell: Cell<V> = {
    get value() {
      return value;
    },
    set(next) {
      value = next;
    },
    draft: (changes) => draftCell(cell, changes),
  };
  return cell;
}

function draftCell<V>(base: Cell<V>, changes: Change[]): Cell<V> {
  let changed: { readonly value: V } | undefined;
  const change: Change = {
    merge() {
      if (changed !== undefined) base.set(changed.value);
      changed = undefined;
    },
    drop() {
      changed = undefined;
    },
  };
  const cell: Cell<V> = {
    get value() {
      return changed === undefined ? base.value : changed.value;
    },
    set(value) {
      if (changed === undefined) changes.push(change);
      changed = { value };
    },
    draft: (deeper) => draftCell(cell, deeper),
  };
  return cell;
}

export function createTable<V>(): Table<V> {
  const rows = new Map<string, V>();
  const table: Table<V> = {
    get size() {
      return rows.size;
    },
    get: (id) => rows.get(id),
    has: (id) => rows.has(id),
    set: (id, value) => void rows.set(id, value),
    delete: (id) => void rows.delete(id),
    ids: () => rows.keys(),
    values: () => rows.values(),
    entries: () => rows.entries(),
    draft: (changes) => draftTable(table, changes),
  };
  return table;
}

function draftTable<V>(base: Table<V>, changes: Change[]): Table<V> {
  /** The rows that differ; undefined for a deleted one. */
  const changed = new Map<string, V | undefined>();
  let added = 0;
  const get = (id: string): V | undefined => (changed.has(id) ? changed.get(id) : base.get(id));
  const put = (id: string, value: V | undefined): void => {
    if (changed.size === 0) changes.push(change);
    added += Number(value !== undefined) - Number(get(id) !== undefined);
    changed.set(id, value);
  };
  const change: Change = {
    merge() {
      for (const [id, value] of changed) {
        if (value === undefined) base.delete(id);
        else base.set(id, value);
      }
      change.drop();
    },
    drop() {
      changed.clear();
      added = 0;
    },
  };
  function* merged(): IterableIterator<[string, V]> {
    for (const [id, value] of base.entries()) {
      const now = changed.has(id) ? changed.get(id) : value;
      if (now !== undefined) yield [id, now];
    }
    for (const [id, value] of changed) if (value !== undefined && !base.has(id)) yield [id, value];
  }
  function* mergedIds(): IterableIterator<string> {
    for (const [id] of merged()) yield id;
  }
  function* mergedValues(): IterableIterator<V> {
    for (const [, value] of merged()) yield value;
  }
  const table: Table<V> = {
    get size() {
      return base.size + added;
    },
    get,
    has: (id) => get(id) !== undefined,
    set: put,
    delete: (id) => put(id, undefined),
    // Without changes, walks at the speed of the base, which may be a draft too.
    ids: () => (changed.size === 0 ? base.ids() : mergedIds()),
    values: () => (changed.size === 0 ? base.values() : mergedValues()),
    entries: () => (changed.size === 0 ? base.entries() : merged()),
    draft: (deeper) => draftTable(table, deeper),
  };
  return table;
}

const noValues: Values = new Set<string>();

export function createIndex(): Index {
  const sets = new Map<string, Set<string>>();
  const index: Index = {
    add(key, value) {
      const set = sets.get(key);
      if (set === undefined) sets.set(key, new Set([value]));
      else set.add(value);
    },
    remove(key, value) {
      const set = sets.get(key);
      set?.delete(value);
      if (set?.size === 0) sets.delete(key);
    },
    get: (key) => sets.get(key) ?? noValues,
    keys: () => sets.keys(),
    draft: (changes) => draftIndex(index, changes),
  };
  return index;
}

function draftIndex(base: Index, changes: Change[]): Index {
  /** Key → value → whether the draft has it; only values that differ. */
  const changed = new Map<string, Map<string, boolean>>();
  const put = (key: string, value: string, present: boolean): void => {
    if (changed.size === 0) changes.push(change);
    const values = changed.get(key) ?? new Map<string, boolean>();
    changed.set(key, values);
    if (base.get(key).has(value) === present) values.delete(value);
    else values.set(value, present);
  };
  const change: Change = {
    merge() {
      for (const [key, values] of changed) {
        for (const [value, present] of values) {
          if (present) base.add(key, value);
          else base.remove(key, value);
        }
      }
      changed.clear();
    },
    drop: () => changed.clear(),
  };
  const get = (key: string): Values => {
    const values = changed.get(key);
    return values === undefined || values.size === 0 ? base.get(key) : changedValues(base.get(key), values);
  };
  const index: Index = {
    add: (key, value) => put(key, value, true),
    remove: (key, value) => put(key, value, false),
    get,
    *keys() {
      for (const key of base.keys()) if (get(key).size > 0) yield key;
      for (const key of changed.keys()) if (base.get(key).size === 0 && get(key).size > 0) yield key;
    },
    draft: (deeper) => draftIndex(index, deeper),
  };
  return index;
}

function changedValues(base: Values, changed: ReadonlyMap<string, boolean>): Values {
  return {
    get size() {
      let { size } = base;
      for (const present of changed.values()) size += present ? 1 : -1;
      return size;
    },
    has: (value) => changed.get(value) ?? base.has(value),
    *[Symbol.iterator]() {
      for (const value of base) if (changed.get(value) !== false) yield value;
      for (const [value, present] of changed) if (present) yield value;
    },
  };
}
