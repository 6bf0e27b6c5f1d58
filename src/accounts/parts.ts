/** The dependencies of the account handlers, and what several of them share. */
import type { Accounts } from '../domain/accounts/accounts.js';
import type { AccountCommand } from '../domain/accounts/declaration.js';
import type { Clock } from '../kernel/clock.js';
import type { RecordedEvent } from '../kernel/event.js';
import type { Ids } from '../kernel/ids.js';
import { limits } from '../kernel/limits.js';
import type { LogFields, Logger } from '../kernel/logger.js';
import type { SampledLog } from '../kernel/sampled-log.js';
import type { Keyring } from '../security/keyring.js';
import type { LoginLimiter } from '../security/login-limiter.js';
import type { PasswordHasher } from '../security/passwords.js';
import type { Tokens } from '../security/tokens.js';
import type { CommandContext, FactRecorder, Gateway } from '../commands/port.js';
import type { UserFields } from './fields.js';
import type { PasswordCheck } from './password-check.js';
import type { TokenUses } from './token-uses.js';
import type { CommittedAccounts } from '../projections/accounts.js';

export interface AccountHandlerOptions {
  readonly gateway: Gateway<Accounts, AccountCommand>;
  readonly view: CommittedAccounts;
  readonly keyring: Keyring;
  readonly hasher: PasswordHasher;
  readonly limiter: LoginLimiter;
  readonly tokens: Tokens;
  readonly facts: Pick<FactRecorder, 'signin'>;
  readonly uses: TokenUses;
  readonly refusals: Pick<SampledLog, 'note'>;
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
  readonly ids: Ids;
  readonly logger: Logger;
  /** True once every live instance refuses the tokens that a change at the revision ended; false after a timeout. */
  readonly tokensEnded: (revision: number, timeoutMs: number) => Promise<boolean>;
  /** Deletes the join tokens that a user has made, as somebody else's command. @returns how many */
  readonly deleteJoinTokens: (context: CommandContext, userId: string) => Promise<number>;
  /** Turns the hash of a body that contains a password into one that tells readers of the log nothing. */
  readonly blindBodyHash: (hash: string) => string;
}

/** The options, and everything the handlers share. */
export interface AccountParts extends AccountHandlerOptions {
  readonly fields: UserFields;
  readonly passwords: PasswordCheck;
}

/**
 * Waits until every live instance refuses tokens that have ended. The others read the log themselves, usually within
 * milliseconds: this waits so that none is behind.
 * @param what names the tokens in the log line
 */
export async function endEverywhere(
  { tokensEnded, logger }: AccountParts,
  events: readonly RecordedEvent[],
  what: string,
  whose: LogFields,
): Promise<void> {
  const revision = events.at(-1)?.revision;
  if (revision === undefined || (await tokensEnded(revision, limits.rest.projectionWaitMs))) return;
  logger.warn(whose, `not every instance has said in time that it refuses ${what}`);
}
