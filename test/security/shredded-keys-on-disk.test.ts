/**
 * What the files of the embedded stores still hold of a data key that was shredded. LMDB writes pages anew and leaves the
 * old ones as they are until they are used again, so a wrapped key may stay readable in them: what makes it worthless
 * is another master key (`docs/operations.md#shredded-secrets-on-disk`).
 */
import { randomBytes } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openDataKeyStore } from '../../src/security/data-key-documents.js';
import { newDataKey, newKeyId, unwrapDataKey, wrapDataKey } from '../../src/security/data-keys.js';
import type { WrappedKey } from '../../src/security/data-keys.js';
import { rewrapDataKeys } from '../../src/security/rewrap.js';
import { createMasterKey, masterKeyBytes } from '../../src/security/master-key.js';
import { createManualClock } from '../support/manual-clock.js';
import { openTemporaryStores } from '../support/temporary-stores.js';

/** Every wrapped key in the raw bytes of a folder, in use or not. */
async function rawKeys(folder: string): Promise<readonly { readonly id: string; readonly wrapped: WrappedKey }[]> {
  const names = await readdir(folder, { recursive: true });
  const files = await Promise.all(
    names.filter((name) => name.endsWith('data.mdb')).map((name) => readFile(join(folder, name), 'latin1')),
  );
  const stored = /(dk_[\w-]{22})\[0,(\{"v":1,[^{}]*\})\]/g;
  return files
    .flatMap((text) => [...text.matchAll(stored)])
    .map(([, id = '', json = '']) => ({ id, wrapped: JSON.parse(json) as WrappedKey }));
}

test('once the master key is replaced, no byte on the disk gives a shredded key back with the new one', async () => {
  const stores = await openTemporaryStores(createManualClock());
  try {
    const store = await openDataKeyStore(stores.readStore);
    const [before, after] = [
      createMasterKey(randomBytes(masterKeyBytes)),
      createMasterKey(randomBytes(masterKeyBytes)),
    ];
    const ids = Array.from({ length: 40 }, newKeyId);
    for (const id of ids) await store.put(id, wrapDataKey(before, id, 'a resource', newDataKey()));
    const shredded = new Set(ids.slice(0, 20));
    for (const id of shredded) await store.delete(id);
    const opened = async (by: typeof before): Promise<readonly string[]> =>
      (await rawKeys(stores.folder))
        .filter(({ id, wrapped }) => unwrapDataKey(by, id, wrapped) !== undefined)
        .map(({ id }) => id);
    // Else the test looks for the wrong bytes.
    expect(new Set(await opened(before)).size).toBeGreaterThanOrEqual(20);

    expect(await rewrapDataKeys(store, before, after)).toEqual({ ok: true, value: { rewrapped: 20, kept: 0 } });
    const byTheNew = new Set(await opened(after));
    expect(ids.filter((id) => byTheNew.has(id))).toEqual(ids.slice(20));
    expect([...byTheNew].filter((id) => shredded.has(id))).toEqual([]);
  } finally {
    await stores.close();
  }
});
