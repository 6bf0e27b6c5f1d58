import { expect } from 'vitest';

/** `expect.poll` with the patience that real sockets on a busy machine need; ends as soon as it holds. */
export function eventually<T>(read: () => T): ReturnType<typeof expect.poll<T>> {
  return expect.poll(read, { timeout: 20_000, interval: 10 });
}
