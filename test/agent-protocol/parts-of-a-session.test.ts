/** The parts of one session each by itself: its queue of requests, its heartbeats, its exchange with delivery, its end. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { ApplyReport, ConfigAnswer, Delivery, NodeSession } from '../../src/delivery/port.js';
import { offlineAfterSeconds } from '../../src/delivery/port.js';
import { Command } from '../../src/gen/svc/control/v1/command.js';
import { ServicePayload } from '../../src/gen/svc/control/v1/session.js';
import { GrpcStatus } from '../../src/kernel/errors.js';
import { intervalsOf } from '../../src/transport/agent/agent-intervals.js';
import type { AgentStream } from '../../src/transport/agent/agent-stream.js';
import { closeReasons, jittered } from '../../src/transport/agent/close-reasons.js';
import { createConfigExchange } from '../../src/transport/agent/config-exchange.js';
import { noteSuperseded, recentSupersedings } from '../../src/transport/agent/duplicates.js';
import { createHeartbeats } from '../../src/transport/agent/heartbeats.js';
import type { Outbox } from '../../src/transport/agent/outbox.js';
import { createReadBudgets } from '../../src/transport/agent/read-budget.js';
import { createSerialQueue } from '../../src/transport/agent/serial-queue.js';
import { createSessionClosing } from '../../src/transport/agent/session-closing.js';
import { createUnfinishedBytes } from '../../src/transport/agent/unfinished-bytes.js';
import { createManualClock } from '../support/manual-clock.js';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('the queue of requests', () => {
  function queue() {
    const failures: unknown[] = [];
    const done: string[] = [];
    let progress = 0;
    const finish: (() => void)[] = [];
    const made = createSerialQueue(
      (error) => failures.push(error),
      () => (progress += 1),
    );
    const add = (name: string): void =>
      made.run(async () => {
        await new Promise<void>((resolve) => finish.push(resolve));
        done.push(name);
      });
    return { made, add, done, failures, progress: () => progress, finish: () => finish.shift()?.() };
  }

  test('runs them one at a time, in order', async () => {
    const { made, add, done, finish, progress } = queue();
    for (const name of ['a', 'b', 'c']) add(name);
    expect(made.size).toBe(3);
    finish();
    await turn();
    expect([done, made.size, progress()]).toEqual([['a'], 2, 1]);
    finish();
    await turn();
    finish();
    await turn();
    expect([done, made.size, progress()]).toEqual([['a', 'b', 'c'], 0, 3]);
    add('d');
    finish();
    await turn();
    expect([done.at(-1), made.size]).toEqual(['d', 0]);
  });

  test('goes on after one that fails or takes too long, and tells both', async () => {
    const { made, add, done, failures, finish, progress } = queue();
    made.run(() => Promise.reject(new Error('bad')));
    made.run(() => new Promise(() => undefined));
    add('next');
    await turn();
    expect([failures, made.size]).toEqual([[new Error('bad')], 2]);
    await vi.advanceTimersByTimeAsync(30_000);
    expect(failures).toEqual([new Error('bad'), new Error('no answer in time')]);
    finish();
    await turn();
    expect([done, progress()]).toEqual([['next'], 3]);
  });

  test('drops what waits when it is closed, and lets the running one finish', async () => {
    const { made, add, done, finish } = queue();
    add('a');
    add('b');
    made.close();
    expect(made.size).toBe(1);
    finish();
    await turn();
    expect([done, made.size]).toEqual([['a'], 0]);
  });
});

describe('heartbeats', () => {
  const settings = (heartbeat: number) =>
    ({ heartbeat_interval_secs: heartbeat, metrics_interval_secs: 60 }) as ReturnType<Delivery['settings']>;
  function heartbeats(claim: () => Promise<readonly ('RELOAD_CONFIG' | 'RESTART_PINGORA' | 'RUN_DIAGNOSTICS')[]>) {
    const sent: ServicePayload['payload'][] = [];
    const told: number[] = [];
    const failures: unknown[] = [];
    let secs = 10;
    const made = createHeartbeats(
      {
        delivery: { settings: () => settings(secs) },
        claimCommands: claim,
        send: (payload) => void sent.push(payload),
        onIntervals: ({ heartbeatSecs }) => void told.push(heartbeatSecs),
        onFailed: (error) => void failures.push(error),
        onProgress: () => undefined,
      },
      intervalsOf(settings(5)),
    );
    return { made, sent, told, failures, set: (value: number) => (secs = value) };
  }

  test('are answered with the claimed commands, 16 at most, and the intervals in force', async () => {
    const commands = [
      'RELOAD_CONFIG',
      'RESTART_PINGORA',
      'RUN_DIAGNOSTICS',
      ...Array<'RELOAD_CONFIG'>(14).fill('RELOAD_CONFIG'),
    ] as const;
    const { made, sent, told, set } = heartbeats(() => Promise.resolve(commands));
    expect(made.intervals.heartbeatSecs).toBe(5);
    made.answer({ sequence: 7n });
    expect(made.waiting).toBe(1);
    set(20);
    await turn();
    expect(sent).toEqual([
      {
        $case: 'heartbeatResponse',
        value: {
          ok: true,
          ackSequence: 7n,
          commands: [
            Command.RELOAD_CONFIG,
            Command.RESTART_PINGORA,
            Command.RUN_DIAGNOSTICS,
            ...Array<Command>(13).fill(Command.RELOAD_CONFIG),
          ],
          heartbeatIntervalSecs: 20,
          metricsIntervalSecs: 60,
        },
      },
    ]);
    expect([told, made.intervals.heartbeatSecs, made.waiting]).toEqual([[20], 20, 0]);
  });

  test('are not answered when the session has closed meanwhile, and one whose commands fail is told', async () => {
    let claimed: (() => void) | undefined;
    const closing = heartbeats(() => new Promise((resolve) => (claimed = () => resolve([]))));
    closing.made.answer({ sequence: 1n });
    closing.made.answer({ sequence: 2n });
    closing.made.close();
    claimed?.();
    await turn();
    expect([closing.sent, closing.told, closing.made.waiting]).toEqual([[], [], 0]);
    const failing = heartbeats(() => Promise.reject(new Error('away')));
    failing.made.answer({ sequence: 1n });
    await turn();
    expect([failing.sent, failing.failures]).toEqual([[], [new Error('away')]]);
  });
});

describe('the exchange with delivery', () => {
  function exchange(node: Partial<NodeSession> = {}) {
    const answers: ConfigAnswer[] = [];
    const calls: unknown[] = [];
    const failures: unknown[] = [];
    const nodeSession: NodeSession = {
      request: async (version) => {
        calls.push(version);
        return { kind: 'unchanged', generation: 3 };
      },
      report: async ({ generation }) => void calls.push(['report', generation]),
      sent: ({ generation }) => void calls.push(['sent', generation]),
      close: () => void calls.push('close'),
      ...node,
    };
    const clock = createManualClock();
    const made = createConfigExchange({
      delivery: { openNodeSession: () => nodeSession },
      clock,
      onAnswer: (answer) => void answers.push(answer),
      onFailed: (error) => void failures.push(error),
      onProgress: () => undefined,
    });
    return { made, answers, calls, failures, clock };
  }
  const report: ApplyReport = {
    generation: 4n,
    checksum: new Uint8Array(32),
    status: 'applied',
    errors: [],
    durationMs: 1,
  };
  const slot = { offer: () => undefined };

  test('asks in order and hands on the answers', async () => {
    const { made, answers, calls } = exchange();
    made.open('n1', 's1', slot);
    made.request(1n, new Uint8Array(0));
    made.report(report);
    made.request(2n, new Uint8Array(0));
    expect(made.waiting).toBe(3);
    await turn();
    expect([calls, answers.length, made.waiting]).toEqual([[1n, ['report', 4n], 2n], 2, 0]);
  });

  test('does nothing before it is opened', async () => {
    const { made, answers, calls, failures } = exchange();
    made.request(1n, new Uint8Array(0));
    made.report(report);
    made.sent({ generation: 9, checksum: new Uint8Array(32), payload: new Uint8Array(1) });
    await turn();
    made.close();
    expect([calls, answers, failures]).toEqual([[], [], []]);
  });

  test('does not let a report that is not recorded hold up the requests behind it for more than 2 s', async () => {
    const { made, answers, failures } = exchange({ report: () => new Promise(() => undefined) });
    made.open('n1', 's1', slot);
    made.report(report);
    made.request(1n, new Uint8Array(0));
    await vi.advanceTimersByTimeAsync(1_999);
    expect(answers).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    await turn();
    expect([answers.length, failures]).toEqual([1, []]);
  });

  test('notes what was sent as a whole, and when', () => {
    const { made, calls, clock } = exchange();
    const push = { generation: 9, checksum: new Uint8Array(32), payload: new Uint8Array(1) };
    expect(made.pushed).toBeUndefined();
    made.open('n1', 's1', slot);
    made.sent(push);
    expect(made.pushed).toEqual({ generation: 9, at: new Date(clock.now()).toISOString() });
    expect(calls).toEqual([['sent', 9]]);
  });

  test('closes the session of delivery, and drops what waits', async () => {
    const { made, calls } = exchange();
    made.open('n1', 's1', slot);
    made.request(1n, new Uint8Array(0));
    made.request(2n, new Uint8Array(0));
    made.close();
    await turn();
    expect(calls).toEqual([1n, 'close']);
  });
});

describe('the end of a session', () => {
  function closing() {
    const events: unknown[] = [];
    const stream = { kill: () => void events.push('kill') } as unknown as AgentStream;
    const outbox = {
      finish: (last: Uint8Array | undefined, status: { readonly code: number }) =>
        void events.push([last === undefined ? undefined : ServicePayload.decode(last).payload, status.code]),
      discard: () => void events.push('discard'),
    } as unknown as Outbox;
    return { made: createSessionClosing(stream, outbox), events };
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
    expect(slow.events).toHaveLength(1);
    vi.advanceTimersByTime(1);
    expect(slow.events.at(-1)).toBe('kill');
    const quick = closing();
    quick.made.begin(closeReasons.idle, true);
    quick.made.gone();
    await quick.made.closed;
    await vi.advanceTimersByTimeAsync(10_000);
    expect(quick.events.slice(1)).toEqual(['discard']);
  });

  test('of a revoked one is forced after 0.1 s, and its connection is closed even if it reads', async () => {
    const slow = closing();
    slow.made.begin(closeReasons.revoked, true);
    vi.advanceTimersByTime(99);
    expect(slow.events).toHaveLength(1);
    vi.advanceTimersByTime(1);
    expect(slow.events.at(-1)).toBe('kill');
    const quick = closing();
    quick.made.begin(closeReasons.revoked, true);
    quick.made.gone();
    await vi.advanceTimersByTimeAsync(19);
    expect(quick.events.slice(1)).toEqual(['discard']);
    await vi.advanceTimersByTimeAsync(1);
    expect(quick.events.slice(1)).toEqual(['discard', 'kill']);
  });
});

describe('the intervals in force', () => {
  test('are those of the settings, and a node is offline after three heartbeats', () => {
    const settings = { heartbeat_interval_secs: 20, metrics_interval_secs: 70 } as ReturnType<Delivery['settings']>;
    const offlineAfterMs = offlineAfterSeconds(settings) * 1000;
    expect(intervalsOf(settings)).toEqual({ heartbeatSecs: 20, metricsSecs: 70, offlineAfterMs });
    expect(offlineAfterMs).toBeGreaterThan(20_000);
  });
});

describe('a retry', () => {
  test('is spread from half to one and a half times its base, in whole milliseconds', () => {
    expect([0, 0.5, 0.9999].map((random) => jittered(2_001, () => random))).toEqual([1_001, 2_001, 3_001]);
  });
});

describe('supersedings', () => {
  test('are remembered while they count, and two of them suffice', () => {
    expect(recentSupersedings([0, 1, 2], 300_001)).toEqual([1, 2]);
    expect(noteSuperseded([], 5)).toEqual({ supersedings: [5], duplicate: false });
    expect(noteSuperseded([1, 2], 3)).toEqual({ supersedings: [2, 3], duplicate: true });
    expect(noteSuperseded([0], 300_001)).toEqual({ supersedings: [300_001], duplicate: false });
  });
});

describe('unfinished bytes', () => {
  test('are added up over all sessions against one bound', () => {
    const bytes = createUnfinishedBytes(100);
    const [one, two] = [bytes.share(), bytes.share()];
    one.hold(60);
    two.hold(40);
    expect([bytes.total, one.exceeded, two.exceeded]).toEqual([100, false, false]);
    two.hold(41);
    expect([bytes.total, one.exceeded, two.exceeded]).toEqual([101, true, true]);
    one.hold(0);
    expect([bytes.total, two.exceeded]).toEqual([41, false]);
  });
});

describe('what may be read of a node', () => {
  const rate = (perSecond: number, burst: number) => ({ perSecond, burst });
  const budgets = (allowed = { payloads: rate(2, 3), entries: rate(10, 20), bytes: rate(100, 200) }) => {
    const clock = createManualClock();
    return { clock, budgets: createReadBudgets(clock, allowed) };
  };

  test('is a burst of payloads and then a rate, for the node and not for the session', () => {
    const { clock, budgets: made } = budgets();
    for (let count = 0; count < 3; count += 1) made.of('n1').payload(0);
    expect(made.of('n1').spent).toBe(false);
    made.of('n1').payload(0);
    expect([made.of('n1').spent, made.of('n2').spent]).toEqual([true, false]);
    clock.advance(498);
    expect(made.of('n1').spent).toBe(true);
    clock.advance(4);
    expect(made.of('n1').spent).toBe(false);
  });

  test('is a debt until what was too much is paid: entries and bytes alike', () => {
    const { clock, budgets: made } = budgets();
    made.of('n1').payload(30);
    expect(made.of('n1').spent).toBe(true);
    clock.advance(998);
    expect(made.of('n1').spent).toBe(true);
    clock.advance(4);
    expect(made.of('n1').spent).toBe(false);
    made.of('n2').frame(200);
    expect(made.of('n2').spent).toBe(false);
    made.of('n2').frame(50);
    expect(made.of('n2').spent).toBe(true);
    clock.advance(502);
    expect(made.of('n2').spent).toBe(false);
  });
});
