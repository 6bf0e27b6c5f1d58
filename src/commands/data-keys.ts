/**
 * Wrapped data keys in the read store: they must be deletable, which the log is not, so that deleting one shreds its
 * secret. No projection writes them and no rebuild touches them. Implements `domain.md`, "Deleting a data key".
 */
import type { DataKeyStore, WrappedKey } from '../security/data-keys.js';
import type { CollectionSpec, ReadStore } from '../storage/read-store.js';

const pageSize = 500;

export const dataKeyCollection: CollectionSpec = { name: 'data_keys', version: 1, indexes: [] };

export async function openDataKeyStore(readStore: ReadStore): Promise<DataKeyStore> {
  const keys = await readStore.collection<WrappedKey>(dataKeyCollection);
  return {
    async get(keyId) {
      return (await keys.get(keyId))?.fields;
    },
    async put(keyId, wrapped) {
      await keys.set([{ id: keyId, fields: wrapped }]);
    },
    async delete(keyId) {
      await keys.remove([keyId]);
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
