/**
 * Stores wrapped data keys as documents of the read store, because the log cannot delete and deleting a key is how its
 * secret is shredded. No projection writes them and no rebuild touches them. Implements `docs/contract/domain.md#commands-and-events`.
 */
import type { DataKeyStore, WrappedKey } from './data-keys.js';
import { answeredWithin } from '../storage/answer-unavailable.js';
import type { CollectionSpec, ReadStore } from '../storage/read-store.js';

const pageSize = 500;
/** How long the read store may take to answer, before a data key is unavailable. */
const dataKeyMs = 8_000;

export const dataKeyCollection: CollectionSpec = { name: 'data_keys', version: 1, indexes: [] };

export async function openDataKeyStore(readStore: ReadStore): Promise<DataKeyStore> {
  const keys = await readStore.collection<WrappedKey>(dataKeyCollection);
  return {
    get: answeredWithin(dataKeyMs, async (keyId) => (await keys.get(keyId))?.fields),
    put: answeredWithin(dataKeyMs, (keyId, wrapped) => keys.set([{ id: keyId, fields: wrapped }])),
    delete: answeredWithin(dataKeyMs, async (keyId) => void (await keys.remove([keyId]))),
    async *list() {
      for (let skip = 0; ; skip += pageSize) {
        const page = await keys.find({ skip, limit: pageSize });
        for (const document of page.items) yield document.id;
        if (page.items.length < pageSize) return;
      }
    },
  };
}
