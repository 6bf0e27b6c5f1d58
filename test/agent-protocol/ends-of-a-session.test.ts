/** The table of ends of `docs/contract/agent-protocol.md`, row by row, over real sockets: what is said encrypted, and the status. */
import { status } from '@grpc/grpc-js';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { SessionCloseReason } from '../../src/gen/svc/control/v1/session.js';
import { AgentPayload, SecureFrame } from '../../src/gen/svc/control/v1/session.js';
import { startAgentHouse } from '../support/agent-fixture.js';
import type { AgentHouse } from '../support/agent-fixture.js';
import { eventually } from '../support/eventually.js';
import { configRequestOf, createRawAgent, heartbeatOf, helloOf } from '../support/raw-agent.js';
import type { RawAgent, RawStream } from '../support/raw-agent.js';

let house: AgentHouse;
let agent: RawAgent;

beforeEach(async () => {
  house = await startAgentHouse({ unfinishedBytes: 200_000 });
  agent = createRawAgent(house, 'node-1', await house.issue('node-1'));
});
afterEach(async () => {
  agent.disconnect();
  await house.close();
});

async function expectEnd(stream: RawStream, code: number, reason: SessionCloseReason | undefined): Promise<void> {
  const ended = await stream.status;
  expect({ code: ended.code, reason: stream.closeHeard()?.reason }).toEqual({ code, reason });
  await eventually(() => house.transport.stats().sessions).toBe(0);
}

async function live(): Promise<RawStream> {
  const stream = await agent.connect();
  await eventually(() => house.telemetry.opened.length).toBeGreaterThan(0);
  return stream;
}

const { PROTOCOL_ERROR, SUPERSEDED, REVOKED, EXPIRED, IDLE, DRAINING, OVERLOADED, NORMAL } = SessionCloseReason;

describe('PROTOCOL_ERROR, INVALID_ARGUMENT', () => {
  const cases: { readonly [what: string]: (stream: RawStream) => void } = {
    'a frame that does not parse': (stream) => stream.sendBytes(Buffer.from([0x0a, 0xff])),
    'a frame with field number 0': (stream) => stream.sendBytes(Buffer.from([0x00, 0x01])),
    'a payload that does not parse': (stream) => stream.sayBytes(Buffer.from([0x0a, 0xff, 0x01])),
    'a payload with nothing known in it': (stream) => stream.sayBytes(Buffer.alloc(0)),
    'a bad fragment byte': (stream) => stream.sayFragment(Buffer.from([0x02, 0x00])),
    'a plaintext without a fragment byte': (stream) => stream.sayFragment(Buffer.alloc(0)),
    'a fragment below 16 KiB that is not the last': (stream) =>
      stream.sayFragment(Buffer.concat([Buffer.of(1), Buffer.alloc(16 * 1024 - 1)])),
    'a ciphertext above 65,535 bytes': (stream) => stream.sendFrame({ sequence: 1n, ciphertext: Buffer.alloc(65_536) }),
    'a foreign session_id': (stream) =>
      stream.sendFrame({ ...stream.seal(Buffer.of(0)), sessionId: Buffer.alloc(16, 7) }),
    'a foreign node_id': (stream) => {
      const heartbeat = heartbeatOf(1);
      if (heartbeat.$case !== 'heartbeat') throw new Error('unreachable');
      stream.say({ $case: 'heartbeat', value: { ...heartbeat.value, nodeId: 'node-2' } });
    },
    'a checksum that is not 32 bytes': (stream) => stream.say(configRequestOf(1n, Buffer.alloc(31))),
    'more than 1,000 apply errors': (stream) =>
      stream.say({
        $case: 'applyReport',
        value: {
          generation: 1n,
          status: 2,
          errors: Array.from({ length: 1001 }, () => ({ resourceType: '', resourceId: '', path: '', message: '' })),
          durationMs: 1n,
          checksum: Buffer.alloc(32),
        },
      }),
    'more than 4,096 runtime listeners': (stream) => {
      const listener = { transport: 'tcp', listenAddr: '::', listenPort: 1, state: 'running', routes: [] };
      const heartbeat = heartbeatOf(1);
      if (heartbeat.$case !== 'heartbeat') throw new Error('unreachable');
      const runtimeListeners = Array.from({ length: 4097 }, () => ({
        ...listener,
        bytesIn: undefined,
        bytesOut: undefined,
        activeSessions: undefined,
        totalSessions: undefined,
        errorSessions: undefined,
      }));
      stream.say({ $case: 'heartbeat', value: { ...heartbeat.value, runtimeListeners } });
    },
    'a text above 1,024 bytes': (stream) =>
      stream.say({ $case: 'close', value: { reason: NORMAL, message: 'x'.repeat(1025), retryAfterMs: 0 } }),
  };
  test.each(Object.keys(cases))('%s', async (what) => {
    const stream = await live();
    cases[what]!(stream);
    await expectEnd(stream, status.INVALID_ARGUMENT, PROTOCOL_ERROR);
  });

  test('a message that is not complete in 30 s', async () => {
    const stream = await live();
    stream.sayFragment(Buffer.concat([Buffer.of(1), Buffer.alloc(16 * 1024)]));
    await eventually(() => house.transport.stats().unfinishedBytes).toBe(16 * 1024);
    house.clock.advance(29_000);
    // Not idle either: silence is not judged while a message is unfinished.
    stream.sayFragment(Buffer.concat([Buffer.of(1), Buffer.alloc(16 * 1024)]));
    await eventually(() => house.transport.stats().unfinishedBytes).toBe(32 * 1024);
    house.clock.advance(2_000);
    await expectEnd(stream, status.INVALID_ARGUMENT, PROTOCOL_ERROR);
    expect(house.transport.stats().unfinishedBytes).toBe(0);
  });
});

