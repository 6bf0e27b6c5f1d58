/** A page of the accounts held in memory, sorted on request. Implements `docs/contract/rest.md#envelope`. */
import { nameKey, sortKey } from '../domain/resource/meta.js';
import { compareText } from '../kernel/compare-text.js';
import { unreachable } from '../kernel/errors.js';
import { pieceOf, type ListOf, type ListQuery } from '../kernel/list.js';

interface Listed {
  readonly id: string;
  readonly created_at: string;
  readonly updated_at: string;
}

export function pageOf<T extends Listed>(all: Iterable<T>, query: ListQuery, nameOf: (item: T) => string): ListOf<T> {
  const { q, sort } = query;
  const holds = (item: T): boolean => q === undefined || nameKey(nameOf(item)).includes(nameKey(q));
  const key = keyOf<T>(sort, (item) => sortKey(nameOf(item)));
  const direction = sort.startsWith('-') ? -1 : 1;
  const sorted = [...all]
    .filter(holds)
    .map((item) => ({ item, key: key(item) }))
    .sort((a, b) => direction * compareText(a.key, b.key) || compareText(a.item.id, b.item.id));
  return pieceOf(
    sorted.map(({ item }) => item),
    query,
  );
}

function keyOf<T extends Listed>(sort: ListQuery['sort'], name: (item: T) => string): (item: T) => string {
  switch (sort) {
    case 'name':
    case '-name':
      return name;
    case 'created_at':
    case '-created_at':
      return ({ created_at }) => created_at;
    case 'updated_at':
    case '-updated_at':
      return ({ updated_at }) => updated_at;
    default:
      return unreachable(sort);
  }
}
