/**
 * Replaces the master key under the data keys of an installation that no instance runs on. First every data key is wrapped
 * by both master keys, then the wrap of the old one is dropped: wherever it is interrupted, one of the two opens all of
 * them. Implements `docs/operations.md#maintenance-commands`.
 */
import { err, ok } from '../kernel/result.js';
import type { Result } from '../kernel/result.js';
import { unwrapDataKey, wrapDataKey } from './data-keys.js';
import type { DataKeyStore, WrappedKey } from './data-keys.js';
import type { MasterKey } from './master-key.js';

export interface RewrapOptions {
  /**
   * The resource whose data keys a start opens. They are the last to open with the new master key and the first that no
   * longer open with the old one, so a start never succeeds with a key that does not open all others.
   */
  readonly startsWith?: string | undefined;
  /** Called once when both master keys open every data key. */
  openByBoth?(): Promise<void>;
}

/**
 * Wraps every stored data key by another master key. Run again with the same keys, it finishes an interrupted run. Stops at
 * the first key that neither master key unwraps, and has then dropped nothing.
 */
export async function rewrapDataKeys(
  store: DataKeyStore,
  from: MasterKey,
  to: MasterKey,
  options: RewrapOptions = {},
): Promise<Result<{ readonly rewrapped: number; readonly kept: number }, string>> {
  let rewrapped = 0;
  let kept = 0;
  const last: string[] = [];
  /** @returns what is wrong */
  const wrap = async (keyId: string, wrapped: WrappedKey): Promise<string | undefined> => {
    if (wrapOf(to, keyId, wrapped) !== undefined) {
      kept += 1;
      return undefined;
    }
    const dataKey = unwrapDataKey(from, keyId, wrapped);
    if (dataKey === undefined) return `data key ${keyId} is wrapped by ${wrapped.master_key_id}, not ${from.keyId}`;
    const own = wrapDataKey(from, keyId, wrapped.resource_id, dataKey);
    const { master_key_id, nonce, ct } = wrapDataKey(to, keyId, wrapped.resource_id, dataKey);
    await store.put(keyId, { ...own, next: { master_key_id, nonce, ct } });
    dataKey.fill(0);
    rewrapped += 1;
    return undefined;
  };
  for await (const keyId of store.list()) {
    const wrapped = await store.get(keyId);
    if (wrapped === undefined) continue;
    if (wrapped.resource_id === options.startsWith) {
      last.push(keyId);
      continue;
    }
    const problem = await wrap(keyId, wrapped);
    if (problem !== undefined) return err(problem);
  }
  for (const keyId of last) {
    const wrapped = await store.get(keyId);
    const problem = wrapped && (await wrap(keyId, wrapped));
    if (problem !== undefined) return err(problem);
  }
  await options.openByBoth?.();
  for (const keyId of last) await keepOnly(store, to, keyId);
  await dropOtherWraps(store, to);
  return ok({ rewrapped, kept });
}

/** Finishes a run that was interrupted after both master keys opened everything. @returns how many keys it has changed */
export async function dropOtherWraps(store: DataKeyStore, to: MasterKey): Promise<number> {
  let dropped = 0;
  for await (const keyId of store.list()) if (await keepOnly(store, to, keyId)) dropped += 1;
  return dropped;
}

/** Leaves only the wrap of one master key, if there is one beside another. @returns whether anything changed */
async function keepOnly(store: DataKeyStore, to: MasterKey, keyId: string): Promise<boolean> {
  const wrapped = await store.get(keyId);
  if (wrapped?.next === undefined) return false;
  const own = wrapOf(to, keyId, wrapped);
  if (own !== undefined) await store.put(keyId, own);
  return own !== undefined;
}

/** The data key wrapped by this master key only; undefined when it is not, or is labelled wrong. */
function wrapOf(masterKey: MasterKey, keyId: string, wrapped: WrappedKey): WrappedKey | undefined {
  const { v, resource_id, master_key_id, nonce, ct, next } = wrapped;
  const wraps = next === undefined ? [{ master_key_id, nonce, ct }] : [{ master_key_id, nonce, ct }, next];
  return wraps
    .map((wrap) => ({ v, resource_id, ...wrap }))
    .find((one) => one.master_key_id === masterKey.keyId && unwrapDataKey(masterKey, keyId, one) !== undefined);
}
