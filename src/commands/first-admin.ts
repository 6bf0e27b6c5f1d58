/**
 * The first `admin`, made at the first start when there is no user. Implements `configuration.md`, SVC_ADMIN_PASSWORD.
 */
import { randomBytes } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Accounts } from '../domain/accounts/accounts.js';
import type { AccountCommand } from '../domain/accounts/user.js';
import type { Ids } from '../kernel/ids.js';
import type { Logger } from '../kernel/logger.js';
import type { Keyring } from '../security/keyring.js';
import type { PasswordHasher } from '../security/passwords.js';
import type { AccountsView } from './accounts-view.js';
import { userField } from './accounts.js';
import type { Gateway } from './port.js';
import { systemContext } from './system.js';

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

/** Makes the first admin unless a user exists. Two instances may both try: one of them wins. */
export async function ensureFirstAdmin(options: FirstAdminOptions): Promise<void> {
  const { gateway, view, keyring, hasher, ids, logger, dataDir } = options;
  if (view.accounts.users.size > 0) return;
  const file = join(dataDir, initialPasswordFile);
  const password = options.password ?? randomBytes(18).toString('base64url');
  // The file first: an admin whose password nobody can read would be worse than a file without an admin.
  if (options.password === undefined) await writeFile(file, `${password}\n`, { mode: 0o600 });
  const hashed = await hasher.hash(password);
  if (hashed.kind !== 'hashed') throw new Error('the password of the first admin could not be hashed');
  const id = ids.next();
  const sealed = await keyring.seal(Buffer.from(hashed.phc), userField(id, 'password'));
  const command: AccountCommand = {
    type: 'CreateUser',
    id,
    username: 'admin',
    role: 'admin',
    display_name: null,
    email: null,
    password: sealed,
    onlyIfFirst: true,
  };
  const outcome = await gateway.execute(command, systemContext('first start'), () => undefined);
  const made = outcome.kind === 'done' && outcome.events.length > 0;
  if (options.password !== undefined) {
    if (made) logger.info({ username: 'admin' }, 'made the first user with the password of SVC_ADMIN_PASSWORD');
    return;
  }
  if (made) logger.info({ username: 'admin', file }, 'made the first user; its password is in the file');
  else await rm(file, { force: true });
}
