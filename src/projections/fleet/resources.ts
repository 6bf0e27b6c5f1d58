/**
 * List and get for every declared resource, from the tables of the committed fleet. Each order is kept once it has been
 * used, and later changes are merged into it: a page costs a walk over the rows, never a sort. Implements
 * `docs/architecture.md#adding-a-resource` and `docs/contract/rest.md#envelope`, list queries.
 */
import type { Fleet } from '../../domain/fleet/fleet.js';
import {
  declarationOf,
  plainTypes,
  type AnyState,
  type PlainType,
  type StateOf,
} from '../../domain/fleet/resources.js';
import type { Table } from '../../domain/aggregate/containers.js';
import { pieceOf, type ListOf, type ListQuery } from '../../kernel/list.js';
import type { ResourceQueries, ResourceListQuery } from '../port.js';
import { nameKey, sortKey, type ResourceMeta } from '../../domain/resource/meta.js';
import { compareText } from '../../kernel/compare-text.js';

/** @param fleet the committed fleet */
export function resourceQueries(type: PlainType | 'node', fleet: () => Fleet): ResourceQueries<AnyState> {
  const { sealed = [] } = declarationOf(type);
  const secrets = Object.fromEntries(sealed.map((field) => [field, null]));
  const shown = (state: AnyState): AnyState => (sealed.length === 0 ? state : { ...state, ...secrets });
  const states = (): Table<AnyState> => fleet().tables[type] as Table<AnyState>;
  const list = createSortedList(states, () => fleet().revision.value);
  return {
    get(id) {
      const state = states().get(id);
      return state === undefined ? undefined : shown(state);
    },
    list(query) {
      const { items, ...rest } = list.page(query);
      return { items: items.map(shown), ...rest };
    },
  };
}

type AllQueries = { readonly [T in PlainType]: ResourceQueries<StateOf<T>> };

/** The queries of all plain resources. @param fleet the committed fleet */
export const allResourceQueries = (fleet: () => Fleet): AllQueries =>
  Object.fromEntries(plainTypes.map((type) => [type, resourceQueries(type, fleet)])) as AllQueries;

type Listed = ResourceMeta & { readonly name: string };

/** A state with the keys by which its name is sorted and searched. */
interface Row<S> {
  readonly state: S;
  readonly nameKey: string;
  readonly sortKey: string;
}

/** The states to list, by id. A changed state is another object. */
interface States<S> {
  readonly size: number;
  get(id: string): S | undefined;
  values(): Iterable<S>;
}

interface Order<S> {
  readonly of: States<S>;
  readonly at: number;
  readonly rows: readonly Row<S>[];
}

export interface SortedList<S> {
  /** The page of the states that match, sorted, then by id. */
  page(query: ResourceListQuery<S>): ListOf<S>;
}

/**
 * @param stamp differs whenever a state may have changed
 * @internal exported for tests
 */
export function createSortedList<S extends Listed>(states: () => States<S>, stamp: () => number): SortedList<S> {
  const orders = new Map<ListQuery['sort'], Order<S>>();

  const inOrder = (sort: ListQuery['sort']): readonly Row<S>[] => {
    const [last, of, at] = [orders.get(sort), states(), stamp()];
    // A replay of the log makes new states, perhaps at the same stamp.
    if (last?.of === of && last.at === at) return last.rows;
    const rows = renewed(last?.rows ?? [], of, comparisonOf(sort));
    orders.set(sort, { of, at, rows });
    return rows;
  };

  return {
    page(query) {
      return pieceOf(matching(inOrder(query.sort), query), query);
    },
  };
}

function* matching<S>(
  rows: readonly Row<S>[],
  { q, matches = () => true, mentions }: ResourceListQuery<S>,
): Generator<S> {
  const searched = q === undefined ? undefined : nameKey(q);
  const isFound = ({ state, nameKey: name }: Row<S>): boolean =>
    searched === undefined || name.includes(searched) || mentions?.(state, searched) === true;
  for (const row of rows) if (isFound(row) && matches(row.state)) yield row.state;
}

type Compare = (a: Row<Listed>, b: Row<Listed>) => number;

function comparisonOf(sort: ListQuery['sort']): Compare {
  const field = sort.replace('-', '') as 'name' | 'created_at' | 'updated_at';
  const sign = sort.startsWith('-') ? -1 : 1;
  const keyOf = (row: Row<Listed>): string => (field === 'name' ? row.sortKey : row.state[field]);
  return (a, b) => sign * compareText(keyOf(a), keyOf(b)) || compareText(a.state.id, b.state.id);
}

const rowOf = <S extends Listed>(state: S): Row<S> => ({
  state,
  nameKey: nameKey(state.name),
  sortKey: sortKey(state.name),
});

/** The rows of all states in order. @param before earlier rows in the same order, some of them out of date */
function renewed<S extends Listed>(before: readonly Row<S>[], states: States<S>, compare: Compare): readonly Row<S>[] {
  const kept = before.filter(({ state }) => states.get(state.id) === state);
  if (kept.length === states.size) return kept;
  const known = new Set(kept.map(({ state }) => state));
  const others: Row<S>[] = [];
  for (const state of states.values()) if (!known.has(state)) others.push(rowOf(state));
  others.sort(compare);
  const rows: Row<S>[] = [];
  let next = 0;
  for (const row of kept) {
    for (let other = others[next]; other !== undefined && compare(other, row) < 0; other = others[next]) {
      rows.push(other);
      next += 1;
    }
    rows.push(row);
  }
  for (; next < others.length; next += 1) rows.push(others[next] as Row<S>);
  return rows;
}
