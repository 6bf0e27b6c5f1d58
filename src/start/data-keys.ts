/**
 * Wrapped data keys in the read store: they must be deletable, which the log is not, so that deleting one shreds its
 * secret. No projection writes them and no rebuild touches them. Implements `docs/contract/domain.md`, "Deleting a data key".
 */
import type { DataKeyStore, WrappedKey } from '../security/data-keys.js';
import { answeredWithin } from '../storage/answer-unavailable.js';
import type { CollectionSpec, ReadStore } from '../storage/read-store.js';

const pageSize = 500;
/** A data key is unavailable when the read store takes longer than this to take or to give it. */
const dataKeyMs = 8_000;

export const dataKeyCollection: CollectionSpec = { name: 'data_keys', version: 1, indexes: [] };

export async function openDataKeyStore(readStore: ReadStore): Promise<DataKeyStore> {
  const keys = await readStore.collection<WrappedKey>(dataKeyCollection);
  return {
    // Callers wait for a key: a store that hangs is as good as none.
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