describe('PROTOCOL_ERROR, FAILED_PRECONDITION', () => {
  test('the first payload is not a hello', async () => {
    const stream = agent.attach(await agent.session());
    stream.say(heartbeatOf(1));
    await expectEnd(stream, status.FAILED_PRECONDITION, PROTOCOL_ERROR);
    expect(house.telemetry.opened).toEqual([]);
  });
  test('no hello within 10 s of opening the stream', async () => {
    const stream = agent.attach(await agent.session());
    stream.sayFragment(Buffer.concat([Buffer.of(1), Buffer.alloc(16 * 1024)]));
    await eventually(() => house.transport.stats().sessions).toBe(1);
    house.clock.advance(10_100);
    await expectEnd(stream, status.FAILED_PRECONDITION, PROTOCOL_ERROR);
  });
  test('a second hello', async () => {
    const stream = await live();
    stream.say(helloOf());
    await expectEnd(stream, status.FAILED_PRECONDITION, PROTOCOL_ERROR);
  });
  test('an absurd config_version', async () => {
    house.answer = () => ({ kind: 'absurd_version' });
    const stream = await live();
    stream.say(configRequestOf(2n ** 60n));
    await expectEnd(stream, status.FAILED_PRECONDITION, PROTOCOL_ERROR);
    expect(house.attachments[0]?.requests[0]?.version).toBe(2n ** 60n);
  });
});

describe('ABORTED, nothing more is sent', () => {
  const cases: { readonly [what: string]: (stream: RawStream) => void } = {
    'a sequence that skips': (stream) => {
      stream.seal(Buffer.of(0));
      stream.sayFragment(Buffer.of(0));
    },
    'a sequence that repeats': (stream) => stream.sendFrame({ ...stream.seal(Buffer.of(0)), sequence: 0n }),
    'a failed tag': (stream) => {
      const frame = stream.seal(Buffer.of(0));
      stream.sendFrame({ ...frame, ciphertext: Buffer.concat([frame.ciphertext.subarray(0, -1), Buffer.of(0)]) });
    },
    'a ciphertext too short to have a tag': (stream) =>
      stream.sendFrame({ sequence: 1n, ciphertext: Buffer.alloc(15) }),
    'a sequence beyond 2^53': (stream) => stream.sendFrame({ ...stream.seal(Buffer.of(0)), sequence: 2n ** 64n - 1n }),
  };
  test.each(Object.keys(cases))('%s', async (what) => {
    const stream = await live();
    cases[what]!(stream);
    await expectEnd(stream, status.ABORTED, undefined);
    expect(stream.heard).toEqual([]);
  });
});

