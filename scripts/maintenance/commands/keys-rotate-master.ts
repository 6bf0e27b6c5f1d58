/** `npm run keys:rotate-master`: wraps the keyring with a new master key (`docs/how-to/rotate-keys.md#master-key`). */
import { readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '../../../src/app/config/config.js';
import { systemClock } from '../../../src/kernel/clock.js';
import { createPrivateFile, syncFolder } from '../../../src/kernel/files.js';
import { randomIds } from '../../../src/kernel/ids.js';
import { loadMasterKey, newMasterKey, type MasterKey } from '../../../src/security/master-key.js';
import { nextVersion } from '../../../src/security/keyring.js';
import { replaceKeyring, storedKeyring, WrongMasterKeyError } from '../../../src/app/installation/keyring.js';
import type { EventStore } from '../../../src/storage/event-store.js';
import { CommandError, exitCodes, isReadable, parseArguments, say, whileOpen, type ExitCode } from '../command-line.js';
import { openInstallation, refuseRunning } from '../installation.js';
import { masterKeyOf } from '../keyring.js';

export const usage = `Usage: gateway-control maintenance keys:rotate-master

Replaces the master key of the installation that the environment names: unwraps the keyring with the current master key
(SVC_MASTER_KEY, SVC_MASTER_KEY_FILE or the data folder's master.key) and wraps it with the one in SVC_NEW_MASTER_KEY or
SVC_NEW_MASTER_KEY_FILE. If the current key is the data folder's and no new one is given, a new one is created and
replaces it. Stop every instance first. Wherever a run is interrupted, the service starts with either the old or the new key; repeat the run with
the same keys to finish it.`;

const keyFile = 'master.key';
const nextFile = 'master.key.new';

interface NextKey {
  readonly masterKey: MasterKey;
  /** The file of a key created here, which then replaces the data folder's; undefined for a key that was given. */
  readonly file: string | undefined;
}

export async function run(argv: readonly string[], signal: AbortSignal): Promise<ExitCode> {
  parseArguments(argv, [], 0);
  return whileOpen(openInstallation({ signal }), async (installation) => {
    const { config, readStore } = installation;
    const current = await masterKeyOf(installation);
    await refuseRunning(readStore, 'they would continue with the old key');
    const { masterKey } = current;
    const next = await nextKey(config, current.source === 'data folder');
    if (next.masterKey.keyId === masterKey.keyId) {
      throw new CommandError('The new master key is the current one: use a different key.');
    }
    await rotate(installation.eventStore, masterKey, next.masterKey);
    say(`The keyring is now wrapped by ${next.masterKey.keyId}.`);
    if (next.file === undefined) {
      say('Start the service with the new key as SVC_MASTER_KEY or SVC_MASTER_KEY_FILE.');
    } else {
      const oldFile = `${keyFile}.${masterKey.keyId}`;
      await putInPlace(config.dataDir, next.file, oldFile);
      say(`The new key is ${join(config.dataDir, keyFile)}; the old one is ${oldFile} in the same folder.`);
    }
    say('Earlier backups need the old key: keep it as long as you keep them, and in another place.');
    return exitCodes.done;
  });
}

/** Wraps the keyring with the new master key, unless an interrupted run has already done so. */
async function rotate(eventStore: EventStore, from: MasterKey, to: MasterKey): Promise<void> {
  if (await opensKeyring(eventStore, to)) return;
  const stored = await storedKeyring({ eventStore, masterKey: from });
  if (stored === undefined) throw new CommandError('The service has never started on these stores.');
  const options = { eventStore, masterKey: to, clock: systemClock, ids: randomIds };
  await replaceKeyring(options, stored, nextVersion(stored.content));
}

async function opensKeyring(eventStore: EventStore, masterKey: MasterKey): Promise<boolean> {
  try {
    return (await storedKeyring({ eventStore, masterKey })) !== undefined;
  } catch (error) {
    if (error instanceof WrongMasterKeyError) return false;
    throw error;
  }
}

interface GivenKey {
  readonly inline: string | undefined;
  readonly file: string | undefined;
}

/** The new key from the environment; undefined if there is none. */
function newKeyGiven(): GivenKey | undefined {
  const given = (name: string): string | undefined => process.env[name] || undefined;
  const [inline, file] = [given('SVC_NEW_MASTER_KEY'), given('SVC_NEW_MASTER_KEY_FILE')];
  return inline === undefined && file === undefined ? undefined : { inline, file };
}

/** The given key, otherwise a new one for the data folder. @throws CommandError */
async function nextKey({ dataDir }: Config, inDataFolder: boolean): Promise<NextKey> {
  const given = newKeyGiven();
  if (given === undefined && !inDataFolder) {
    throw new CommandError('The new master key is missing: give it as SVC_NEW_MASTER_KEY or SVC_NEW_MASTER_KEY_FILE.');
  }
  const { inline, file } = given ?? { inline: undefined, file: undefined };
  const created = given === undefined ? join(dataDir, nextFile) : undefined;
  // The one of an interrupted run may already wrap the keyring.
  if (created !== undefined && !(await isReadable(created))) await createPrivateFile(created, newMasterKey());
  const loaded = await loadMasterKey({ inline, file: file ?? created, dataDir, mayCreate: false });
  if (loaded.ok) return { masterKey: loaded.value.masterKey, file: created };
  const problem = loaded.error.replaceAll('SVC_MASTER_KEY', 'SVC_NEW_MASTER_KEY');
  throw new CommandError(`The new master key cannot be used: ${problem}.`);
}

/** Gives the old key a second name before the new one replaces it, so that a key exists at every moment. */
async function putInPlace(dataDir: string, file: string, oldName: string): Promise<void> {
  const current = join(dataDir, keyFile);
  await createPrivateFile(join(dataDir, oldName), await readFile(current, 'utf8'));
  await rename(file, current);
  await syncFolder(dataDir);
}
