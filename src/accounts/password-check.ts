/**
 * Checks whether somebody knows an account's password: within the budget of failures, before any hash is computed, and
 * with the same work for an unknown name. Sign-ins and password changes share the budget. Implements
 * `docs/contract/rest.md#authentication-and-roles`.
 */
import type { UserState } from '../domain/accounts/user.js';
import { sleep } from '../kernel/background.js';
import { ServiceError } from '../kernel/errors.js';
import type { LoginLimiter, LoginOutcome } from '../security/login-limiter.js';
import type { PasswordHasher } from '../security/passwords.js';
import type { UserFields } from './fields.js';

const busyRetrySeconds = 1;

export interface PasswordAttempt {
  /** The caller's IP address. */
  readonly address: string;
  /** The user name, lower-cased. */
  readonly name: string;
  readonly password: string;
  /** The current account, if there is one. */
  find(): UserState | undefined;
}

export interface KnownPassword {
  /** The account as it was when the password was compared. */
  readonly user: UserState;
  /** The stored hash. */
  readonly phc: string;
}

export interface PasswordCheck {
  /** @returns undefined when it is wrong. @throws ServiceError `rate_limited` with `retryAfterSeconds` */
  check(attempt: PasswordAttempt): Promise<KnownPassword | undefined>;
  /** The hash of a new password. @throws ServiceError like `check` */
  hash(password: string): Promise<string>;
}

export interface PasswordCheckParts {
  readonly fields: Pick<UserFields, 'open' | 'sealPassword'>;
  readonly hasher: PasswordHasher;
  readonly limiter: LoginLimiter;
}

export function createPasswordCheck({ fields, hasher, limiter }: PasswordCheckParts): PasswordCheck {
  const nobody = { id: '', display_name: null, email: null, password: fields.sealPassword('', '-'.repeat(96)) };

  async function compare(user: UserState | undefined, password: string): Promise<KnownPassword | undefined> {
    // An unknown name costs the same work, so that the time of an answer does not reveal whether it exists.
    const opened = fields.open(user ?? nobody, 'password') ?? undefined;
    const stored = user === undefined ? undefined : opened;
    const result = await hasher.verify(stored, password);
    if (result === 'busy') throw busy();
    return result === 'match' && user !== undefined && stored !== undefined ? { user, phc: stored } : undefined;
  }

  return {
    async check({ address, name, password, find }) {
      const admission = await limiter.admit(address, name);
      if (admission.kind === 'refused') {
        const hints = { retryAfterSeconds: admission.retryAfterSeconds };
        throw new ServiceError('rate_limited', 'too many failed sign-ins; try again later', { hints });
      }
      let outcome: LoginOutcome = 'abandoned';
      try {
        if (admission.delayMs > 0) await sleep(admission.delayMs);
        const user = find();
        let known = await compare(user, password);
        // The stored hash was replaced while it was being compared.
        if (known === undefined && find()?.password !== user?.password) known = await compare(find(), password);
        outcome = known === undefined ? 'failed' : 'succeeded';
        return known;
      } finally {
        admission.settle(outcome);
      }
    },
    async hash(password) {
      const hashed = await hasher.hash(password);
      if (hashed.kind === 'busy') throw busy();
      return hashed.phc;
    },
  };
}

const busy = (): ServiceError =>
  new ServiceError('rate_limited', 'too many passwords are being checked at once; try again', {
    hints: { retryAfterSeconds: busyRetrySeconds },
  });
