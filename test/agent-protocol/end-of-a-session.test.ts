/** The end of a session: what its agent is told, when it is forced, when it may retry, and what counts as a duplicate. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ServicePayload } from '../../src/gen/svc/control/v1/session.js';
import { GrpcStatus } from '../../src/kernel/errors.js';
import type { AgentStream } from '../../src/transport/agent/agent-stream.js';
import { closeReasons, jittered } from '../../src/transport/agent/close-reasons.js';
import { noteSuperseded } from '../../src/transport/agent/node-sessions.js';
import { SessionClosing, type Outbox } from '../../src/transport/agent/outbox.js';

/** As many turns of the event loop as a session waits for when its time is over, and more. */
async function manyTurns(): Promise<void> {
  for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

describe('the end of a session', () => {
  function closing() {
    const events: unknown[] = [];
    const stream = { kill: () => void events.push('kill') } as unknown as AgentStream;
    const outbox = {
      finish: (last: Uint8Array | undefined, status: { readonly code: number }) =>
        void events.push([last === undefined ? undefined : ServicePayload.decode(last).payload, status.code]),
      discard: () => void events.push('discard'),
    } as unknown as Outbox;
    return { made: new SessionClosing(stream, outbox), events };
  }

  test('tells a proven agent why, and others only the status', () => {
    const one = closing();
    one.made.begin(closeReasons.idle, true);
    expect(one.events).toEqual([[{ $case: 'close', value: closeReasons.idle.close }, GrpcStatus.DEADLINE_EXCEEDED]]);
    const other = closing();
    other.made.begin(closeReasons.idle, false);
    expect(other.events).toEqual([[undefined, GrpcStatus.DEADLINE_EXCEEDED]]);
    const bare = closing();
    bare.made.begin(closeReasons.lost, true);
    expect(bare.events).toEqual([[undefined, GrpcStatus.UNAVAILABLE]]);
  });

  test('is forced after 2 s on a peer that does not read, and not on one that does', async () => {
    const slow = closing();
    slow.made.begin(closeReasons.idle, true);
    vi.advanceTimersByTime(1_999);
    await manyTurns();
    expect(slow.events).toHaveLength(1);
    vi.advanceTimersByTime(1);
    await manyTurns();
    expect(slow.events.at(-1)).toBe('kill');
    const quick = closing();
    quick.made.begin(closeReasons.idle, true);
    quick.made.gone();
    await quick.made.closed;
    await vi.advanceTimersByTimeAsync(10_000);
    await manyTurns();
    expect(quick.events.slice(1)).toEqual(['discard']);
    const between = closing();
    between.made.begin(closeReasons.idle, true);
    await vi.advanceTimersByTimeAsync(2_000);
    between.made.gone();
    await manyTurns();
    expect(between.events.slice(1)).toEqual(['discard']);
  });

  test('of a revoked one is forced after 0.1 s, and its connection is closed even if it reads', async () => {
    const slow = closing();
    slow.made.begin(closeReasons.revoked, true);
    vi.advanceTimersByTime(99);
    await manyTurns();
    expect(slow.events).toHaveLength(1);
    vi.advanceTimersByTime(1);
    await manyTurns();
    expect(slow.events.at(-1)).toBe('kill');
    const quick = closing();
    quick.made.begin(closeReasons.revoked, true);
    quick.made.gone();
    await vi.advanceTimersByTimeAsync(19);
    await manyTurns();
    expect(quick.events.slice(1)).toEqual(['discard']);
    await vi.advanceTimersByTimeAsync(1);
    await manyTurns();
    expect(quick.events.slice(1)).toEqual(['discard', 'kill']);
  });
});

describe('a retry', () => {
  test('is spread from half to one and a half times its base, in whole milliseconds', () => {
    expect([0, 0.5, 0.9999].map((random) => jittered(2_001, () => random))).toEqual([1_001, 2_001, 3_001]);
  });
});

describe('supersedings', () => {
  test('are remembered while they count, and two of them suffice', () => {
    expect(noteSuperseded([0, 1, 2], 300_001)).toEqual({ supersedings: [2, 300_001], duplicate: true });
    expect(noteSuperseded([], 5)).toEqual({ supersedings: [5], duplicate: false });
    expect(noteSuperseded([1, 2], 3)).toEqual({ supersedings: [2, 3], duplicate: true });
    expect(noteSuperseded([0], 300_001)).toEqual({ supersedings: [300_001], duplicate: false });
  });
});