describe('before a session is attached, the bare status', () => {
  async function bareEnd(act: (call: ReturnType<RawAgent['bare']>) => void): Promise<number> {
    const call = agent.bare();
    call.resume();
    const ended = new Promise<number>((resolve) => call.on('status', ({ code }) => resolve(code)));
    act(call);
    return ended;
  }
  const frame = (value: Partial<SecureFrame>): Buffer =>
    Buffer.from(SecureFrame.encode(SecureFrame.fromPartial(value)).finish());

  test('a half-close without a frame: UNAUTHENTICATED', async () => {
    expect(await bareEnd((call) => call.end())).toBe(status.UNAUTHENTICATED);
  });
  test('an unknown session_id, none, or one of another length: UNAUTHENTICATED', async () => {
    for (const sessionId of [Buffer.alloc(16, 1), Buffer.alloc(0), Buffer.alloc(15)]) {
      const send = frame({ sessionId, ciphertext: Buffer.alloc(32) });
      expect(await bareEnd((call) => call.write(send))).toBe(status.UNAUTHENTICATED);
    }
  });
  test('bytes that do not parse: INVALID_ARGUMENT', async () => {
    expect(await bareEnd((call) => call.write(Buffer.from([0xff])))).toBe(status.INVALID_ARGUMENT);
  });
  test('a stream without a frame for 10 s: UNAUTHENTICATED', async () => {
    const ended = bareEnd(() => undefined);
    await agent.session();
    house.clock.advance(10_100);
    expect(await ended).toBe(status.UNAUTHENTICATED);
  });
  test('a bad first tag: ABORTED, nothing said, no presence', async () => {
    const opened = await agent.session();
    const stream = agent.attach(opened);
    const sealed = stream.seal(AgentPayload.encode({ payload: helloOf() }).finish());
    stream.sendFrame({ ...sealed, ciphertext: Buffer.alloc(64) });
    await expectEnd(stream, status.ABORTED, undefined);
    expect(stream.heard).toEqual([]);
    expect(house.telemetry.opened).toEqual([]);
  });
  test('its PSK was reset meanwhile: UNAUTHENTICATED', async () => {
    const opened = await agent.session();
    house.revoke('node-1');
    const stream = agent.attach(opened);
    stream.say(helloOf());
    await expectEnd(stream, status.UNAUTHENTICATED, undefined);
  });
});

