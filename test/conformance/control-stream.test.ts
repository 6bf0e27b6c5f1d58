/**
 * The Control stream of `docs/contract/agent-protocol.md#control`: frames, fragments, payloads, and how a session ends.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { afterEach, describe, expect, it } from 'vitest';
import { SessionCloseReason } from '../../src/gen/svc/control/v1/session.js';
import { encodeProto } from '../support/proto-messages.js';
import {
  attach,
  closing,
  configRequest,
  connectAgent,
  enrol,
  heartbeat,
  hello,
  status,
  type Attached,
  type Control,
  type Enrolment,
  type Link,
  type Said,
  type Session,
} from './support/agent.js';
import { createNode, type NodeData } from './support/resources.js';
import { sharedService } from './support/running.js';
import { eventually } from '../support/eventually.js';

const shared = sharedService();
const links: Link[] = [];

async function enrolled(): Promise<Enrolment> {
  const node = await createNode(shared.api);
  return enrol(node.id, node.control_psk);
}

/** A session whose stream is open, but on which nothing was sent yet. */
async function pending(
  enrolment?: Enrolment,
): Promise<{ link: Link; session: Session; control: Control; nodeId: string }> {
  const identity = enrolment ?? (await enrolled());
  const link = connectAgent(shared.service.controlEndpoint);
  links.push(link);
  const session = await link.session(identity);
  return { link, session, control: link.control(session), nodeId: identity.nodeId };
}

async function attached(said: Said = hello()): Promise<Attached> {
  const made = await attach(shared.service.controlEndpoint, await enrolled(), said);
  links.push(made.link);
  return made;
}

afterEach(() => {
  for (const link of links.splice(0)) link.close();
});

const lastFragment = (bytes: Uint8Array): Buffer => Buffer.concat([Buffer.from([0]), bytes]);
const encode = (said: Said): Uint8Array => encodeProto('AgentPayload', { payload: said });

const expectEnd = async (control: Control, code: number, reason?: SessionCloseReason) => {
  const end = await control.ended();
  expect({ code: end.code, reason: end.close?.reason }).toEqual({ code, reason });
  return end;
};

describe('a frame', () => {
  it('may repeat the session id, but not name another session', async () => {
    const { control, session } = await attached();
    control.frame({ ...control.seal(lastFragment(encode(heartbeat(1n)))), sessionId: session.id });
    expect((await control.heartbeatResponse()).ackSequence).toBe(1n);
    control.frame({ ...control.seal(lastFragment(encode(heartbeat(2n)))), sessionId: randomBytes(16) });
    await expectEnd(control, status.INVALID_ARGUMENT, SessionCloseReason.PROTOCOL_ERROR);
  });

  it('with a wrong sequence ends the session with ABORTED and no SessionClose', async () => {
    for (const sequence of [0n, 2n, 5n, 2n ** 64n - 1n]) {
      const { control } = await attached();
      control.frame({ ...control.seal(lastFragment(encode(heartbeat(1n)))), sequence });
      await expectEnd(control, status.ABORTED);
    }
  });

  it('with a bad tag, or too short for one, ends the session with ABORTED and no SessionClose', async () => {
    const { control } = await attached();
    const frame = control.seal(lastFragment(encode(heartbeat(1n))));
    frame.ciphertext![0]! ^= 1;
    control.frame(frame);
    await expectEnd(control, status.ABORTED);
    for (const length of [0, 15]) {
      const other = await attached();
      other.control.frame({ sequence: 1n, ciphertext: Buffer.alloc(length) });
      await expectEnd(other.control, status.ABORTED);
    }
  });

  it('with a bad tag ends a pending session with ABORTED', async () => {
    const { control, session } = await pending();
    control.frame({ sessionId: session.id, sequence: 0n, ciphertext: randomBytes(40) });
    await expectEnd(control, status.ABORTED);
  });

  it('that is the first one but does not have sequence 0 ends the session with ABORTED', async () => {
    const { control, session } = await pending();
    control.seal(Buffer.alloc(1));
    control.frame({ ...control.seal(lastFragment(encode(hello()))), sessionId: session.id });
    await expectEnd(control, status.ABORTED);
  });

  it('that does not parse is INVALID_ARGUMENT, with a SessionClose once the session is attached', async () => {
    const before = await pending();
    before.control.bytes(Buffer.from('ffffff', 'hex'));
    await expectEnd(before.control, status.INVALID_ARGUMENT);
    const after = await attached();
    after.control.say(heartbeat(1n));
    await after.control.heartbeatResponse();
    after.control.bytes(Buffer.from('ffffff', 'hex'));
    await expectEnd(after.control, status.INVALID_ARGUMENT, SessionCloseReason.PROTOCOL_ERROR);
  });

  it('with more than 65,535 bytes of ciphertext is a protocol error, over 66 KiB it is RESOURCE_EXHAUSTED', async () => {
    const { control } = await attached();
    control.frame(control.seal(Buffer.concat([Buffer.from([1]), Buffer.alloc(65_535 - 16)])));
    await expectEnd(control, status.INVALID_ARGUMENT, SessionCloseReason.PROTOCOL_ERROR);
    const large = await attached();
    large.control.bytes(Buffer.alloc(66 * 1024 + 1));
    expect((await large.control.ended()).code).toBe(status.RESOURCE_EXHAUSTED);
  });

  it('with an unknown fragment byte or none is a protocol error', async () => {
    const { control } = await attached();
    control.frame(control.seal(Buffer.concat([Buffer.from([2]), encode(heartbeat(1n))])));
    await expectEnd(control, status.INVALID_ARGUMENT, SessionCloseReason.PROTOCOL_ERROR);
    const empty = await attached();
    empty.control.frame(empty.control.seal(Buffer.alloc(0)));
    await expectEnd(empty.control, status.INVALID_ARGUMENT, SessionCloseReason.PROTOCOL_ERROR);
  });
});

