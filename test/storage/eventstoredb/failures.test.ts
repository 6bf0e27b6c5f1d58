/** Every error seen from real servers and the client, and what it says about an append. */
import type { ResolvedEvent } from '@eventstore/db-client';
import { describe, expect, it } from 'vitest';
import { toStoredEvent, toNumber, toPosition, toResumePoint } from '../../../src/storage/eventstoredb/events.js';
import { appendFailure, isTooSlow } from '../../../src/storage/eventstoredb/failure.js';

/** As the client throws them: its own classes set `type`; a raw connection error has only a `code`. */
const commandError = (type: string, message = '', more: object = {}): Error =>
  Object.assign(new Error(message), { type, ...more });

const refused = '14 UNAVAILABLE: No connection established. Last error: Error: connect ECONNREFUSED 127.0.0.1:2113.';

describe('an error of an append', () => {
  it.each([
    ['connection refused', commandError('unavailable', refused), 'unavailable'],
    ['not ready', commandError('unavailable', '14 UNAVAILABLE: Server Is Not Ready'), 'unavailable'],
    ['busy', commandError('unavailable', '14 UNAVAILABLE: Server Is Busy'), 'unavailable'],
    ['failed discovery', new Error('Failed to discover after 10 attempts.'), 'unavailable'],
    ['not the leader', commandError('not-leader', '5 NOT_FOUND: Leader info available'), 'unavailable'],
    ['connection reset', commandError('unavailable', '14 UNAVAILABLE: read ECONNRESET'), 'unknown'],
    ['connection dropped', commandError('unavailable', '14 UNAVAILABLE: Connection dropped'), 'unknown'],
    ['deadline of the server', commandError('deadline-exceeded'), 'unknown'],
    ['commit timeout', commandError('timeout', '10 ABORTED: Operation timed out: Commit phase timeout.'), 'unknown'],
    ['election', commandError('timeout', '10 ABORTED: Operation timed out: Request canceled by server'), 'unknown'],
    ['reset stream', commandError('unknown', '13 INTERNAL: Received RST_STREAM with code 0'), 'unknown'],
    ['cancelled', commandError('cancelled', '1 CANCELLED: Cancelled on client'), 'unknown'],
    ['anything else', new Error('something new'), 'unknown'],
    ['larger than a frame', commandError('unknown', '8 RESOURCE_EXHAUSTED: Received message exceeds'), 'refused'],
    ['no rights', commandError('access-denied'), 'refused'],
    ['tombstoned', commandError('stream-deleted'), 'refused'],
    ['too large', commandError('maximum-append-size-exceeded'), 'refused'],
  ])('%s means %s', (_, error, kind) => {
    expect(appendFailure(error).kind).toBe(kind);
  });

  it('carries the actual revision of a conflict', () => {
    const wrong = (actualVersion: unknown): Error => commandError('wrong-expected-version', '', { actualVersion });
    expect(appendFailure(wrong(7n))).toEqual({ kind: 'conflict', actual: 7 });
    expect(appendFailure(wrong('no_stream'))).toEqual({ kind: 'conflict', actual: 'no_stream' });
  });
});

describe('the end of a subscription', () => {
  it('counts as normal only when the server says that the consumer is too slow', () => {
    const slow = '10 ABORTED: Operation timed out: Consumer too slow to handle event while live.';
    expect(isTooSlow(commandError('timeout', slow))).toBe(true);
    expect(isTooSlow(commandError('timeout', '10 ABORTED: Operation timed out.'))).toBe(false);
    expect(isTooSlow(commandError('unavailable', '14 UNAVAILABLE: Connection dropped'))).toBe(false);
  });
});

describe('positions', () => {
  it('of events come from the record, else from the answer; an event without a position is refused', () => {
    const event = { isJson: true, type: 'T', streamId: 'svc-a', id: 'i', revision: 1n, data: {}, metadata: {} };
    const resolved = (more: object, commitPosition?: bigint) =>
      ({ event: { ...event, ...more }, commitPosition }) as unknown as ResolvedEvent;
    expect(toStoredEvent(resolved({ position: { commit: 7n, prepare: 7n } }))?.position).toBe(7);
    expect(toStoredEvent(resolved({}, 8n))?.position).toBe(8);
    expect(() => toStoredEvent(resolved({}))).toThrow(RangeError);
  });

  it('are refused from 2^53 on and keep both halves', () => {
    expect(toNumber(2n ** 53n - 1n)).toBe(Number.MAX_SAFE_INTEGER);
    expect(() => toNumber(2n ** 53n)).toThrow(RangeError);
    expect(toPosition(toResumePoint({ commit: 77n, prepare: 0n })!)).toEqual({ commit: 77n, prepare: 0n });
  });
});
