/** A page of the accounts held in memory, sorted on request. Implements `docs/contract/rest.md#envelope`. */
import type { AccountListQuery } from '../commands/handlers-port.js';
import { nameKey } from '../domain/resource/meta.js';
import { compareText } from '../kernel/compare-text.js';
import { unreachable } from '../kernel/errors.js';

interface Listed {
  readonly id: string;
  readonly created_at: string;
  readonly updated_at: string;
}

export function pageOf<T extends Listed>(
  all: Iterable<T>,
  { q, sort, page, pageSize }: AccountListQuery,
  nameOf: (item: T) => string,
): { readonly items: readonly T[]; readonly total: number } {
  const name = (item: T): string => nameKey(nameOf(item));
  const matching = q === undefined ? [...all] : [...all].filter((item) => name(item).includes(nameKey(q)));
  const key = keyOf<T>(sort, name);
  const direction = sort.startsWith('-') ? -1 : 1;
  matching.sort((a, b) => direction * compareText(key(a), key(b)) || compareText(a.id, b.id));
  const skip = (page - 1) * pageSize;
  return { items: matching.slice(skip, skip + pageSize), total: matching.length };
}

function keyOf<T extends Listed>(sort: AccountListQuery['sort'], name: (item: T) => string): (item: T) => string {
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
