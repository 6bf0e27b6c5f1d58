/** `npm run keys:rotate-master`: wraps every data key by another master key. See `docs/operations.md`. */
import { randomBytes } from 'node:crypto';
import { link, open, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { openDataKeyStore } from '../src/start/data-keys.js';
import type { Config } from '../src/config.js';
import { rewrapDataKeys } from '../src/security/data-keys.js';
import type { MasterKey } from '../src/security/master-key.js';
import { masterKeyBytes } from '../src/security/master-key.js';
import { loadMasterKey } from '../src/security/master-key-source.js';
import { liveInstances } from '../src/cluster/instance-lease.js';
import { CommandError, exitCodes, parseArguments, runCommand, say } from './maintenance/command-line.js';
import { openInstallation } from './maintenance/installation.js';

const usage = `Usage: npm run keys:rotate-master

Wraps the data keys of the installation that the environment names anew: from its master key (SVC_MASTER_KEY,
SVC_MASTER_KEY_FILE or the data folder's master.key) to the one in SVC_NEW_MASTER_KEY or SVC_NEW_MASTER_KEY_FILE. Where
the key is the data folder's, a new one is made when none is given, and put in its place. No service may run meanwhile.
Cut off, it goes on when it is run again with the same keys.`;

const keyFile = 'master.key';
const nextFile = 'master.key.new';

interface NextKey {
  readonly masterKey: MasterKey;
  /** Made here, or to be put into the data folder: the file that holds it. */
  readonly file: string | undefined;
}

await runCommand(usage, async (argv, signal) => {
  parseArguments(argv, [], 0);
  const installation = await openInstallation({ signal });
  try {
    const { config, readStore } = installation;
    const current = await loadMasterKey({ ...config.masterKey, dataDir: config.dataDir, mayCreate: false });
    if (!current.ok) throw new CommandError(`The master key can not be used: ${current.error}.`);
    const live = await liveInstances(readStore);
    if (live.length > 0) {
      throw new CommandError(
        `${live.length} instances run on these stores, or ended without a word less than 10 s ago: stop all of them ` +
          'first, for they would go on with the old key.',
      );
    }
    const next = await nextKey(config, current.value.source === 'data folder');
    const { masterKey } = current.value;
    if (next.masterKey.keyId === masterKey.keyId) {
      throw new CommandError('The new master key is the one in use: give another one.');
    }
    const outcome = await rewrapDataKeys(await openDataKeyStore(readStore), masterKey, next.masterKey);
    if (!outcome.ok) throw new CommandError(`The data keys can not be wrapped anew: ${outcome.error}.`);
    const { rewrapped, kept } = outcome.value;
    say(`${rewrapped} data keys are wrapped by ${next.masterKey.keyId} now; ${kept} were before.`);
    if (next.file === undefined) {
      say('Start the service with the new key as SVC_MASTER_KEY or SVC_MASTER_KEY_FILE.');
    } else {
      const kept = `${keyFile}.${masterKey.keyId}`;
      await putInPlace(config.dataDir, next.file, kept);
      say(`The new key is ${join(config.dataDir, keyFile)}; the old one is ${kept} beside it.`);
    }
    say('Backups that were made before need the old key: keep it apart from them, and as long as they.');
    return exitCodes.done;
  } finally {
    await installation.close();
  }
});

/** The key to go over to: the one that is given, else a new one for the data folder. @throws CommandError */
async function nextKey({ dataDir }: Config, inDataFolder: boolean): Promise<NextKey> {
  const given = (name: string): string | undefined => process.env[name] || undefined;
  const [inline, file] = [given('SVC_NEW_MASTER_KEY'), given('SVC_NEW_MASTER_KEY_FILE')];
  if (inline === undefined && file === undefined && !inDataFolder) {
    throw new CommandError('The new master key is missing: give it as SVC_NEW_MASTER_KEY or SVC_NEW_MASTER_KEY_FILE.');
  }
  const made = inline === undefined && file === undefined ? join(dataDir, nextFile) : undefined;
  if (made !== undefined) await makeKey(made);
  const loaded = await loadMasterKey({ inline, file: file ?? made, dataDir, mayCreate: false });
  if (loaded.ok) return { masterKey: loaded.value.masterKey, file: made };
  const problem = loaded.error.replaceAll('SVC_MASTER_KEY', 'SVC_NEW_MASTER_KEY');
  throw new CommandError(`The new master key can not be used: ${problem}.`);
}

/** One that a run which was cut off has made is used again: keys may be wrapped by it already. */
async function makeKey(path: string): Promise<void> {
  let file;
  try {
    file = await open(path, 'wx', 0o600);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return;
    throw error;
  }
  try {
    await file.writeFile(`${randomBytes(masterKeyBytes).toString('base64')}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** There is a key at each moment: the old one gets a second name first, then the new one takes the first. */
async function putInPlace(dataDir: string, file: string, oldName: string): Promise<void> {
  await link(join(dataDir, keyFile), join(dataDir, oldName)).catch((error: unknown) => {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
  });
  await rename(file, join(dataDir, keyFile));
  const folder = await open(dataDir, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
