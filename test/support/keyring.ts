/** Keyrings of tests: one key, the same for the same number, so that two instances open what the other has sealed. */
import { createKeyring, type Keyring, type KeyringContent } from '../../src/security/keyring.js';

const testInstallation = 'a5a9ed49-2f4d-4d10-9d83-6f3c0f7a4c11';

export const testKeyringContent = (fill = 7): KeyringContent => ({
  installationId: testInstallation,
  version: 1,
  sealing: [{ id: `sk_${fill}`, key: new Uint8Array(32).fill(fill) }],
  logChain: new Uint8Array(32).fill(fill),
});

export const testKeyring = (fill?: number): Keyring => createKeyring(testKeyringContent(fill));
