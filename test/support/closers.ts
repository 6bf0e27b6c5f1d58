/** What the tests of a file close after each of them, the newest first. */
import { afterEach } from 'vitest';

export function closersAfterEach(): (() => Promise<unknown>)[] {
  const closers: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const close of closers.splice(0).toReversed()) await close();
  });
  return closers;
}