describe('the fragments of a message', () => {
  it('are joined, whether of 16 KiB or of the largest size', async () => {
    const { control } = await attached();
    const listener = (i: number) => ({
      transport: 'tcp',
      listenAddr: '0.0.0.0',
      listenPort: 1 + i,
      state: 'r'.repeat(40),
      routes: [],
    });
    const runtimeListeners = Array.from({ length: 4_000 }, (_, i) => listener(i));
    const encoded = encode(heartbeat(7n, { runtimeListeners }));
    expect(encoded.length).toBeGreaterThan(65_519);
    control.payload(encoded, 16 * 1024);
    expect((await control.heartbeatResponse()).ackSequence).toBe(7n);
    control.payload(encoded);
    expect((await control.heartbeatResponse()).ackSequence).toBe(7n);
  });

  it('are a protocol error if one before the last is smaller than 16 KiB', async () => {
    const { control } = await attached();
    control.frame(control.seal(Buffer.concat([Buffer.from([1]), Buffer.alloc(16 * 1024 - 1)])));
    await expectEnd(control, status.INVALID_ARGUMENT, SessionCloseReason.PROTOCOL_ERROR);
  });

  it('may end with an empty one', async () => {
    const { control } = await attached();
    const encoded = encode(hello());
    expect(encoded.length).toBeLessThan(1_000);
    const long = encode(
      heartbeat(9n, {
        runtimeListeners: [
          { transport: 'tcp', listenAddr: 'a'.repeat(1_000), listenPort: 1, state: 's'.repeat(20_000), routes: [] },
        ],
      }),
    );
    control.frame(control.seal(Buffer.concat([Buffer.from([1]), long])));
    control.frame(control.seal(Buffer.from([0])));
    const end = await Promise.race([control.heartbeatResponse(), control.ended()]);
    // The contract does not say whether such long strings are accepted, only that the two fragments are one message.
    expect('ackSequence' in end ? Number(end.ackSequence) : end.code).toSatisfy(
      (result) => result === 9 || result === status.INVALID_ARGUMENT,
    );
  });

  it('are a protocol error above 4 MiB in all', async () => {
    const { control } = await attached();
    const part = Buffer.concat([Buffer.from([1]), Buffer.alloc(60_000)]);
    for (let sent = 0; sent <= 4 * 1024 * 1024; sent += 60_000) control.frame(control.seal(part));
    await expectEnd(control, status.INVALID_ARGUMENT, SessionCloseReason.PROTOCOL_ERROR);
  });
});

describe('the first payload', () => {
  it('must be a hello', async () => {
    for (const said of [heartbeat(1n), configRequest()]) {
      const { control } = await pending();
      control.say(said);
      await expectEnd(control, status.FAILED_PRECONDITION, SessionCloseReason.PROTOCOL_ERROR);
    }
  });

  it('is not answered', async () => {
    const { control } = await attached();
    await control.silence(700);
  });

  it('must not be sent twice', async () => {
    const { control } = await attached();
    control.say(hello());
    await expectEnd(control, status.FAILED_PRECONDITION, SessionCloseReason.PROTOCOL_ERROR);
  });

  it('is a protocol error with INVALID_ARGUMENT if it does not parse', async () => {
    for (const plaintext of [Buffer.from('00ffffff', 'hex'), Buffer.from('05', 'hex')]) {
      const { control } = await pending();
      control.frame(control.seal(plaintext));
      await expectEnd(control, status.INVALID_ARGUMENT, SessionCloseReason.PROTOCOL_ERROR);
    }
  });

  it('and every later one have the node_id of the session or none', async () => {
    const enrolment = await enrolled();
    const named = await attach(shared.service.controlEndpoint, enrolment, hello({ nodeId: enrolment.nodeId }));
    links.push(named.link);
    named.control.say(heartbeat(1n, { nodeId: enrolment.nodeId }));
    await named.control.heartbeatResponse();
    named.control.say(configRequest(0n, Buffer.alloc(0), enrolment.nodeId));
    await named.control.snapshot();
    named.control.say(heartbeat(2n, { nodeId: randomUUID() }));
    await expectEnd(named.control, status.INVALID_ARGUMENT, SessionCloseReason.PROTOCOL_ERROR);
    const foreign = await attached(hello({ nodeId: randomUUID() }));
    await expectEnd(foreign.control, status.INVALID_ARGUMENT, SessionCloseReason.PROTOCOL_ERROR);
    const asking = await attached();
    asking.control.say(configRequest(0n, Buffer.alloc(0), randomUUID()));
    await expectEnd(asking.control, status.INVALID_ARGUMENT, SessionCloseReason.PROTOCOL_ERROR);
  });
});

