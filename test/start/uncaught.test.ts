/** What nobody caught: two kinds are survived and counted, everything else ends the process. */
import { afterEach, expect, test, vi } from 'vitest';
import { silentLogger } from '../../src/kernel/logger.js';
import { handleUncaught, type UncaughtErrors } from '../../src/app/uncaught.js';

type Handler = (error: unknown) => void;

const events = ['uncaughtException', 'unhandledRejection'] as const;
const before = new Map(events.map((event) => [event, process.listeners(event as never)]));
afterEach(() => {
  for (const event of events) {
    for (const listener of process.listeners(event as never) as Handler[]) {
      if (!(before.get(event) as unknown[]).includes(listener)) process.off(event, listener);
    }
  }
});

/** Installs the handlers, and calls the one of an event as Node would. */
function install(end: () => void) {
  const fatal = vi.fn();
  const error = vi.fn();
  const uncaught: UncaughtErrors = handleUncaught({ ...silentLogger, error, fatal }, end);
  const call = (event: (typeof events)[number], thrown: unknown): void =>
    (process.listeners(event as never) as Handler[]).at(-1)!(thrown);
  return { fatal, error, call, survived: () => uncaught.metrics()[0]!.read() };
}

test('an answer to an HTTP/2 stream that has ended is logged, counted and survived', () => {
  const end = vi.fn();
  const { call, error, survived } = install(end);
  call('uncaughtException', Object.assign(new Error('gone'), { code: 'ERR_HTTP2_INVALID_STREAM' }));
  expect(end).not.toHaveBeenCalled();
  expect(error).toHaveBeenCalledTimes(1);
  expect(survived()).toBe(1);
});

test.each(['Failed to discover after 10 attempts.', 'Channel has been shut down'])(
  'a rejection that the client of the event store left to nobody is logged, counted and survived: %s',
  (message) => {
    const end = vi.fn();
    const { call, error, survived } = install(end);
    call('unhandledRejection', new Error(message));
    expect(end).not.toHaveBeenCalled();
    expect(error).toHaveBeenCalledTimes(1);
    expect(survived()).toBe(1);
  },
);

test.each([
  ['uncaughtException', Object.assign(new Error('disk'), { code: 'EIO' })],
  ['uncaughtException', new TypeError('x is not a function')],
  ['unhandledRejection', Object.assign(new Error('gone'), { code: 'ERR_HTTP2_INVALID_STREAM' })],
] as const)('any other %s is logged and ends the process', (event, thrown) => {
  const end = vi.fn();
  const { call, fatal, survived } = install(end);
  call(event, thrown);
  expect(fatal).toHaveBeenCalledTimes(1);
  expect(end).toHaveBeenCalledTimes(1);
  expect(survived()).toBe(0);
});
