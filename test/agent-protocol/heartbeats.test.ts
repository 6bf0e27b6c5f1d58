/** Heartbeats: how they are answered, and the intervals in force. */
import { describe, expect, test } from 'vitest';
import { offlineAfterSeconds, type Delivery } from '../../src/delivery/port.js';
import { Command } from '../../src/gen/svc/control/v1/command.js';
import { ServicePayload } from '../../src/gen/svc/control/v1/session.js';
import { Heartbeats, intervalsOf } from '../../src/transport/agent/heartbeats.js';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('heartbeats', () => {
  const settings = (heartbeat: number) =>
    ({ heartbeat_interval_secs: heartbeat, metrics_interval_secs: 60 }) as ReturnType<Delivery['settings']>;
  function heartbeats(claim: () => Promise<readonly ('RELOAD_CONFIG' | 'RESTART_PINGORA' | 'RUN_DIAGNOSTICS')[]>) {
    const sent: ServicePayload['payload'][] = [];
    const told: number[] = [];
    const failures: unknown[] = [];
    let secs = 10;
    let queued = true;
    const made = new Heartbeats(
      {
        delivery: { settings: () => settings(secs) },
        hasCommands: () => queued,
        claimCommands: claim,
        send: (bytes) => void sent.push(ServicePayload.decode(bytes).payload),
        onIntervals: ({ heartbeatSecs }) => void told.push(heartbeatSecs),
        onReload: () => undefined,
        onHeartbeatFailed: (error) => void failures.push(error),
        onProgress: () => undefined,
      },
      intervalsOf(settings(5)),
    );
    return { made, sent, told, failures, set: (value: number) => (secs = value), empty: () => (queued = false) };
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

  test('of a node without commands are answered at once, but behind those that wait for commands; the intervals are told when they are new', async () => {
    let claims = 0;
    let claimed: (() => void) | undefined;
    const { made, sent, told, empty } = heartbeats(() => {
      claims += 1;
      return new Promise((resolve) => (claimed = () => resolve([])));
    });
    const acknowledged = () =>
      sent.map((payload) => payload?.$case === 'heartbeatResponse' && payload.value.ackSequence);
    made.answer({ sequence: 1n });
    empty();
    made.answer({ sequence: 2n });
    expect(acknowledged()).toEqual([]);
    claimed?.();
    await turn();
    claimed?.();
    await turn();
    expect(acknowledged()).toEqual([1n, 2n]);
    made.answer({ sequence: 3n });
    expect([acknowledged(), told, claims]).toEqual([[1n, 2n, 3n], [10], 2]);
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

describe('the intervals in force', () => {
  test('are those of the settings, and a node is offline after three heartbeats', () => {
    const settings = { heartbeat_interval_secs: 20, metrics_interval_secs: 70 } as ReturnType<Delivery['settings']>;
    const offlineAfterMs = offlineAfterSeconds(settings) * 1000;
    expect(intervalsOf(settings)).toEqual({ heartbeatSecs: 20, metricsSecs: 70, offlineAfterMs });
    expect(offlineAfterMs).toBeGreaterThan(20_000);
  });
});