describe('an agent that ends its session', () => {
  it('with SessionClose gets OK and nothing more, and its node is offline at once', async () => {
    for (const reason of [SessionCloseReason.NORMAL, SessionCloseReason.REKEY]) {
      const { control, session } = await attached();
      control.say(heartbeat(1n));
      await control.heartbeatResponse();
      const node = () => shared.api.ok<NodeData>('GET', `/api/nodes/${session.nodeId}`);
      await eventually(async () => (await node()).status).toBe('online');
      control.say(closing(reason));
      await expectEnd(control, status.OK);
      expect(control.waiting).toEqual([]);
      await eventually(async () => (await node()).status).toBe('offline');
    }
  });

  it('with a half-close gets OK', async () => {
    const { control } = await attached();
    control.say(heartbeat(1n));
    await control.heartbeatResponse();
    control.stream.end();
    await expectEnd(control, status.OK);
  });

  it('with a half-close before any frame gets UNAUTHENTICATED', async () => {
    const { control } = await pending();
    control.stream.end();
    await expectEnd(control, status.UNAUTHENTICATED);
  });
});

describe('a newer session of the node', () => {
  it('supersedes the older one at its hello, not before', async () => {
    const enrolment = await enrolled();
    const old = await attach(shared.service.controlEndpoint, enrolment);
    links.push(old.link);
    old.control.say(heartbeat(1n));
    await old.control.heartbeatResponse();
    const next = await pending(enrolment);
    old.control.say(heartbeat(2n));
    expect((await old.control.heartbeatResponse()).ackSequence).toBe(2n);
    next.control.say(hello());
    await expectEnd(old.control, status.ABORTED, SessionCloseReason.SUPERSEDED);
    next.control.say(heartbeat(3n));
    expect((await next.control.heartbeatResponse()).ackSequence).toBe(3n);
    const node = () => shared.api.ok<NodeData>('GET', `/api/nodes/${enrolment.nodeId}`);
    await eventually(async () => (await node()).status).toBe('online');
  });

  it('leaves the connection of the older one open', async () => {
    const enrolment = await enrolled();
    const old = await attach(shared.service.controlEndpoint, enrolment);
    links.push(old.link);
    const other = await attach(shared.service.controlEndpoint, enrolment);
    links.push(other.link);
    await expectEnd(old.control, status.ABORTED, SessionCloseReason.SUPERSEDED);
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    expect(old.link.http2.destroyed).toBe(false);
    const again = await enrolled();
    const control = old.link.control(await old.link.session(again));
    control.say(hello());
    control.say(heartbeat(1n));
    await control.heartbeatResponse();
  });

  it('that is superseded in turn marks a duplicate agent', async () => {
    const enrolment = await enrolled();
    const node = () => shared.api.ok<NodeData>('GET', `/api/nodes/${enrolment.nodeId}`);
    let before: Attached | undefined;
    for (let i = 0; i < 3; i += 1) {
      const now = await attach(shared.service.controlEndpoint, enrolment);
      links.push(now.link);
      if (before !== undefined) await expectEnd(before.control, status.ABORTED, SessionCloseReason.SUPERSEDED);
      if (i === 1) expect((await node()).duplicate_agent).toBe(false);
      before = now;
    }
    await eventually(async () => (await node()).duplicate_agent).toBe(true);
  });

  it('supersedes nothing if it follows SessionClose{REKEY} on the same connection', async () => {
    const enrolment = await enrolled();
    const old = await attach(shared.service.controlEndpoint, enrolment);
    links.push(old.link);
    old.control.say(configRequest());
    await old.control.snapshot();
    for (let i = 0; i < 3; i += 1) {
      const session = await old.link.session(enrolment);
      old.control.say(closing(SessionCloseReason.REKEY));
      await expectEnd(old.control, status.OK);
      Object.assign(old, { session, control: old.link.control(session) });
      old.control.say(hello());
      old.control.say(configRequest());
      await old.control.snapshot();
    }
    expect((await shared.api.ok<NodeData>('GET', `/api/nodes/${enrolment.nodeId}`)).duplicate_agent).toBe(false);
  });
});

