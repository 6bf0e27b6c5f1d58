/**
 * Wrapped data keys in the read store: they must be deletable, which the log is not, so that deleting one shreds its
 * secret. No projection writes them and no rebuild touches them. Implements `domain.md`, "Deleting a data key".
 */
import { timedOut, withDeadline } from '../kernel/background.js';
import { ServiceError } from '../kernel/errors.js';
import { limits } from '../kernel/limits.js';
import type { DataKeyStore, WrappedKey } from '../security/data-keys.js';
import type { CollectionSpec, ReadStore } from '../storage/read-store.js';

const pageSize = 500;

export const dataKeyCollection: CollectionSpec = { name: 'data_keys', version: 1, indexes: [] };

/** Callers wait for a key: a store that hangs is as good as none. @throws ServiceError `unavailable` */
async function inTime<T>(asked: Promise<T>): Promise<T> {
  const answer = await withDeadline(asked, limits.events.dataKeyMs);
  if (answer === timedOut) throw new ServiceError('unavailable', 'The read store does not answer.');
  return answer;
}

export async function openDataKeyStore(readStore: ReadStore): Promise<DataKeyStore> {
  const keys = await readStore.collection<WrappedKey>(dataKeyCollection);
  return {
    async get(keyId) {
      return (await inTime(keys.get(keyId)))?.fields;
    },
    async put(keyId, wrapped) {
      await inTime(keys.set([{ id: keyId, fields: wrapped }]));
    },
    async delete(keyId) {
      await inTime(keys.remove([keyId]));
    },
    async *list() {
      for (let skip = 0; ; skip += pageSize) {
        const page = await keys.find({ skip, limit: pageSize });
        for (const document of page.items) yield document.id;
        if (page.items.length < pageSize) return;
      }
    },
  };
}
