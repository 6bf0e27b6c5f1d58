/**
 * Secrets as earlier releases stored them: whoever changes a form here can no longer open what is in a log
 * (`docs/contract/domain.md#commands-and-events`).
 */
import { expect, it } from 'vitest';
import type { WrappedKey } from '../../src/security/data-keys.js';
import { unwrapDataKey } from '../../src/security/data-keys.js';
import { createKeyring } from '../../src/security/keyring.js';
import { createMasterKey } from '../../src/security/master-key.js';
import type { SealContext, SealedValue } from '../../src/security/sealing.js';
import { createMemoryDataKeyStore } from '../support/memory-data-key-store.js';

const masterKey = createMasterKey(Uint8Array.from({ length: 32 }, (_, index) => index));
const dataKey = Uint8Array.from({ length: 32 }, (_, index) => 255 - index);
const context: SealContext = { stream: 'svc-fleet', resourceId: 'node-1', field: 'psk_verifier' };
const keyId = 'dk_golden';
const wrapped: WrappedKey = {
  v: 1,
  resource_id: 'node-1',
  master_key_id: 'mk_G5qQLFQtmRj_',
  nonce: 'xt1APvbm5qaeojWrVI8uSsop54ouXxUg',
  ct: 'VuDFPfT9x_CU25x_4RpRyck9-me0qBm36ymjmk0I94SWFfivioDae0MzWFUem5tu',
};
const sealed: SealedValue = {
  alg: 'xc20p',
  key_id: keyId,
  nonce: 'jcGyFlOUdhJu-9Be02fXV9KujD5fjI71',
  ct: 'Cff1TJY8Lp-UTHjHmW0VdSHWJr3GUMVw-bBKd1NzXxgxMc61',
};
const sealedBytes = 'AQlka19nb2xkZW5VKquCh8avVRPzbQQQYBhBB71a7HonKWHfTW_0wQbJ_8oYSHBkyXHzdW68_OVeCWfmtdJjAf-3P_kBk8w';

it('a master key has the id that stored data keys name', () => {
  expect(masterKey.keyId).toBe(wrapped.master_key_id);
});

it('a data key that was wrapped earlier unwraps', () => {
  expect(unwrapDataKey(masterKey, keyId, wrapped)).toEqual(Buffer.from(dataKey));
});

it('a value and bytes that were sealed earlier open', async () => {
  const store = createMemoryDataKeyStore();
  await store.put(keyId, wrapped);
  const keyring = createKeyring({ masterKey, store });
  const opened = [
    await keyring.open(sealed, context),
    await keyring.openBytes(Buffer.from(sealedBytes, 'base64url'), context),
  ];
  for (const result of opened) {
    expect(result.kind === 'opened' && Buffer.from(result.plaintext).toString()).toBe('a secret of long ago');
  }
  keyring.close();
});