describe('ends that the service chooses', () => {
  test('superseded: SUPERSEDED, ABORTED', async () => {
    const old = await live();
    const fresh = await agent.connect();
    const ended = await old.status;
    expect([ended.code, old.closeHeard()?.reason]).toEqual([status.ABORTED, SUPERSEDED]);
    fresh.say(heartbeatOf(1));
    await eventually(() => fresh.heard.length).toBe(1);
  });
  test('PSK reset or node deleted: REVOKED, PERMISSION_DENIED, and the socket is cut', async () => {
    const stream = await live();
    house.revoke('node-1');
    expect(await house.transport.sessionsEnded('node-1', 2_000)).toBe(true);
    await expectEnd(stream, status.PERMISSION_DENIED, REVOKED);
  });
  test('older than 1.15 times the rekey interval: EXPIRED, DEADLINE_EXCEEDED', async () => {
    const stream = await live();
    house.settings = { ...house.settings, offline_after_secs: 100_000 };
    stream.say(heartbeatOf(1));
    await eventually(() => stream.heard.length).toBe(1);
    house.clock.advance(21_600_000 * 1.15 - 5_000);
    stream.say(heartbeatOf(2));
    await eventually(() => stream.heard.length).toBe(2);
    house.clock.advance(10_000);
    await expectEnd(stream, status.DEADLINE_EXCEEDED, EXPIRED);
  });
  test('no payload for offline_after, by the interval last told: IDLE, DEADLINE_EXCEEDED', async () => {
    const stream = await live();
    house.settings = { ...house.settings, heartbeat_interval_secs: 20 };
    stream.say(heartbeatOf(1));
    await eventually(() => stream.heard.length).toBe(1);
    // Lowered, but not told yet: the session is judged by 3 × 20 s.
    house.settings = { ...house.settings, heartbeat_interval_secs: 1 };
    house.clock.advance(58_000);
    stream.say(heartbeatOf(2));
    await eventually(() => stream.heard.length).toBe(2);
    house.clock.advance(3_500);
    await expectEnd(stream, status.DEADLINE_EXCEEDED, IDLE);
  });
  test('shutting down: DRAINING with a retry time, UNAVAILABLE, for sessions and for OpenSession', async () => {
    const stream = await live();
    house.setState({ kind: 'older_compiler', logVersion: 2, ownVersion: 1 });
    expect(await agent.open()).toMatchObject({ code: status.UNAVAILABLE });
    await expectEnd(stream, status.UNAVAILABLE, DRAINING);
    expect(stream.closeHeard()?.retryAfterMs).toBeGreaterThan(0);
    house.setState({ kind: 'ready' });
    await live();
  });
  test('stores out of reach: DRAINING, UNAVAILABLE', async () => {
    house.telemetry.failOpening = true;
    const stream = await agent.connect();
    await expectEnd(stream, status.UNAVAILABLE, DRAINING);
  });
  test('stores out of reach: a session that is there stays and is answered, none is begun', async () => {
    const stream = await live();
    const newcomer = createRawAgent(house, 'node-2', await house.issue('node-2'));
    for (const lose of [() => (house.storesAway = true), () => house.setState({ kind: 'cut_off' })]) {
      lose();
      expect(await newcomer.open()).toMatchObject({ code: status.UNAVAILABLE });
      const heard = stream.heard.length;
      stream.say(heartbeatOf(heard + 1));
      await eventually(() => stream.heard.length).toBe(heard + 1);
      expect(stream.closeHeard()).toBeUndefined();
      house.storesAway = false;
    }
    house.setState({ kind: 'catching_up' });
    await expectEnd(stream, status.UNAVAILABLE, DRAINING);
    newcomer.disconnect();
  });
  test('a raised generation too soon after the last: OVERLOADED with the retry time, RESOURCE_EXHAUSTED', async () => {
    house.answer = () => ({ kind: 'overloaded', retryAfterMs: 4321 });
    const stream = await live();
    stream.say(configRequestOf(9n));
    await expectEnd(stream, status.RESOURCE_EXHAUSTED, OVERLOADED);
    expect(stream.closeHeard()?.retryAfterMs).toBe(4321);
  });
  test('too much of unfinished messages in all: OVERLOADED, RESOURCE_EXHAUSTED, that session alone', async () => {
    const other = createRawAgent(house, 'node-2', await house.issue('node-2'));
    const quiet = await other.connect();
    const stream = await live();
    const part = Buffer.concat([Buffer.of(1), Buffer.alloc(60_000)]);
    for (let count = 0; count < 4; count += 1) stream.sayFragment(part);
    const ended = await stream.status;
    expect([ended.code, stream.closeHeard()?.reason]).toEqual([status.RESOURCE_EXHAUSTED, OVERLOADED]);
    expect(house.transport.stats().unfinishedBytes).toBe(0);
    quiet.say(heartbeatOf(1));
    await eventually(() => quiet.heard.length).toBe(1);
    other.disconnect();
  });
});

describe('ends that the agent chooses: OK, nothing more is sent, the lease is released', () => {
  test('its SessionClose', async () => {
    const stream = await live();
    stream.say({ $case: 'close', value: { reason: NORMAL, message: '', retryAfterMs: 0 } });
    await expectEnd(stream, status.OK, undefined);
    expect(stream.heard).toEqual([]);
    expect(house.telemetry.ended).toHaveLength(1);
    expect(house.attachments[0]?.closed).toBe(true);
  });
  test('its half-close', async () => {
    const stream = await live();
    stream.halfClose();
    await expectEnd(stream, status.OK, undefined);
    expect(house.telemetry.ended).toHaveLength(1);
  });
  test('a lost connection releases the lease as well', async () => {
    const stream = await live();
    stream.call.cancel();
    await eventually(() => house.telemetry.ended.length).toBe(1);
    await eventually(() => house.transport.stats().sessions).toBe(0);
  });
});
