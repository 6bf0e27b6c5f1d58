/**
 * Secrets as they are stored: whoever changes a form here can no longer open what is in a log
 * (`docs/contract/domain.md#commands-and-events`).
 */
import { expect, it } from 'vitest';
import { createKeyring, digestOf, unwrapKeyring, type Place, type WrappedKeyring } from '../../src/security/keyring.js';
import { createMasterKey } from '../../src/security/master-key.js';
import type { SealedValue } from '../../src/security/sealing.js';

const masterKey = createMasterKey(Uint8Array.from({ length: 32 }, (_, index) => index));
const place: Place = { stream: 'svc-fleet', resourceId: 'node-1', field: 'psk_verifier' };
const wrapped: WrappedKeyring = {
  installation_id: 'a5a9ed49-2f4d-4d10-9d83-6f3c0f7a4c11',
  version: 3,
  master_key_id: 'mk_G5qQLFQtmRj_',
  nonce: 'tNZB4ynzMRKnSYHHVtv8ebj6LNqLzfMM',
  ct: 'vSCyOODyaATI2Ue85Q-79DdMgLfuzPwCqluPwd-XLeRs_c7BxbLUbMzsBfHqb9OO9TMftuhtu2JAoWivdI2MlaU57jJmVXgoZ-uygkgIXn7IQXHnDZTov8zQhRq79ChxZlO5xPdVhi7I2VjnXiI1VoOjTWqZlenfJPkiw5xBajXHOqV7WUWnV7ms-MkI6TD4jMJg81CfAkPZmq66akJkXwachtSAlaqz0CrsfKd_RXSSS_gWjDSs7KQgq0izDnRj8Tge6ZzRtPiqbu8e',
};
const sealed: SealedValue = {
  alg: 'xc20p',
  key_id: 'sk_golden',
  nonce: 'nXWvbTW8dPWTtcohJnAKhjImqzFb0IFD',
  ct: 'DCRihg0hv4pQ-OjBD-NNqjmREfWzHn7Y_Zy4j6YHwA2lA8o_',
};
const sealedBytes = 'AQlza19nb2xkZW6q7SVa6DD7mqSySuCVpfTse3GQhN3XyBDaR7QJDW0vcUz23Zieu1NAIZ8eoiEqrAALxGmxsSLmEm3J-iQ';

it('a keyring that was wrapped earlier opens, and has the digest that was recorded', () => {
  expect(masterKey.keyId).toBe(wrapped.master_key_id);
  expect(unwrapKeyring(masterKey, wrapped)).toMatchObject({
    version: 3,
    sealing: [{ id: 'sk_old' }, { id: 'sk_golden' }],
  });
  expect(digestOf(wrapped)).toBe('beec528d0386b005ecf4686ddaa62da3d3d7cddc88006e7e9d094b2708282ab5');
});

it('a value and bytes that were sealed earlier open', () => {
  const content = unwrapKeyring(masterKey, wrapped);
  if (content === undefined) throw new Error('the keyring does not open');
  const keyring = createKeyring(content);
  for (const result of [keyring.open(sealed, place), keyring.openBytes(Buffer.from(sealedBytes, 'base64url'), place)]) {
    expect(result.kind === 'opened' && Buffer.from(result.plaintext).toString()).toBe('a secret of long ago');
  }
});