describe('revocation', () => {
  it('by a PSK reset ends the session with REVOKED before the reset is answered', async () => {
    const { control, session } = await attached();
    control.say(heartbeat(1n));
    await control.heartbeatResponse();
    const answer = await shared.api.ok('POST', `/api/nodes/${session.nodeId}/psk`);
    expect(answer).toMatchObject({ sessions_ended: true });
    await expectEnd(control, status.PERMISSION_DENIED, SessionCloseReason.REVOKED);
    const node = () => shared.api.ok<NodeData>('GET', `/api/nodes/${session.nodeId}`);
    await eventually(async () => (await node()).status).toBe('offline');
  });

  it('by deletion of the node ends the session with REVOKED', async () => {
    const { control, session } = await attached();
    control.say(heartbeat(1n));
    await control.heartbeatResponse();
    await shared.api.ok('DELETE', `/api/nodes/${session.nodeId}`);
    await expectEnd(control, status.PERMISSION_DENIED, SessionCloseReason.REVOKED);
  });
});

describe('the limits of a payload', () => {
  const listeners = (count: number, routes: number) =>
    Array.from({ length: count }, (_, i) => ({
      transport: 'tcp',
      listenAddr: '0.0.0.0',
      listenPort: 1 + i,
      state: 'running',
      routes: Array.from({ length: routes }, () => ({
        service: '',
        payload: '',
        outer: '',
        security: '',
        matchKind: '',
        matchValue: '',
        nextHop: '',
        state: '',
      })),
    }));

  it('are 4,096 listeners and 16,384 routes in a heartbeat', async () => {
    const { control } = await attached();
    control.say(heartbeat(1n, { runtimeListeners: listeners(4_096, 4) }));
    await control.heartbeatResponse();
    control.say(heartbeat(2n, { runtimeListeners: listeners(4_097, 0) }));
    await expectEnd(control, status.INVALID_ARGUMENT, SessionCloseReason.PROTOCOL_ERROR);
    const other = await attached();
    other.control.say(heartbeat(1n, { runtimeListeners: [...listeners(4_095, 4), ...listeners(1, 5)] }));
    await expectEnd(other.control, status.INVALID_ARGUMENT, SessionCloseReason.PROTOCOL_ERROR);
  });

  it('are 1,000 errors in an apply report', async () => {
    const { control } = await attached();
    const error = { resourceType: '', resourceId: '', path: '', message: '' };
    const report = (count: number): Said => ({
      $case: 'applyReport',
      value: {
        generation: 0n,
        status: 2,
        errors: Array.from({ length: count }, () => error),
        durationMs: 0n,
        checksum: Buffer.alloc(32),
      },
    });
    control.say(report(1_000));
    control.say(heartbeat(1n));
    await control.heartbeatResponse();
    control.say(report(1_001));
    await expectEnd(control, status.INVALID_ARGUMENT, SessionCloseReason.PROTOCOL_ERROR);
  });
});

it('a fault of one session does not affect another', async () => {
  const [good, bad] = [await attached(), await attached()];
  bad.control.frame({ sequence: 1n, ciphertext: randomBytes(40) });
  await expectEnd(bad.control, status.ABORTED);
  good.control.say(heartbeat(1n));
  expect((await good.control.heartbeatResponse()).ok).toBe(true);
});

describe('random bytes', () => {
  it('in valid frames end at most their own session, with a status of the contract', async () => {
    let enrolment = await enrolled();
    for (let i = 0; i < 40; i += 1) {
      // A node may open ten sessions at once.
      if (i % 8 === 7) enrolment = await enrolled();
      const { link, control } = await attach(shared.service.controlEndpoint, enrolment);
      control.payload(randomBytes(1 + (i % 60)));
      control.say(heartbeat(1n));
      const end = await Promise.race([control.ended(), control.heartbeatResponse().catch(() => control.ended())]);
      if ('code' in end) {
        expect([status.INVALID_ARGUMENT, status.FAILED_PRECONDITION, status.OK]).toContain(end.code);
      }
      link.close();
    }
    expect((await attached()).control.stream.closed).toBe(false);
  });

  it('instead of gRPC messages end the stream', async () => {
    for (const bytes of ['0100000001ff', '05000000010a', 'ffffffffff']) {
      const { control } = await pending();
      control.stream.write(Buffer.from(bytes, 'hex'));
      expect((await control.ended()).code).not.toBe(status.OK);
    }
  });
});
