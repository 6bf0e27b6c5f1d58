/**
 * The table of ends in `docs/contract/agent-protocol.md#control`, row by row, over real sockets: the reason in the
 * encrypted SessionClose, and the gRPC status. What else makes a payload one that does not parse is in `payload-limits.test.ts`.
 */
import { status } from '@grpc/grpc-js';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { AgentPayload, SecureFrame, SessionCloseReason } from '../../src/gen/svc/control/v1/session.js';
import { startAgentFixture, type AgentFixture } from '../support/agent-fixture.js';
import { eventually } from '../support/eventually.js';
import { configRequestOf, heartbeatOf, helloOf, type RawAgent, type RawStream } from '../support/raw-agent.js';

let fixture: AgentFixture;
let agent: RawAgent;

beforeEach(async () => {
  fixture = await startAgentFixture({ unfinishedBytes: 200_000 });
  agent = await fixture.agent();
});
afterEach(() => fixture.close());

async function expectEnd(stream: RawStream, code: number, reason: SessionCloseReason | undefined): Promise<void> {
  const ended = await stream.status;
  expect({ code: ended.code, reason: stream.closeHeard()?.reason }).toEqual({ code, reason });
  await eventually(() => fixture.transport.stats().sessions).toBe(0);
}

const live = (): Promise<RawStream> => fixture.live(agent);

const { PROTOCOL_ERROR, SUPERSEDED, REVOKED, EXPIRED, IDLE, DRAINING, OVERLOADED, NORMAL } = SessionCloseReason;

describe('the service ends a session with PROTOCOL_ERROR and INVALID_ARGUMENT after', () => {
  const cases: { readonly [what: string]: (stream: RawStream) => void } = {
    'a frame that does not parse': (stream) => stream.sendBytes(Buffer.from([0x0a, 0xff])),
    'a frame with field number 0': (stream) => stream.sendBytes(Buffer.from([0x00, 0x01])),
    'a payload that does not parse': (stream) => stream.sayBytes(Buffer.from([0x0a, 0xff, 0x01])),
    'a payload that contains nothing known': (stream) => stream.sayBytes(Buffer.alloc(0)),
    'an unknown fragment byte': (stream) => stream.sayFragment(Buffer.from([0x02, 0x00])),
    'a plaintext without a fragment byte': (stream) => stream.sayFragment(Buffer.alloc(0)),
    'a fragment below 16 KiB that is not the last': (stream) =>
      stream.sayFragment(Buffer.concat([Buffer.of(1), Buffer.alloc(16 * 1024 - 1)])),
    'a ciphertext of more than 65,535 bytes': (stream) =>
      stream.sendFrame({ sequence: 1n, ciphertext: Buffer.alloc(65_536) }),
    'the session_id of another session': (stream) =>
      stream.sendFrame({ ...stream.seal(Buffer.of(0)), sessionId: Buffer.alloc(16, 7) }),
  };
  test.each(Object.keys(cases))('%s', async (what) => {
    const stream = await live();
    cases[what]!(stream);
    await expectEnd(stream, status.INVALID_ARGUMENT, PROTOCOL_ERROR);
  });
});

describe('the service ends a session with PROTOCOL_ERROR and FAILED_PRECONDITION after', () => {
  test('a first payload that is not a hello', async () => {
    const stream = agent.attach(await agent.session());
    stream.say(heartbeatOf(1));
    await expectEnd(stream, status.FAILED_PRECONDITION, PROTOCOL_ERROR);
    expect(fixture.telemetry.opened).toEqual([]);
  });
  test('an absurd config_version', async () => {
    fixture.answer = () => ({ kind: 'absurd_version' });
    const stream = await live();
    stream.say(configRequestOf(2n ** 60n));
    await expectEnd(stream, status.FAILED_PRECONDITION, PROTOCOL_ERROR);
    expect(fixture.nodeSessions[0]?.requests[0]?.version).toBe(2n ** 60n);
  });
});

