import { expect } from 'vitest';

/** `expect.poll` with a timeout for real sockets on a busy machine. */
export function eventually<T>(read: () => T): ReturnType<typeof expect.poll<T>> {
  return expect.poll(read, { timeout: 20_000, interval: 10 });
}
