/** A read store with outages on command. */
import { ServiceError } from '../../src/kernel/errors.js';
import type { Collection, Fields, ReadStore } from '../../src/storage/read-store.js';

export interface SwitchedReadStore extends ReadStore {
  /**
   * What the next calls do. `out`: all fail. `half`: documents are written, but the answer is lost. `no_documents`:
   * checkpoints are written, documents are not.
   */
  mode: 'works' | 'out' | 'half' | 'no_documents';
  /** How many calls were refused. */
  refused(): number;
}

export function switchedReadStore(inner: ReadStore): SwitchedReadStore {
  let refused = 0;
  const refuse = (): never => {
    refused += 1;
    throw new ServiceError('unavailable', 'switched off');
  };
  const store: SwitchedReadStore = {
    ...inner,
    mode: 'works',
    refused: () => refused,
    async collection<F extends Fields>(spec: Parameters<ReadStore['collection']>[0]) {
      if (store.mode === 'out') refuse();
      return switched(await inner.collection<F>(spec));
    },
    async saveCheckpoint(projection, version, point) {
      if (store.mode === 'out' || store.mode === 'half') refuse();
      await inner.saveCheckpoint(projection, version, point);
    },
  };
  const read = <R>(run: () => Promise<R>): Promise<R> => (store.mode === 'out' ? refuse() : run());
  const switched = <F extends Fields>(collection: Collection<F>): Collection<F> => ({
    ...collection,
    get: async (id) => read(() => collection.get(id)),
    getMany: async (ids) => read(() => collection.getMany(ids)),
    list: async (after, limit) => read(() => collection.list(after, limit)),
    find: async (query) => read(() => collection.find(query)),
    count: async (range) => read(() => collection.count(range)),
    set: async (documents) => read(() => collection.set(documents)),
    insert: async (documents) => read(() => collection.insert(documents)),
    remove: async (ids) => read(() => collection.remove(ids)),
    async write(writes) {
      if (store.mode === 'out' || store.mode === 'no_documents') refuse();
      const applied = await collection.write(writes);
      return store.mode === 'half' ? refuse() : applied;
    },
  });
  return store;
}

/** A read store each of whose reads of one document first waits for what a test does. */
export function readsBehind(inner: ReadStore, before: () => Promise<void>): ReadStore {
  return {
    ...inner,
    async collection<F extends Fields>(spec: Parameters<ReadStore['collection']>[0]) {
      const collection = await inner.collection<F>(spec);
      return {
        ...collection,
        async get(id: string) {
          await before();
          return collection.get(id);
        },
      };
    },
  };
}
