/**
 * Lists as answers show them: a page by its number, or a step of a walk, which shows each item that exists throughout
 * the walk exactly once. Pure. Implements `docs/contract/rest.md#envelope`, list queries.
 */
import { compareText } from './compare-text.js';

/** A place in a walk, just after an item: the item's creation and id. */
export type ListPlace = readonly [createdAt: string, id: string];

export interface ListQuery {
  /** 1-based. */
  readonly page: number;
  readonly pageSize: number;
  readonly sort: 'name' | 'created_at' | 'updated_at' | '-name' | '-created_at' | '-updated_at';
  /** Case-insensitive substring of the name. */
  readonly q?: string | undefined;
  /** In a walk: the last item shown; such a list is sorted by creation. */
  readonly behind?: ListPlace | 'start' | undefined;
}

export interface ListOf<T> {
  readonly items: readonly T[];
  /** The number of all matches, wherever a walk is. */
  readonly total: number;
  /** In a walk: the place after the last item; null at the end. */
  readonly next?: ListPlace | null;
}

interface Listed {
  readonly id: string;
  readonly created_at: string;
}

/** @param sorted everything that matches, in the order of `sort` */
export function pieceOf<S extends Listed>(
  sorted: Iterable<S>,
  { page, pageSize, sort, behind }: Omit<ListQuery, 'q'>,
): ListOf<S> {
  const skip = behind === undefined ? (page - 1) * pageSize : 0;
  const sign = sort.startsWith('-') ? -1 : 1;
  const items: S[] = [];
  let [total, reached] = [0, 0];
  for (const item of sorted) {
    total += 1;
    if (behind !== undefined && behind !== 'start' && !isBehind(item, behind, sign)) continue;
    if (reached >= skip && items.length < pageSize) items.push(item);
    reached += 1;
  }
  if (behind === undefined) return { items, total };
  const last = items.at(-1);
  const isEnd = last === undefined || reached === items.length;
  return { items, total, next: isEnd ? null : [last.created_at, last.id] };
}

const isBehind = ({ id, created_at }: Listed, [at, lastId]: ListPlace, sign: number): boolean =>
  (sign * compareText(created_at, at) || compareText(id, lastId)) > 0;