describe('the service ends a session with the bare status ABORTED after', () => {
  const cases: { readonly [what: string]: (stream: RawStream) => void } = {
    'a skipped sequence': (stream) => {
      stream.seal(Buffer.of(0));
      stream.sayFragment(Buffer.of(0));
    },
    'a repeated sequence': (stream) => stream.sendFrame({ ...stream.seal(Buffer.of(0)), sequence: 0n }),
    'a tag that does not verify': (stream) => {
      const frame = stream.seal(Buffer.of(0));
      stream.sendFrame({ ...frame, ciphertext: Buffer.concat([frame.ciphertext.subarray(0, -1), Buffer.of(0)]) });
    },
    'a ciphertext too short for a tag': (stream) => stream.sendFrame({ sequence: 1n, ciphertext: Buffer.alloc(15) }),
    'a sequence beyond 2^53': (stream) => stream.sendFrame({ ...stream.seal(Buffer.of(0)), sequence: 2n ** 64n - 1n }),
  };
  test.each(Object.keys(cases))('%s', async (what) => {
    const stream = await live();
    cases[what]!(stream);
    await expectEnd(stream, status.ABORTED, undefined);
    expect(stream.heard).toEqual([]);
  });
});

describe('before a session is attached, the bare status is', () => {
  async function bareEnd(act: (call: ReturnType<RawAgent['bare']>) => void): Promise<number> {
    const call = agent.bare();
    call.resume();
    const ended = new Promise<number>((resolve) => call.on('status', ({ code }) => resolve(code)));
    act(call);
    return ended;
  }
  const frame = (value: Partial<SecureFrame>): Buffer =>
    Buffer.from(SecureFrame.encode(SecureFrame.fromPartial(value)).finish());

  test('UNAUTHENTICATED for a half-close without a frame', async () => {
    expect(await bareEnd((call) => call.end())).toBe(status.UNAUTHENTICATED);
  });
  test('UNAUTHENTICATED for a session_id that is unknown, empty or of another length', async () => {
    for (const sessionId of [Buffer.alloc(16, 1), Buffer.alloc(0), Buffer.alloc(15)]) {
      const send = frame({ sessionId, ciphertext: Buffer.alloc(32) });
      expect(await bareEnd((call) => call.write(send))).toBe(status.UNAUTHENTICATED);
    }
  });
  test('INVALID_ARGUMENT for bytes that do not parse', async () => {
    expect(await bareEnd((call) => call.write(Buffer.from([0xff])))).toBe(status.INVALID_ARGUMENT);
  });
  test('UNAUTHENTICATED for a stream without a frame for 10 s', async () => {
    const ended = bareEnd(() => undefined);
    await agent.session();
    fixture.clock.advance(10_100);
    expect(await ended).toBe(status.UNAUTHENTICATED);
  });
  test('ABORTED for a first frame whose tag does not verify, and no presence is recorded', async () => {
    const opened = await agent.session();
    const stream = agent.attach(opened);
    const sealed = stream.seal(AgentPayload.encode({ payload: helloOf() }).finish());
    stream.sendFrame({ ...sealed, ciphertext: Buffer.alloc(64) });
    await expectEnd(stream, status.ABORTED, undefined);
    expect(stream.heard).toEqual([]);
    expect(fixture.telemetry.opened).toEqual([]);
  });
  test('UNAUTHENTICATED if the PSK was reset after OpenSession', async () => {
    const opened = await agent.session();
    fixture.revoke('node-1');
    const stream = agent.attach(opened);
    stream.say(helloOf());
    await expectEnd(stream, status.UNAUTHENTICATED, undefined);
  });
});

