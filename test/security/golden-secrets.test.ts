/**
 * Secrets as they are stored: whoever changes a form here can no longer open what is in a log
 * (`docs/contract/domain.md#commands-and-events`).
 */
import { expect, it } from 'vitest';
import { createKeyring, digestOf, unwrapKeyring } from '../../src/security/keyring.js';
import type { Place, WrappedKeyring } from '../../src/security/keyring.js';
import { createMasterKey } from '../../src/security/master-key.js';
import type { SealedValue } from '../../src/security/sealing.js';

const masterKey = createMasterKey(Uint8Array.from({ length: 32 }, (_, index) => index));
const place: Place = { stream: 'svc-fleet', resourceId: 'node-1', field: 'psk_verifier' };
const wrapped: WrappedKeyring = {
  installation_id: 'a5a9ed49-2f4d-4d10-9d83-6f3c0f7a4c11',
  version: 3,
  master_key_id: 'mk_G5qQLFQtmRj_',
  nonce: '7m5s8oaEfUPEGtJK83Llw6K3HmkP-aJC',
  ct: 'IRnFzZ-9nGAMgmqNt1-FSH35DPXE4BdOZRuIAjr-c5rSybMrSAl6QcEnRRlRLtG_fkt3wyY3NNOeh4C33ITINnqW3JWpT2tSNDrLb8IrB2LmKCZmaW5pDBQErBqQGHlSaOyya1n36Ttf9JFSOcTQKO3I92qMHT75BvpR64zz5a9UPF8N0wPFjS-oloUIEFLNC0w',
};
const sealed: SealedValue = {
  alg: 'xc20p',
  key_id: 'sk_golden',
  nonce: 'hcOGVDamoEDdQqwSHLIVTnibSMrLZJIB',
  ct: 'PLbVZVZQTwjBesX49VQD1YLHB707zas7x17F86csvk1MrOly',
};
const sealedBytes = 'AQlza19nb2xkZW663w2jjkcB_QMA96Dujq3t5mcb8D5P2rCxeh35E0tAkDwA3ukVDP-BY6Dx4Vtbl9e89AiiYzUHWhMU9v8';

it('a keyring that was wrapped earlier opens, and has the digest that was recorded', () => {
  expect(masterKey.keyId).toBe(wrapped.master_key_id);
  expect(unwrapKeyring(masterKey, wrapped)).toMatchObject({
    version: 3,
    sealing: [{ id: 'sk_old' }, { id: 'sk_golden' }],
  });
  expect(digestOf(wrapped)).toBe('186ccd14cc2dcfe865fcb8eab34b5534037cdcdfdd07d9235320ca5049894a87');
});

it('a value and bytes that were sealed earlier open', () => {
  const content = unwrapKeyring(masterKey, wrapped);
  if (content === undefined) throw new Error('the keyring does not open');
  const keyring = createKeyring(content);
  for (const result of [keyring.open(sealed, place), keyring.openBytes(Buffer.from(sealedBytes, 'base64url'), place)]) {
    expect(result.kind === 'opened' && Buffer.from(result.plaintext).toString()).toBe('a secret of long ago');
  }
});
