/** What queries must return, computed naively from a list of documents. */
import type { Fields, GroupQuery, IndexSpec } from '../../../src/storage/read-store.js';

export interface PlainDocument {
  readonly id: string;
  readonly fields: Fields;
}

const byCodePoint = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));

/** Ids of the page, and how many documents are in the range. */
export function naiveQuery(
  documents: readonly PlainDocument[],
  index: IndexSpec,
  { groups, from, below, times, direction, skip = 0, limit }: GroupQuery,
): { readonly ids: string[]; readonly total: number } {
  const groupsOf = ({ fields }: PlainDocument): readonly unknown[] => [fields[index.group]].flat();
  const orderOf = ({ fields }: PlainDocument): string => String(fields[index.order]);
  const matching = documents
    .filter((document) => groups.every((group) => groupsOf(document).includes(group)))
    .filter((document) => from === undefined || orderOf(document) >= from)
    .filter((document) => below === undefined || orderOf(document) < below)
    .filter(({ fields }) => times?.from === undefined || String(fields[index.time ?? '']) >= times.from)
    .filter(({ fields }) => times?.to === undefined || String(fields[index.time ?? '']) <= times.to)
    .sort((a, b) => byCodePoint(orderOf(a), orderOf(b)) || byCodePoint(a.id, b.id));
  if (direction === 'desc') matching.reverse();
  return { ids: matching.slice(skip, skip + limit).map(({ id }) => id), total: matching.length };
}
