/**
 * The first `admin`, made at the first start when there is no user. Implements `docs/contract/configuration.md`, SVC_ADMIN_PASSWORD.
 */
import { randomBytes } from 'node:crypto';
import { chmod, link, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Accounts } from '../domain/accounts/accounts.js';
import { userByName } from '../domain/accounts/accounts.js';
import type { AccountCommand, UserState } from '../domain/accounts/user.js';
import type { Ids } from '../kernel/ids.js';
import type { Logger } from '../kernel/logger.js';
import type { Keyring } from '../security/keyring.js';
import type { PasswordHasher } from '../security/passwords.js';
import type { AccountsView } from '../accounts/view.js';
import { userField } from '../accounts/handlers.js';
import type { Gateway } from '../commands/port.js';
import { systemContext } from '../commands/system.js';

export interface FirstAdminOptions {
  readonly gateway: Gateway<Accounts, AccountCommand>;
  readonly view: AccountsView;
  readonly keyring: Keyring;
  readonly hasher: PasswordHasher;
  readonly ids: Ids;
  readonly logger: Logger;
  /** From SVC_ADMIN_PASSWORD; without it a random one is written to a file of the data folder. */
  readonly password: string | undefined;
  readonly dataDir: string;
}

export const initialPasswordFile = 'initial-admin-password';
const username = 'admin';
/** A file with less was not made here. */
const shortestPassword = 12;

/** Makes the first admin unless a user exists. Two instances may both try: one of them wins. */
export async function ensureFirstAdmin(options: FirstAdminOptions): Promise<void> {
  const { gateway, view, keyring, hasher, ids, logger, dataDir } = options;
  if (view.accounts.users.size > 0) return;
  const file = join(dataDir, initialPasswordFile);
  // The file first: an admin whose password nobody can read would be worse than a file without an admin.
  const password = options.password ?? (await keepPassword(file));
  const hashed = await hasher.hash(password);
  if (hashed.kind !== 'hashed') throw new Error('the password of the first admin could not be hashed');
  const id = ids.next();
  const sealed = await keyring.seal(Buffer.from(hashed.phc), userField(id, 'password'));
  const command: AccountCommand = {
    type: 'CreateUser',
    id,
    username,
    role: 'admin',
    display_name: null,
    email: null,
    password: sealed,
    onlyIfFirst: true,
  };
  const outcome = await gateway.execute(command, systemContext('first start'), (accounts) =>
    userByName(accounts, username),
  );
  const made = outcome.kind === 'done' && outcome.events.length > 0;
  if (!made) await keyring.shred(sealed.key_id);
  if (options.password !== undefined) {
    if (made) logger.info({ username }, 'made the first user with the password of SVC_ADMIN_PASSWORD');
    return;
  }
  const admin = outcome.kind === 'done' ? outcome.result : undefined;
  if (made || (await opensWith(options, admin, password))) {
    logger.info({ username, file }, 'made the first user; its password is in the file');
  } else {
    await rm(file, { force: true });
  }
}

/**
 * A random password in the file, whole or not at all. One that is there already is used again: a start that was cut
 * off, or another instance on this folder, may have made the admin with it.
 */
async function keepPassword(file: string): Promise<string> {
  const password = randomBytes(18).toString('base64url');
  const draft = `${file}.${randomBytes(6).toString('hex')}`;
  await writeFile(draft, `${password}\n`, { mode: 0o600, flag: 'wx' });
  try {
    await link(draft, file);
    return password;
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
    await chmod(file, 0o600);
    const kept = (await readFile(file, 'utf8')).trim();
    if (kept.length >= shortestPassword) return kept;
    await rename(draft, file);
    return password;
  } finally {
    await rm(draft, { force: true });
  }
}

/** Whether the admin that another start has made has this password, which its file then must go on telling. */
async function opensWith(
  { keyring, hasher }: FirstAdminOptions,
  admin: UserState | undefined,
  password: string,
): Promise<boolean> {
  if (admin === undefined) return false;
  const opened = await keyring.open(admin.password, userField(admin.id, 'password'));
  if (opened.kind !== 'opened') return false;
  return (await hasher.verify(Buffer.from(opened.plaintext).toString('utf8'), password)) !== 'mismatch';
}
