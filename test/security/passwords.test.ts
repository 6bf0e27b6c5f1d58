import { hash } from '@node-rs/argon2';
import { afterEach, describe, expect, it } from 'vitest';
import { createPasswordHasher, type PasswordHasher, type PasswordHasherOptions } from '../../src/security/passwords.js';

const open: PasswordHasher[] = [];
const hasher = (options?: PasswordHasherOptions): PasswordHasher => {
  const made = createPasswordHasher(options);
  open.push(made);
  return made;
};
afterEach(() => open.splice(0).forEach((made) => made.close()));

async function phcOf(passwords: PasswordHasher, password: string): Promise<string> {
  const result = await passwords.hash(password);
  if (result.kind !== 'hashed') throw new Error('busy');
  return result.phc;
}

describe('a password hash', () => {
  it('is Argon2id with 19 MiB, two passes and one lane, and matches only its password', async () => {
    const passwords = hasher();
    const phc = await phcOf(passwords, 'correct horse battery');
    expect(phc).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
    expect(await passwords.verify(phc, 'correct horse battery')).toBe('match');
    expect(await passwords.verify(phc, 'correct horse batterz')).toBe('mismatch');
    expect(await phcOf(passwords, 'correct horse battery')).not.toBe(phc);
  });

  it('does not match when there is no user or the hash is unreadable', async () => {
    const passwords = hasher();
    expect(await passwords.verify(undefined, '')).toBe('mismatch');
    expect(await passwords.verify(undefined, 'anything at all')).toBe('mismatch');
    expect(await passwords.verify('not a hash', 'anything at all')).toBe('mismatch');
  });

  it('matches however a keyboard composes its characters, also where it was hashed as typed', async () => {
    const passwords = hasher();
    const [composed, decomposed] = ['Schlüssel für ﬁnken', 'Schlu\u0308ssel fu\u0308r finken'];
    expect(composed).not.toBe(decomposed);
    const asTyped = await hash(decomposed, { memoryCost: 19 * 1024, timeCost: 2, parallelism: 1 });
    for (const stored of [await phcOf(passwords, composed), await phcOf(passwords, decomposed)]) {
      expect(await passwords.verify(stored, composed)).toBe('match');
      expect(await passwords.verify(stored, decomposed)).toBe('match');
    }
    expect(await passwords.verify(asTyped, decomposed)).toBe('match');
    expect(await passwords.verify(asTyped, composed)).toBe('mismatch');
  });

  it('takes as long when there is no user or the hash is unreadable', async () => {
    const passwords = hasher();
    const phc = await phcOf(passwords, 'correct horse battery');
    const quickest = async (stored: string | undefined): Promise<number> => {
      let least = Number.POSITIVE_INFINITY;
      for (let round = 0; round < 3; round += 1) {
        const started = performance.now();
        await passwords.verify(stored, 'wrong');
        least = Math.min(least, performance.now() - started);
      }
      return least;
    };
    const usual = await quickest(phc);
    for (const stored of [undefined, 'not a hash']) expect(await quickest(stored)).toBeGreaterThan(usual / 4);
  });

  it('needs a rehash when it is weaker than the current parameters', async () => {
    const passwords = hasher();
    expect(passwords.needsRehash(await phcOf(passwords, 'correct horse battery'))).toBe(false);
    expect(passwords.needsRehash(await hash('x', { memoryCost: 4096, timeCost: 2, parallelism: 1 }))).toBe(true);
    expect(passwords.needsRehash(await hash('x', { memoryCost: 65_536, timeCost: 3, parallelism: 1 }))).toBe(false);
    expect(passwords.needsRehash('not a hash')).toBe(true);
    const current = { memoryCost: 19_456, timeCost: 2, parallelism: 1, outputLen: 32 };
    expect(passwords.needsRehash(await hash('x', current))).toBe(false);
    // 1 is Argon2i.
    for (const weaker of [{ memoryCost: 19_455 }, { timeCost: 1 }, { outputLen: 31 }, { algorithm: 1 }]) {
      expect(passwords.needsRehash(await hash('x', { ...current, ...weaker })), JSON.stringify(weaker)).toBe(true);
    }
  });

  it('is computed a few at a time; the rest wait, and beyond the queue the answer is busy', async () => {
    const passwords = hasher({ inFlight: 2, queue: 3 });
    const results = await Promise.all(Array.from({ length: 9 }, () => passwords.verify(undefined, 'x')));
    expect(results.filter((result) => result === 'mismatch').length).toBe(5);
    expect(results.filter((result) => result === 'busy').length).toBe(4);
    expect(await passwords.verify(undefined, 'x')).toBe('mismatch');
  });

  it('waits at most its limit, and not at all once the hasher is closed', async () => {
    const impatient = hasher({ inFlight: 1, queue: 5, waitMs: 0 });
    const answers = await Promise.all([1, 2, 3].map(() => impatient.verify(undefined, 'x')));
    expect(answers[0]).toBe('mismatch');
    // If the first is done before the event loop looks at its timers, the second gets the place; never the third.
    expect(answers[2]).toBe('busy');
    const closing = hasher({ inFlight: 1, queue: 5 });
    const running = [closing.hash('one'), closing.hash('two')];
    closing.close();
    expect((await Promise.all(running)).map((result) => result.kind)).toEqual(['hashed', 'busy']);
    expect(await closing.hash('three')).toEqual({ kind: 'busy' });
  });
});
