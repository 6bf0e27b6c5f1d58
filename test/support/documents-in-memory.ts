/** A collection of documents in memory, which remembers what it was asked. Not a store: it neither filters nor sorts. */
import type { Collection, Fields, StoredDocument } from '../../src/storage/read-store.js';

/** A collection in memory, as far as the engine uses one. */
export function collectionOf(initial: readonly { readonly id: string; readonly fields: Fields }[] = []) {
  const documents = new Map(initial.map(({ id, fields }) => [id, fields]));
  const calls: unknown[] = [];
  /** How many documents each call removed. */
  const removed: number[] = [];
  const collection = {
    get: async (id: string) => (documents.has(id) ? { id, fields: documents.get(id) } : undefined),
    find: async (query: { readonly limit: number }) => {
      calls.push(query);
      return [...documents].slice(0, query.limit).map(([id, fields]) => ({ id, fields }));
    },
    list: async (after: string | undefined, limit: number) => {
      calls.push({ after, limit });
      return [...documents].slice(0, limit).map(([id, fields]) => ({ id, fields }));
    },
    set: async (entries: readonly { readonly id: string; readonly fields: Fields }[]) => {
      for (const { id, fields } of entries) documents.set(id, fields);
    },
    write: async (writes: readonly StoredDocument[]) => {
      calls.push(...writes);
    },
    remove: async (ids: readonly string[]) => {
      removed.push(ids.length);
      for (const id of ids) documents.delete(id);
    },
  };
  return { collection: collection as unknown as Collection, documents, calls, removed };
}
