/** The session as a pure machine: the order of payloads, the time limits, and that no input from an agent breaks it. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ConfigAnswer } from '../../src/delivery/port.js';
import { LinkMetric, RuntimeListener, RuntimeRoute } from '../../src/gen/svc/control/v1/heartbeat.js';
import { MetricsReport } from '../../src/gen/svc/control/v1/metrics.js';
import { AgentPayload, SessionCloseReason } from '../../src/gen/svc/control/v1/session.js';
import {
  startState,
  step,
  type SessionInput,
  type SessionOutput,
  type SessionState,
} from '../../src/transport/agent/session.js';
import { configRequestOf, heartbeatOf, helloOf, type Sayable } from '../support/raw-agent.js';

const intervals = { heartbeatSecs: 10, metricsSecs: 60, offlineAfterMs: 30_000 };
const fresh = (): SessionState =>
  startState({ nodeId: 'node-1', openedAt: 0, streamAt: 1_000, rekeyAfterSecs: 100, intervals });
const bytesOf = (payload: Sayable): Uint8Array => AgentPayload.encode({ payload }).finish();
const say = (payload: Sayable): SessionInput => ({ kind: 'payload', bytes: bytesOf(payload) });

function play(inputs: readonly (readonly [number, SessionInput])[], start = fresh()) {
  let state = start;
  const outputs: SessionOutput[] = [];
  for (const [at, input] of inputs) {
    const stepped = step(state, input, at);
    state = stepped.state;
    outputs.push(...stepped.outputs);
  }
  return { state, outputs };
}

function reasonOf(outputs: readonly SessionOutput[]): SessionCloseReason | undefined | 'open' {
  const last = outputs.at(-1);
  return last?.kind === 'end' ? last.reason.close?.reason : 'open';
}

describe('the session machine', () => {
  test('takes a hello first, then every payload as a sign of life and for its effect', () => {
    const { outputs } = play([
      [1_000, say(helloOf())],
      [2_000, say(heartbeatOf(3))],
      [3_000, say(configRequestOf(5n, Buffer.alloc(32, 1)))],
    ]);
    expect(outputs.map(({ kind }) => kind)).toEqual([
      'hello',
      'charge',
      'heartbeat',
      'charge',
      'alive',
      'config_request',
    ]);
  });
  test('charges the list entries of heartbeats and metrics, listeners and their routes alike', () => {
    const [route, link] = [RuntimeRoute.fromPartial({}), LinkMetric.fromPartial({})];
    const listener = RuntimeListener.fromPartial({ routes: [route, route, route] });
    const upstream = { cluster: '', requests: 0n, errors: 0n, healthy: true, latencyP99Ms: 0 };
    const metrics = MetricsReport.fromPartial({
      bandwidth: { listeners: [{}, {}] },
      gateway: { upstreams: [upstream] },
    });
    const { outputs } = play([
      [1_000, say(helloOf({ detectedAddresses: ['::1'] }))],
      [1_000, say(heartbeatOf(1, { runtimeListeners: [listener, listener], linkMetrics: [link] }))],
      [1_000, say({ $case: 'metrics', value: metrics })],
      [1_000, say(configRequestOf(0n))],
    ]);
    const charged = outputs.flatMap((output) => (output.kind === 'charge' ? [output.entries] : []));
    expect(charged).toEqual([9, 3, 0]);
  });
  test('ignores an apply report of unknown status and passes on one of known status', () => {
    const report = (status: number): SessionInput =>
      say({
        $case: 'applyReport',
        value: { generation: 4n, status: status as 1, errors: [], durationMs: 9n, checksum: Buffer.alloc(32) },
      });
    const { outputs } = play([
      [1_000, say(helloOf())],
      [1_000, report(0)],
      [1_000, report(7)],
      [1_000, report(2)],
    ]);
    expect(outputs.map(({ kind }) => kind)).toEqual([
      'hello',
      'alive',
      'ignored_report',
      'alive',
      'ignored_report',
      'alive',
      'apply_report',
    ]);
    expect(outputs.at(-1)).toMatchObject({ outcome: { generation: 4n, status: 'rejected', durationMs: 9 } });
  });
  test("ends at the agent's SessionClose, with its reason", () => {
    const close: Sayable = {
      $case: 'close',
      value: { reason: SessionCloseReason.REKEY, message: '', retryAfterMs: 0 },
    };
    const { outputs, state } = play([
      [1_000, say(helloOf())],
      [1_000, say(close)],
      [1_000, say(heartbeatOf(1))],
    ]);
    expect(outputs.at(-1)).toMatchObject({
      kind: 'end',
      agentReason: SessionCloseReason.REKEY,
      reason: { close: undefined },
    });
    expect(state.phase).toBe('over');
  });
});

describe('what ends a session', () => {
  const { PROTOCOL_ERROR, OVERLOADED, DRAINING, SUPERSEDED, REVOKED } = SessionCloseReason;
  test.each<[SessionInput, SessionCloseReason | undefined, number, string]>([
    [{ kind: 'refused_frame', failure: 'malformed_frame' }, PROTOCOL_ERROR, 3, 'frame does not parse'],
    [{ kind: 'refused_frame', failure: 'foreign_session' }, PROTOCOL_ERROR, 3, 'session_id'],
    [{ kind: 'refused_frame', failure: 'ciphertext_too_large' }, PROTOCOL_ERROR, 3, 'longer than 65535'],
    [{ kind: 'refused_frame', failure: 'bad_fragment' }, PROTOCOL_ERROR, 3, 'fragment'],
    [{ kind: 'refused_frame', failure: 'payload_too_large' }, PROTOCOL_ERROR, 3, 'longer than 4 MiB'],
    [{ kind: 'refused_frame', failure: 'not_authentic' }, undefined, 10, 'frame refused'],
    [{ kind: 'overloaded', retryAfterMs: 77 }, OVERLOADED, 8, 'overloaded'],
    [{ kind: 'draining', retryAfterMs: 77 }, DRAINING, 14, 'cannot serve'],
    [{ kind: 'half_closed' }, undefined, 0, ''],
    [{ kind: 'lost' }, undefined, 14, 'lost'],
    [{ kind: 'superseded' }, SUPERSEDED, 10, 'newer session'],
    [{ kind: 'revoked' }, REVOKED, 7, 'replaced'],
  ])('is told with its reason and its status: %o', (input, reason, code, text) => {
    const { outputs, state } = play([[1_000, input]]);
    expect([outputs.length, state.phase]).toEqual([1, 'over']);
    const [end] = outputs;
    if (end?.kind !== 'end') throw new Error('the session goes on');
    expect([end.reason.close?.reason, end.reason.status.code, end.agentReason]).toEqual([reason, code, undefined]);
    expect(end.reason.status.details).toContain(text);
    if ('retryAfterMs' in input) expect(end.reason.close?.retryAfterMs).toBe(77);
    if (end.reason.close !== undefined) expect(end.reason.close.message).toBe(end.reason.status.details);
  });
  test.each<[string, readonly SessionInput[], string]>([
    ['a first payload that is no hello', [say(heartbeatOf(1))], 'the first payload is not a hello'],
    ['a first payload without content', [{ kind: 'payload', bytes: new Uint8Array(0) }], 'the first payload'],
    ['a first payload that does not parse', [{ kind: 'payload', bytes: Uint8Array.of(255) }], 'does not parse'],
    ['a second hello', [say(helloOf()), say(helloOf())], 'a second hello'],
    [
      'a later payload without content',
      [say(helloOf()), { kind: 'payload', bytes: new Uint8Array(0) }],
      'nothing this',
    ],
  ])('is also %s', (_name, inputs, text) => {
    const { outputs } = play(inputs.map((input) => [1_000, input] as const));
    const end = outputs.at(-1);
    expect(end?.kind === 'end' && end.reason.status.details).toContain(text);
    expect(outputs.filter(({ kind }) => kind === 'alive')).toEqual([]);
  });
});

describe('what a session hands on', () => {
  const hello = [1_000, say(helloOf())] as const;
  test('is a metrics report, as it was sent', () => {
    const metrics = MetricsReport.fromPartial({ sequence: 4n });
    const { outputs } = play([hello, [1_000, say({ $case: 'metrics', value: metrics })]]);
    expect(outputs.slice(1)).toEqual([{ kind: 'charge', entries: 0 }, { kind: 'alive' }, { kind: 'metrics', metrics }]);
  });
  test('is an apply report with its errors, and a duration that is a number', () => {
    const value = {
      generation: 4n,
      status: 1 as const,
      errors: [{ resourceType: 't', resourceId: 'r', path: 'p', message: 'm' }],
      durationMs: 2n ** 64n - 1n,
      checksum: Buffer.alloc(32, 1),
    };
    const { outputs } = play([hello, [1_000, say({ $case: 'applyReport', value })]]);
    expect(outputs.slice(1)).toEqual([
      { kind: 'alive' },
      {
        kind: 'apply_report',
        outcome: {
          generation: 4n,
          status: 'applied',
          errors: [{ resource_type: 't', resource_id: 'r', path: 'p', message: 'm' }],
          durationMs: Number.MAX_SAFE_INTEGER,
          checksum: Buffer.alloc(32, 1),
        },
      },
    ]);
  });
  test('is the snapshot of an answer', () => {
    const push = { generation: 4, checksum: Buffer.alloc(32), payload: Buffer.alloc(1) };
    const { outputs } = play([hello, [1_000, { kind: 'config_answer', answer: { kind: 'snapshot', push } }]]);
    expect(outputs.slice(1)).toEqual([{ kind: 'send_snapshot', push }]);
  });
});

describe('the time limits of a session', () => {
  const hello = [1_000, say(helloOf())] as const;
  const tick = (at: number): readonly [number, SessionInput] => [at, { kind: 'tick' }];

  test('require a hello within 10 s of the stream', () => {
    expect(reasonOf(play([tick(11_000)]).outputs)).toBe('open');
    expect(reasonOf(play([tick(11_001)]).outputs)).toBe(SessionCloseReason.PROTOCOL_ERROR);
  });
  test('end it as idle after the interval last sent to the agent', () => {
    expect(reasonOf(play([hello, tick(31_000)]).outputs)).toBe('open');
    expect(reasonOf(play([hello, tick(31_001)]).outputs)).toBe(SessionCloseReason.IDLE);
    const longer: SessionInput = { kind: 'intervals', intervals: { ...intervals, offlineAfterMs: 60_000 } };
    expect(reasonOf(play([hello, [2_000, longer], tick(60_000)]).outputs)).toBe('open');
  });
  test('do not end it as idle while a message is unfinished, which has 30 s', () => {
    const part: readonly [number, SessionInput] = [25_000, { kind: 'fragment' }];
    expect(reasonOf(play([hello, part, tick(55_000)]).outputs)).toBe('open');
    // Later fragments do not extend the limit.
    expect(reasonOf(play([hello, part, [54_000, { kind: 'fragment' }], tick(55_001)]).outputs)).toBe(
      SessionCloseReason.PROTOCOL_ERROR,
    );
    expect(reasonOf(play([hello, part, [54_000, say(heartbeatOf(1))], tick(70_000)]).outputs)).toBe('open');
  });
  test('do not end it as idle while the service has stopped reading', () => {
    const pause = (paused: boolean): SessionInput => ({ kind: 'paused', paused });
    expect(reasonOf(play([hello, [2_000, pause(true)], tick(60_000)]).outputs)).toBe('open');
    expect(reasonOf(play([hello, [2_000, pause(true)], [60_000, pause(false)], tick(89_000)]).outputs)).toBe('open');
  });
  test('do not count the time of a pause for an unfinished message either', () => {
    const pause = (paused: boolean): SessionInput => ({ kind: 'paused', paused });
    const part: readonly [number, SessionInput] = [25_000, { kind: 'fragment' }];
    const paused = [hello, part, [40_000, pause(true)], tick(59_000), [60_000, pause(false)]] as const;
    expect(reasonOf(play([...paused, tick(75_000)]).outputs)).toBe('open');
    expect(reasonOf(play([...paused, tick(75_001)]).outputs)).toBe(SessionCloseReason.PROTOCOL_ERROR);
    // A message that was begun only after the pause has its whole time, and the pause counts once.
    const later = [hello, [40_000, pause(true)], [60_000, pause(false)], [61_000, { kind: 'fragment' }]] as const;
    expect(reasonOf(play([...later, tick(91_000)]).outputs)).toBe('open');
    expect(reasonOf(play([...later, tick(91_001)]).outputs)).toBe(SessionCloseReason.PROTOCOL_ERROR);
  });
  test('expire it after 1.15 times the granted interval, counted from OpenSession', () => {
    const alive: readonly [number, SessionInput] = [110_000, say(heartbeatOf(1))];
    expect(reasonOf(play([hello, alive, tick(115_000)]).outputs)).toBe('open');
    expect(reasonOf(play([hello, alive, tick(115_001)]).outputs)).toBe(SessionCloseReason.EXPIRED);
  });
});

describe('an answer of delivery', () => {
  const answers: readonly (readonly [ConfigAnswer, SessionOutput['kind'], SessionCloseReason | 'open'])[] = [
    [{ kind: 'unchanged', generation: 3 }, 'send_unchanged', 'open'],
    [{ kind: 'raised_too_soon', reported: 17, retryAfterMs: 5 }, 'end', SessionCloseReason.OVERLOADED],
    [{ kind: 'absurd_version' }, 'end', SessionCloseReason.PROTOCOL_ERROR],
    [{ kind: 'draining', retryAfterMs: 5 }, 'end', SessionCloseReason.DRAINING],
  ];
  test.each(answers)('%o leads to %s and leaves the session with %o', (answer, kind, reason) => {
    const { outputs } = play([
      [1_000, say(helloOf())],
      [1_000, { kind: 'config_answer', answer }],
    ]);
    expect(outputs.at(-1)?.kind).toBe(kind);
    expect(reasonOf(outputs)).toBe(reason);
  });
});

const anyInput: fc.Arbitrary<SessionInput> = fc.oneof(
  fc.uint8Array({ maxLength: 200 }).map((bytes): SessionInput => ({ kind: 'payload', bytes })),
  // Real payloads with a few bytes changed get further than random bytes.
  fc
    .tuple(
      fc.constantFrom(helloOf(), helloOf({ detectedAddresses: ['::1'] }), heartbeatOf(1), configRequestOf(1n)),
      fc.array(fc.tuple(fc.nat(400), fc.integer({ min: 0, max: 255 })), { maxLength: 3 }),
    )
    .map(([payload, changes]): SessionInput => {
      const bytes = Uint8Array.from(bytesOf(payload));
      for (const [at, value] of changes) if (bytes.length > 0) bytes[at % bytes.length] = value;
      return { kind: 'payload', bytes };
    }),
  fc.constantFrom<SessionInput>(
    { kind: 'fragment' },
    { kind: 'tick' },
    { kind: 'half_closed' },
    { kind: 'lost' },
    { kind: 'superseded' },
    { kind: 'revoked' },
    { kind: 'paused', paused: true },
    { kind: 'refused_frame', failure: 'not_authentic' },
    { kind: 'config_answer', answer: { kind: 'unchanged', generation: 1 } },
  ),
);

test('any sequence of inputs gives no exception, no effect before hello, at most one end and nothing after it', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(20_000), anyInput), { maxLength: 30 }), (steps) => {
      let at = 1_000;
      const timed = steps.map(([pause, input]) => [(at += pause), input] as const);
      const kinds = play(timed).outputs.map(({ kind }) => kind);
      const end = kinds.indexOf('end');
      expect(end === -1 || end === kinds.length - 1).toBe(true);
      const effects = kinds.filter((kind) => kind !== 'end' && kind !== 'send_unchanged');
      expect(effects.length === 0 || effects[0] === 'hello').toBe(true);
      expect(effects.filter((kind) => kind === 'hello').length).toBeLessThanOrEqual(1);
    }),
    { numRuns: 500 },
  );
});

describe('the session machine of a join token', () => {
  const joining = () => startState({ nodeId: 'join:1', openedAt: 0, streamAt: 1_000, rekeyAfterSecs: 100, intervals });
  const request = say({ $case: 'join', value: { requestId: Buffer.alloc(16, 1), name: 'machine' } });
  const grant = { kind: 'granted', nodeId: 'node-1', nodeName: 'machine', controlPsk: 'svcpsk1_' } as const;
  const untold: readonly SessionInput[] = [
    { kind: 'tick' },
    { kind: 'half_closed' },
    { kind: 'revoked' },
    { kind: 'draining', retryAfterMs: 1 },
  ];

  test('ends with the answer of a request that is under way, whatever happens to token and instance meanwhile', () => {
    const waiting = [[2_000, request], ...untold.map((input) => [500_000, input] as const)] as const;
    expect(play(waiting, joining()).outputs.map(({ kind }) => kind)).toEqual(['join']);
    const answered = (answer: Extract<SessionInput, { kind: 'join_answer' }>['answer']) =>
      play([...waiting, [500_001, { kind: 'join_answer', answer }]], joining()).outputs;
    expect(answered(grant).map(({ kind }) => kind)).toEqual(['join', 'send_grant', 'end']);
    expect(reasonOf(answered(grant))).toBe(SessionCloseReason.NORMAL);
    expect(reasonOf(answered({ kind: 'refused', message: 'no' }))).toBe(SessionCloseReason.REVOKED);
    expect(reasonOf(answered({ kind: 'later', retryAfterMs: 7 }))).toBe(SessionCloseReason.DRAINING);
  });

  test('ends without one when the machine breaks the protocol or leaves, and an answer after that is nobody’s', () => {
    for (const input of [
      request,
      say(helloOf()),
      { kind: 'lost' },
      { kind: 'refused_frame', failure: 'bad_fragment' },
    ]) {
      const { outputs } = play(
        [
          [2_000, request],
          [3_000, input as SessionInput],
          [4_000, { kind: 'join_answer', answer: grant }],
        ],
        joining(),
      );
      expect(outputs.map(({ kind }) => kind)).toEqual(['join', 'end']);
    }
  });

  test('waits 10 s for the request, and not at all when the token is deleted or the instance stops', () => {
    expect(play([[11_000, { kind: 'tick' }]], joining()).outputs).toEqual([]);
    for (const [at, input, reason] of [
      [11_001, untold[0]!, SessionCloseReason.PROTOCOL_ERROR],
      [2_000, untold[2]!, SessionCloseReason.REVOKED],
      [2_000, untold[3]!, SessionCloseReason.DRAINING],
    ] as const) {
      expect(reasonOf(play([[at, input]], joining()).outputs)).toBe(reason);
    }
  });
});
