/** Hashes of bodies that hold a password say nothing to readers of the log. */
import { createHash, randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { bodyHashBlinder } from '../../src/security/passwords.js';

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

test('equal bodies have equal hashes on every instance, other bodies and other installations have others', () => {
  const identity = randomBytes(32);
  const [here, there] = [bodyHashBlinder(identity), bodyHashBlinder(Uint8Array.from(identity))];
  const elsewhere = bodyHashBlinder(randomBytes(32));
  const [one, other] = [sha256('one body'), sha256('other body')];
  expect(here(one)).toMatch(/^[0-9a-f]{64}$/);
  expect(here(one)).toBe(there(one));
  expect(new Set([one, here(one), here(other), elsewhere(one)]).size).toBe(4);
});

test('the hash stays the same from release to release, so that repeats are known after an upgrade', () => {
  const blind = bodyHashBlinder(new Uint8Array(32).fill(7));
  expect(blind(sha256('{}'))).toBe('b04ab99ff25bec9c6e0b645b98e293cc527b8a8a7c95c7ed3b2b23e7b45d96c0');
});