describe('the service closes', () => {
  test('an older session with SUPERSEDED and ABORTED at the hello of a newer one', async () => {
    const old = await live();
    const fresh = await agent.connect();
    const ended = await old.status;
    expect([ended.code, old.closeHeard()?.reason]).toEqual([status.ABORTED, SUPERSEDED]);
    await fresh.beat(1);
  });
  test('a session whose PSK was reset or node deleted with REVOKED and PERMISSION_DENIED, and its socket', async () => {
    const stream = await live();
    fixture.revoke('node-1');
    expect(await fixture.transport.sessionsEnded('node-1', 20_000)).toBe(true);
    await expectEnd(stream, status.PERMISSION_DENIED, REVOKED);
  });
  test('no session under the present PSK, and does not wait for one', async () => {
    const stream = await live();
    expect(await fixture.transport.sessionsEnded('node-1', 50)).toBe(true);
    stream.say(heartbeatOf(1));
    await eventually(() => stream.heard.length).toBe(1);
  });
  test('a session older than 1.15 times the rekey interval with EXPIRED and DEADLINE_EXCEEDED', async () => {
    const stream = await live();
    fixture.settings = { ...fixture.settings, offline_after_secs: 100_000 };
    await stream.beat(1);
    fixture.clock.advance(21_600_000 * 1.15 - 5_000);
    await stream.beat(2);
    fixture.clock.advance(10_000);
    await expectEnd(stream, status.DEADLINE_EXCEEDED, EXPIRED);
  });
  test('a session silent for the offline_after last sent to it with IDLE and DEADLINE_EXCEEDED', async () => {
    const stream = await live();
    fixture.settings = { ...fixture.settings, heartbeat_interval_secs: 20 };
    await stream.beat(1);
    // The interval is lowered, but not sent to the agent yet: 3 × 20 s still count.
    fixture.settings = { ...fixture.settings, heartbeat_interval_secs: 1 };
    fixture.clock.advance(58_000);
    await stream.beat(2);
    fixture.clock.advance(3_500);
    await expectEnd(stream, status.DEADLINE_EXCEEDED, IDLE);
  });
  test('all sessions with DRAINING, a retry time and UNAVAILABLE while it cannot serve', async () => {
    const stream = await live();
    fixture.setState({ kind: 'older_compiler', logVersion: 2, ownVersion: 1 });
    expect(await agent.open()).toMatchObject({ code: status.UNAVAILABLE });
    await expectEnd(stream, status.UNAVAILABLE, DRAINING);
    // Two seconds, with the jitter of this service.
    expect(stream.closeHeard()?.retryAfterMs).toBe(1_500);
    fixture.setState({ kind: 'ready' });
    await live();
  });
  test('a session that the stores cannot record with DRAINING and UNAVAILABLE', async () => {
    fixture.telemetry.failOpening = true;
    const stream = await agent.connect();
    await expectEnd(stream, status.UNAVAILABLE, DRAINING);
  });
  test('no live session while the stores are out of reach, and opens no new one', async () => {
    const stream = await live();
    const newcomer = await fixture.agent('node-2');
    for (const lose of [() => (fixture.storesAway = true), () => fixture.setState({ kind: 'cut_off' })]) {
      lose();
      expect(await newcomer.open()).toMatchObject({ code: status.UNAVAILABLE });
      await stream.beat(1);
      expect(stream.closeHeard()).toBeUndefined();
      fixture.storesAway = false;
    }
    fixture.setState({ kind: 'catching_up' });
    await expectEnd(stream, status.UNAVAILABLE, DRAINING);
  });
  test('a session that needs a second generation raise too soon with OVERLOADED and RESOURCE_EXHAUSTED', async () => {
    fixture.answer = () => ({ kind: 'raised_too_soon', reported: 17, retryAfterMs: 4321 });
    const stream = await live();
    stream.say(configRequestOf(9n));
    await expectEnd(stream, status.RESOURCE_EXHAUSTED, OVERLOADED);
    expect(stream.closeHeard()?.retryAfterMs).toBe(4321);
    expect((await stream.status).details).toContain(
      'node-1 was raised a short while ago and cannot be raised above 17',
    );
  });
  test('the session that exceeds the bound on unfinished messages with OVERLOADED and RESOURCE_EXHAUSTED', async () => {
    const other = await fixture.agent('node-2');
    const quiet = await other.connect();
    const stream = await live();
    const part = Buffer.concat([Buffer.of(1), Buffer.alloc(60_000)]);
    for (let count = 0; count < 4; count += 1) stream.sayFragment(part);
    const ended = await stream.status;
    expect([ended.code, stream.closeHeard()?.reason]).toEqual([status.RESOURCE_EXHAUSTED, OVERLOADED]);
    expect(fixture.transport.stats().unfinishedBytes).toBe(0);
    await quiet.beat(1);
  });
});

describe('an agent ends its session', () => {
  test('by a SessionClose: the status is OK, nothing more is sent, and the lease is released', async () => {
    const stream = await live();
    stream.say({ $case: 'close', value: { reason: NORMAL, message: '', retryAfterMs: 0 } });
    await expectEnd(stream, status.OK, undefined);
    expect(stream.heard).toEqual([]);
    expect(fixture.telemetry.ended).toHaveLength(1);
    expect(fixture.nodeSessions[0]?.closed).toBe(true);
  });
  test('by a half-close: the status is OK and the lease is released', async () => {
    const stream = await live();
    stream.halfClose();
    await expectEnd(stream, status.OK, undefined);
    expect(fixture.telemetry.ended).toHaveLength(1);
  });
  test('by losing its connection: the lease is released', async () => {
    const stream = await live();
    stream.call.cancel();
    await eventually(() => fixture.telemetry.ended.length).toBe(1);
    await eventually(() => fixture.transport.stats().sessions).toBe(0);
  });
});
