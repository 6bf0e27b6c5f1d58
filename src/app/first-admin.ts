/**
 * Creates the user `admin` at the first start, when there is no user. Its password comes from `SVC_ADMIN_PASSWORD`;
 * otherwise it is random and written to a file in the data folder. Implements
 * `docs/contract/rest.md#authentication-and-roles`.
 */
import { randomBytes } from 'node:crypto';
import { chmod, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { userByName, type Accounts } from '../domain/accounts/accounts.js';
import { isPassword, type UserState } from '../domain/accounts/user.js';
import type { AccountCommand } from '../domain/accounts/declaration.js';
import { createPrivateFile } from '../kernel/files.js';
import type { Ids } from '../kernel/ids.js';
import type { Logger } from '../kernel/logger.js';
import type { Keyring } from '../security/keyring.js';
import type { PasswordHasher } from '../security/passwords.js';
import type { CommittedAccounts } from '../projections/accounts.js';
import { userField } from '../accounts/fields.js';
import type { Gateway } from '../commands/port.js';
import { systemContext } from '../commands/system.js';

export interface FirstAdminOptions {
  readonly gateway: Gateway<Accounts, AccountCommand>;
  readonly view: CommittedAccounts;
  readonly keyring: Keyring;
  readonly hasher: PasswordHasher;
  readonly ids: Ids;
  readonly logger: Logger;
  /** From `SVC_ADMIN_PASSWORD`. */
  readonly password: string | undefined;
  readonly dataDir: string;
}

/** @internal exported for tests */
export const initialPasswordFile = 'initial-admin-password';
const username = 'admin';

/** Creates the first admin unless a user exists. When two instances try at once, one of them wins. */
export async function ensureFirstAdmin(options: FirstAdminOptions): Promise<void> {
  const { gateway, view, keyring, hasher, ids, logger, dataDir } = options;
  if (view.accounts.users.size > 0) return;
  const file = join(dataDir, initialPasswordFile);
  // The file first: a file without an admin does less harm than an admin whose password nobody knows.
  const password = options.password ?? (await passwordOfFile(file));
  const hashed = await hasher.hash(password);
  if (hashed.kind !== 'hashed') throw new Error('the password of the first admin could not be hashed');
  const id = ids.next();
  const sealed = keyring.seal(Buffer.from(hashed.phc), userField(id, 'password'));
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
  const created = outcome.kind === 'done' && outcome.events.length > 0;
  if (options.password !== undefined) {
    if (created) logger.info({ username }, 'created the first user with the password from SVC_ADMIN_PASSWORD');
    return;
  }
  const admin = outcome.kind === 'done' ? outcome.result : undefined;
  if (created || (await hasPassword(options, admin, password))) {
    logger.info({ username, file }, 'created the first user; its password is in the file');
  } else {
    await rm(file, { force: true });
  }
}

/**
 * The password in the file; if there is none, a new random one. An existing one is reused: an interrupted start, or
 * another instance on this folder, may have created the admin with it.
 */
async function passwordOfFile(file: string): Promise<string> {
  for (;;) {
    await createPrivateFile(file, `${randomBytes(18).toString('base64url')}\n`);
    await chmod(file, 0o600);
    const password = (await readFile(file, 'utf8')).trim();
    if (isPassword(password)) return password;
    // A file without a password was not written by this module.
    await rm(file, { force: true });
  }
}

/** Whether the admin that another start created has this password: then the file must stay. */
async function hasPassword(
  { keyring, hasher }: FirstAdminOptions,
  admin: UserState | undefined,
  password: string,
): Promise<boolean> {
  if (admin === undefined) return false;
  const opened = keyring.open(admin.password, userField(admin.id, 'password'));
  if (opened.kind !== 'opened') return false;
  return (await hasher.verify(Buffer.from(opened.plaintext).toString('utf8'), password)) !== 'mismatch';
}
