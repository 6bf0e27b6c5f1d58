/** The dependencies of the handlers of accounts. Types only. */
import type { Accounts } from '../domain/accounts/accounts.js';
import type { AccountCommand } from '../domain/accounts/user.js';
import type { Ids } from '../kernel/ids.js';
import type { Logger } from '../kernel/logger.js';
import type { Keyring } from '../security/keyring.js';
import type { LoginLimiter } from '../security/login-limiter.js';
import type { PasswordHasher } from '../security/passwords.js';
import type { Tokens } from '../security/tokens.js';
import type { FactRecorder, Gateway } from '../commands/port.js';
import type { UserFields } from './fields.js';
import type { PasswordCheck } from './password-check.js';
import type { CommittedAccounts } from '../projections/accounts.js';

export interface AccountHandlerOptions {
  readonly gateway: Gateway<Accounts, AccountCommand>;
  readonly view: CommittedAccounts;
  readonly keyring: Keyring;
  readonly hasher: PasswordHasher;
  readonly limiter: LoginLimiter;
  readonly tokens: Tokens;
  readonly facts: Pick<FactRecorder, 'signin'>;
  readonly ids: Ids;
  readonly logger: Logger;
  /** True once every live instance refuses the tokens that a password change at the revision has ended; false after a timeout. */
  readonly tokensEnded: (revision: number, timeoutMs: number) => Promise<boolean>;
  /** Turns the hash of a body that holds a password into one that says nothing to readers of the log. */
  readonly blindBodyHash: (hash: string) => string;
}

/** The options, and what all handlers share. */
export interface AccountParts extends AccountHandlerOptions {
  readonly fields: UserFields;
  readonly passwords: PasswordCheck;
}
