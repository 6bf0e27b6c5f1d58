/**
 * Password hashes: Argon2id in PHC strings, and keyed hashes of request bodies that hold a password. Only a few Argon2id
 * hashes run at a time, because they share the thread pool with fsync. Implements
 * `docs/contract/rest.md#authentication-and-roles` and `docs/contract/rest.md#consistency`, `Idempotency-Key`.
 */
import { createHmac, hkdfSync, randomBytes } from 'node:crypto';
import { hash, parseOptions, verify } from '@node-rs/argon2';
import { normalPassword } from '../domain/accounts/user.js';
import { limits } from '../kernel/limits.js';
import { createSemaphore } from '../kernel/semaphore.js';

/** How many hashes may wait for their turn, and for how long. */
const hashQueue = 64;
const hashWaitMs = 5_000;

export type HashResult = { readonly kind: 'hashed'; readonly phc: string } | { readonly kind: 'busy' };

export interface PasswordHasher {
  /** Hashes a new password. Answers `busy` when the queue is full; the caller then answers 429. */
  hash(password: string): Promise<HashResult>;
  /**
   * Compares a password with a stored hash. Without a hash, because there is no such user, it does the same work and
   * answers `mismatch`.
   */
  verify(phc: string | undefined, password: string): Promise<'match' | 'mismatch' | 'busy'>;
  /** True when a stored hash is weaker than the current parameters; the next sign-in then replaces it. */
  needsRehash(phc: string): boolean;
  close(): void;
}

export interface PasswordHasherOptions {
  readonly inFlight?: number;
  readonly queue?: number;
  readonly waitMs?: number;
}

/** Argon2id is the library's default; its const enum cannot be used under isolatedModules. */
const cost = { memoryCost: 19 * 1024, timeCost: 2, parallelism: 1, outputLen: 32 };
const argon2id = 2;

export function createPasswordHasher(options: PasswordHasherOptions = {}): PasswordHasher {
  const gate = createSemaphore({
    places: options.inFlight ?? limits.logins.hashesInFlight,
    waiting: options.queue ?? hashQueue,
    waitMs: options.waitMs ?? hashWaitMs,
  });
  const unmatchable = unmatchablePhc();

  const compare = async (phc: string, password: string): Promise<boolean> => {
    try {
      return await verify(phc, password);
    } catch {
      // A stored hash that cannot be parsed matches nobody, and takes just as long to refuse.
      await verify(unmatchable, password);
      return false;
    }
  };

  /** The hash of a password that was set before passwords were normalized is of the text as typed. */
  const formsOf = (password: string): ReadonlySet<string> => new Set([normalPassword(password), password]);

  return {
    async hash(password) {
      const leave = await gate.enter();
      if (leave === undefined) return { kind: 'busy' };
      try {
        return { kind: 'hashed', phc: await hash(normalPassword(password), cost) };
      } finally {
        leave();
      }
    },
    async verify(phc, password) {
      const leave = await gate.enter();
      if (leave === undefined) return 'busy';
      try {
        for (const form of formsOf(password)) {
          if ((await compare(phc ?? unmatchable, form)) && phc !== undefined) return 'match';
        }
        return 'mismatch';
      } finally {
        leave();
      }
    },
    needsRehash(phc) {
      try {
        const used = parseOptions(phc);
        return (
          Number(used.algorithm) !== argon2id ||
          used.memoryCost < cost.memoryCost ||
          used.timeCost < cost.timeCost ||
          used.outputLen < cost.outputLen
        );
      } catch {
        return true;
      }
    },
    close: gate.close,
  };
}

/** A well-formed hash that matches no password: its salt and output are random bytes. */
function unmatchablePhc(): string {
  const part = (bytes: number): string => randomBytes(bytes).toString('base64').replaceAll('=', '');
  return `$argon2id$v=19$m=${cost.memoryCost},t=${cost.timeCost},p=${cost.parallelism}$${part(16)}$${part(32)}`;
}

/**
 * Rehashes, for the log, the hash of a request body that holds a password. With plain SHA-256, readers of the log could
 * try passwords millions of times faster than against a stored hash; a keyed hash only tells the service whether two
 * bodies are equal.
 * @param identity the private key of the service's identity, which is the same on every instance and never replaced
 * @returns a function from the hex hash of a body to another one
 */
export function bodyHashBlinder(identity: Uint8Array): (hash: string) => string {
  const key = new Uint8Array(hkdfSync('sha256', identity, 'svc-body-v1', 'idempotency', 32));
  return (bodyHash) => createHmac('sha256', key).update(bodyHash).digest('hex');
}
