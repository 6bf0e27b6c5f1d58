/** The exchange of a session with delivery: requests and reports in order, and what was sent. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { ApplyReport, ConfigAnswer, NodeSession } from '../../src/delivery/port.js';
import { ConfigExchange } from '../../src/transport/agent/config-exchange.js';
import { createManualClock } from '../support/manual-clock.js';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

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
      reportTurn: () => Promise.resolve(),
      report: async ({ generation }, at) => void calls.push(['report', generation, at]),
      beat: () => true,
      sent: ({ generation }) => void calls.push(['sent', generation]),
      reload: () => Promise.resolve(),
      close: () => void calls.push('close'),
      ...node,
    };
    const clock = createManualClock();
    const made = new ConfigExchange({
      delivery: { openNodeSession: () => nodeSession },
      clock,
      onAnswer: (answer) => void answers.push(answer),
      onConfigFailed: (error) => void failures.push(error),
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
    made.report(report, 17);
    made.request(2n, new Uint8Array(0));
    expect(made.waiting).toBe(3);
    await turn();
    expect([calls, answers.length, made.waiting]).toEqual([[1n, ['report', 4n, 17], 2n], 2, 0]);
  });

  test('does nothing before it is opened', async () => {
    const { made, answers, calls, failures } = exchange();
    made.request(1n, new Uint8Array(0));
    made.report(report, 17);
    made.sent({ generation: 9, checksum: new Uint8Array(32), payload: new Uint8Array(1) });
    await turn();
    made.close();
    expect([calls, answers, failures]).toEqual([[], [], []]);
  });

  test('does not let a report that is not recorded hold up the requests behind it for more than 2 s', async () => {
    const { made, answers, failures } = exchange({ report: () => new Promise(() => undefined) });
    made.open('n1', 's1', slot);
    made.report(report, 17);
    made.request(1n, new Uint8Array(0));
    await vi.advanceTimersByTimeAsync(1_999);
    expect(answers).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    await turn();
    expect([answers.length, failures]).toEqual([1, []]);
  });

  test('has its reports wait for their turn from a snapshot to the report that answers it, and not otherwise', () => {
    const { made } = exchange();
    const push = { generation: 9, checksum: new Uint8Array(32), payload: new Uint8Array(1) };
    const waits: boolean[] = [];
    const look = (): void => void waits.push(made.reportTurn() !== undefined);
    made.open('n1', 's1', slot);
    look();
    made.sent(push);
    look();
    made.report(report, 17);
    look();
    expect(waits).toEqual([false, true, false]);
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
