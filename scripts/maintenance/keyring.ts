/** The master key and the keyring of the installation that a maintenance command works on. */
import { storedKeyring, type StoredKeyring } from '../../src/app/installation/keyring.js';
import { loadMasterKey, type LoadedMasterKey } from '../../src/security/master-key.js';
import { CommandError } from './command-line.js';
import type { Installation } from './installation.js';

/** @throws CommandError */
export async function masterKeyOf({ config }: Pick<Installation, 'config'>): Promise<LoadedMasterKey> {
  const loaded = await loadMasterKey({ ...config.masterKey, dataDir: config.dataDir, mayCreate: false });
  if (!loaded.ok) throw new CommandError(`The master key cannot be used: ${loaded.error}.`);
  return loaded.value;
}

/**
 * The keyring, with the log chain under its key.
 * @throws CommandError, WrongMasterKeyError, BrokenChainError, ServiceError `unavailable`
 */
export async function keyringOf(installation: Installation): Promise<StoredKeyring> {
  const { masterKey } = await masterKeyOf(installation);
  const stored = await storedKeyring({ eventStore: installation.eventStore, masterKey });
  if (stored === undefined) throw new CommandError('The service has never started on these stores.');
  return stored;
}
