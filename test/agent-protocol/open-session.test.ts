/** OpenSession as in `docs/contract/agent-protocol.md#opensession`: order of checks, answers, budgets, admission. */
import { status } from '@grpc/grpc-js';
import { randomBytes } from 'node:crypto';
import { connect, createServer, type AddressInfo, type Server } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { SecureAgentServiceService } from '../../src/gen/svc/control/v1/secure_agent_service.js';
import {
  OpenSessionRequest,
  OpenSessionResponse,
  SecureFrame,
  SessionOffer,
} from '../../src/gen/svc/control/v1/session.js';
import { sessionIdOf } from '../../src/channel/noise/handshake.js';
import { issueControlPsk } from '../../src/security/psk.js';
import { startAgentFixture, type AgentFixture } from '../support/agent-fixture.js';
import { eventually } from '../support/eventually.js';
import { codeOf, createRawAgent, helloOf, isRefused, type RawAgent, type Refused } from '../support/raw-agent.js';

let fixture: AgentFixture;
const agents: RawAgent[] = [];
const proxies: Server[] = [];

beforeEach(async () => {
  fixture = await startAgentFixture({ admissionDelayMs: 300 });
});
afterEach(async () => {
  for (const agent of agents.splice(0)) agent.disconnect();
  for (const proxy of proxies.splice(0)) proxy.close();
  await fixture.close();
});

const newAgent = (nodeId?: string): Promise<RawAgent> => fixture.agent(nodeId);

function started(...of: Parameters<typeof createRawAgent>): RawAgent {
  const agent = createRawAgent(...of);
  agents.push(agent);
  return agent;
}
const stranger = (nodeId: string): RawAgent =>
  started(fixture, nodeId, issueControlPsk(fixture.servicePublic).controlPsk);

/** Starts a proxy that reaches the service from another loopback address. */
async function proxyFrom(localAddress: string): Promise<{ host: string; port: number }> {
  const proxy = createServer((near) => {
    const far = connect({ host: fixture.host, port: fixture.port, localAddress });
    near.pipe(far).pipe(near);
    near.on('error', () => far.destroy());
    far.on('error', () => near.destroy());
    near.on('close', () => far.destroy());
    far.on('close', () => near.destroy());
  });
  proxies.push(proxy);
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  return { host: '127.0.0.1', port: (proxy.address() as AddressInfo).port };
}

test('a valid offer is granted the intervals in force, and the session id comes from the handshake hash', async () => {
  fixture.settings = { ...fixture.settings, heartbeat_interval_secs: 7, metrics_interval_secs: 33 };
  const agent = await newAgent();
  const opened = await agent.session();
  expect(opened.grant).toMatchObject({ rekeyAfterSecs: 21_600, heartbeatIntervalSecs: 7, metricsIntervalSecs: 33 });
  expect(Math.abs(Number(opened.grant.serverTimeMs) - fixture.clock.now())).toBeLessThan(60_000);
  expect(opened.sessionId).toEqual(Buffer.from(sessionIdOf(opened.noise.handshakeHash)));
});

describe('the order of checks', () => {
  test('begins with protocol_version: another one is FAILED_PRECONDITION, whatever the handshake', async () => {
    const agent = await newAgent();
    const handshake = Buffer.alloc(3);
    for (const protocolVersion of [0, 2]) {
      expect(codeOf(await agent.open({ protocolVersion, handshake }))).toBe(status.FAILED_PRECONDITION);
    }
  });
  test('checks the length of the handshake before its content: INVALID_ARGUMENT, then UNAUTHENTICATED', async () => {
    const agent = await newAgent();
    const answers: number[] = [];
    for (const length of [0, 47, 48, 1024, 1025]) {
      answers.push(codeOf(await agent.open({ handshake: Buffer.alloc(length, 9) })));
    }
    const { INVALID_ARGUMENT, UNAUTHENTICATED } = status;
    expect(answers).toEqual([INVALID_ARGUMENT, INVALID_ARGUMENT, UNAUTHENTICATED, UNAUTHENTICATED, INVALID_ARGUMENT]);
  });
});

describe('UNAUTHENTICATED is the answer', () => {
  test('to an unknown node, a wrong PSK, a deleted node, a bad nonce and a bad offer alike', async () => {
    const good = await newAgent('known');
    const deleted = await newAgent('deleted');
    fixture.revoke('deleted');
    const answers = [
      await stranger('nobody').open(),
      await stranger('known').open(),
      await deleted.open(),
      await good.open({ nonce: Buffer.alloc(15) }),
      await good.open({ offer: Buffer.from([0x0a, 0xff]) }),
      await good.open({ handshake: Buffer.alloc(48) }),
    ];
    for (const answer of answers) {
      expect(answer).toMatchObject({ code: status.UNAUTHENTICATED, details: 'session refused' });
      expect((answer as Refused).metadata.getMap()).not.toHaveProperty('server-time-ms');
    }
    expect(isRefused(await good.open())).toBe(false);
  });
  test('to a message 1 repeated at another instance only where it was seen: it opens a session that nobody can attach', async () => {
    const secret = randomBytes(32);
    const identity = { publicKey: fixture.servicePublic, privateKey: fixture.servicePrivate };
    const other = await startAgentFixture({}, { identity, clock: fixture.clock });
    try {
      const agent = started(fixture, 'node-1', await fixture.issue('node-1', secret));
      const replaying = started(other, 'node-1', await other.issue('node-1', secret));
      const { handshake } = await agent.session();
      const request = Buffer.from(
        OpenSessionRequest.encode({ nodeId: 'node-1', protocolVersion: 1, handshake }).finish(),
      );
      const replay = () => replaying.unary(SecureAgentServiceService.openSession.path, request);
      const answer = await replay();
      if (!Buffer.isBuffer(answer)) throw new Error(answer.details);
      expect(other.transport.stats()).toMatchObject({ pending: 1, sessions: 0 });
      expect(await replay()).toMatchObject({ code: status.UNAUTHENTICATED });
      // Whoever has no keys can name the session, but not speak in it.
      const call = replaying.bare();
      call.resume();
      const ended = new Promise<number>((resolve) => call.on('status', ({ code }) => resolve(code)));
      const { sessionId } = OpenSessionResponse.decode(answer);
      const frame = SecureFrame.fromPartial({ sessionId, ciphertext: Buffer.alloc(64) });
      call.write(Buffer.from(SecureFrame.encode(frame).finish()));
      expect(await ended).toBe(status.ABORTED);
      expect(other.telemetry.opened).toEqual([]);
      await eventually(() => other.transport.stats()).toMatchObject({ pending: 0, sessions: 0 });
    } finally {
      await other.close();
    }
  });
  test('to a replayed message 1, not to a new one', async () => {
    const agent = await newAgent();
    const { handshake } = await agent.session();
    expect(codeOf(await agent.open({ handshake }))).toBe(status.UNAUTHENTICATED);
    await agent.session();
  });
  test('to a replayed message 1 until 120 s after its own timestamp', async () => {
    const agent = await newAgent();
    const answer = await agent.open({ timestampMs: fixture.clock.now() + 110_000 });
    if (isRefused(answer)) throw new Error('refused');
    const { handshake } = answer;
    fixture.clock.advance(200_000);
    expect(codeOf(await agent.open({ handshake }))).toBe(status.UNAUTHENTICATED);
    fixture.clock.advance(40_000);
    expect(codeOf(await agent.open({ handshake }))).toBe(status.FAILED_PRECONDITION);
  });
});

describe('clock skew', () => {
  test('of up to 120 s is allowed, more is FAILED_PRECONDITION with the time of the service', async () => {
    const agent = await newAgent();
    for (const offset of [-119_000, 119_000]) {
      expect(codeOf(await agent.open({ timestampMs: fixture.clock.now() + offset }))).toBe(status.OK);
    }
    for (const offset of [-125_000, 125_000]) {
      const answer = await agent.open({ timestampMs: fixture.clock.now() + offset });
      expect(codeOf(answer)).toBe(status.FAILED_PRECONDITION);
      const [serverTime] = (answer as Refused).metadata.get('server-time-ms');
      expect(Math.abs(Number(serverTime) - fixture.clock.now())).toBeLessThan(60_000);
    }
  });
  test('is reported only after authentication', async () => {
    await newAgent('known');
    const answer = await stranger('known').open({ timestampMs: 0 });
    expect(codeOf(answer)).toBe(status.UNAUTHENTICATED);
  });
  test('is also the reason to refuse the largest possible timestamp', async () => {
    const agent = await newAgent();
    const offer = SessionOffer.encode({
      timestampMs: 2n ** 64n - 1n,
      nonce: Buffer.alloc(16),
      agentVersion: '',
    }).finish();
    expect(codeOf(await agent.open({ offer }))).toBe(status.FAILED_PRECONDITION);
  });
});

describe('the budgets', () => {
  test('let a flood of wrong PSKs use up its own address only, not another address nor the named node', async () => {
    const proxy = { ...(await proxyFrom('127.0.0.2')), clock: fixture.clock };
    const elsewhere = started(proxy, 'node-1', await fixture.issue('node-1'));
    const flood = stranger('node-1');
    const codes: number[] = [];
    // On a slow machine the budget refills meanwhile.
    for (let round = 0; round < 60 && !codes.includes(status.RESOURCE_EXHAUSTED); round += 1) {
      const answers = await Promise.all(Array.from({ length: 10 }, () => flood.open()));
      codes.push(...answers.map(codeOf));
    }
    expect(codes.filter((code) => code === status.UNAUTHENTICATED).length).toBeGreaterThanOrEqual(50);
    expect(codes).toContain(status.RESOURCE_EXHAUSTED);
    const stream = await elsewhere.connect();
    await stream.beat(1);
  });
  test('do not charge an address for successes', async () => {
    for (let index = 0; index < 70; index += 1) {
      const agent = await newAgent(`node-${index}`);
      await agent.session();
      agent.disconnect();
    }
    expect(fixture.transport.stats().handshakes.get('ok')).toBe(70);
  });
  test('let a node make ten offers at once and one each second, however valid the frames of its sessions are', async () => {
    const agent = await newAgent();
    const began = fixture.clock.now();
    const codes: number[] = [];
    while (codes.length < 40 && !codes.includes(status.RESOURCE_EXHAUSTED)) {
      const answer = await agent.open();
      codes.push(codeOf(answer));
      if (isRefused(answer)) break;
      agent.attach(answer).say(helloOf());
      await eventually(() => fixture.telemetry.opened.length).toBe(codes.length);
    }
    // On a slow machine the budget refills meanwhile, by one each second.
    const refilled = Math.ceil((fixture.clock.now() - began) / 1000);
    const opened = codes.filter((code) => code === status.OK).length;
    expect(opened).toBeGreaterThanOrEqual(10);
    expect(opened).toBeLessThanOrEqual(10 + refilled);
    expect(codes).toEqual([...Array.from({ length: opened }, () => status.OK), status.RESOURCE_EXHAUSTED]);
    fixture.clock.advance(1_100);
    expect(codeOf(await agent.open())).toBe(status.OK);
  });
});

describe('the budget of a node', () => {
  test('is not charged for replays and for offers with a wrong time', async () => {
    const agent = await newAgent();
    const { handshake } = await agent.session();
    for (let index = 0; index < 8; index += 1) {
      expect(codeOf(await agent.open({ handshake }))).toBe(status.UNAUTHENTICATED);
      const timestampMs = fixture.clock.now() + 200_000;
      expect(codeOf(await agent.open({ timestampMs }))).toBe(status.FAILED_PRECONDITION);
    }
    const codes = (await Promise.all(Array.from({ length: 9 }, () => agent.open()))).map(codeOf);
    expect(codes).toEqual(codes.map(() => status.OK));
  });
  test('is not that of its address: offers beyond it leave the address its own', async () => {
    const agent = await newAgent();
    // More than the faults that an address may make at once. On a slow machine the node's budget refills meanwhile.
    let refused = 0;
    for (let round = 0; round < 60 && refused < 60; round += 1) {
      const answers = await Promise.all(Array.from({ length: 10 }, () => agent.open()));
      refused += answers.filter((answer) => codeOf(answer) === status.RESOURCE_EXHAUSTED).length;
    }
    expect(refused).toBeGreaterThanOrEqual(60);
    expect(fixture.transport.stats().handshakes.get('address_budget') ?? 0).toBe(0);
    expect(codeOf(await stranger('nobody').open())).toBe(status.UNAUTHENTICATED);
    await (await newAgent('node-2')).session();
  });
});

describe('a pending session', () => {
  test('is attached once: a second stream is refused and the first stays', async () => {
    const agent = await newAgent();
    const opened = await agent.session();
    const first = agent.attach(opened);
    first.say(helloOf());
    await eventually(() => fixture.telemetry.opened.length).toBe(1);
    const again = agent.attach(opened);
    again.sendFrame({ sessionId: opened.sessionId, sequence: 0n, ciphertext: Buffer.alloc(32) });
    expect((await again.status).code).toBe(status.UNAUTHENTICATED);
    await first.beat(1);
  });
  test('stays when a second stream on its connection was refused, after the time in which others are cut', async () => {
    const agent = await newAgent();
    const opened = await agent.session();
    const first = agent.attach(opened);
    first.say(helloOf());
    await eventually(() => fixture.telemetry.opened.length).toBe(1);
    const unknown = { sessionId: opened.sessionId, sequence: 0n, ciphertext: Buffer.alloc(32) };
    const [again, elsewhere] = [agent.attach(opened), (await newAgent('other')).attach(opened)];
    for (const stream of [again, elsewhere]) {
      stream.sendFrame(unknown);
      expect((await stream.status).code).toBe(status.UNAUTHENTICATED);
    }
    await eventually(() => fixture.transport.stats().connections.open.without_session).toBe(0);
    await first.beat(1);
  });
});

test('with too many pending sessions, admission waits until one is attached, and is refused if none is', async () => {
  await fixture.close();
  fixture = await startAgentFixture({ pendingSessions: 1, admissionDelayMs: 400 });
  const holder = await newAgent('holder');
  const held = await holder.session();
  const waiter = await newAgent('waiter');
  expect(codeOf(await waiter.open())).toBe(status.RESOURCE_EXHAUSTED);
  const waiting = waiter.open();
  await eventually(() => fixture.transport.stats().waiting).toBe(1);
  holder.attach(held).say(helloOf());
  expect(codeOf(await waiting)).toBe(status.OK);
});

test('a refused handshake leaves its reason and the address of the peer; a draining service does not', async () => {
  const intruder = stranger('node-9');
  expect(codeOf(await intruder.open())).toBe(status.UNAUTHENTICATED);
  expect(codeOf(await intruder.open({ protocolVersion: 2 }))).toBe(status.FAILED_PRECONDITION);
  expect(codeOf(await (await newAgent()).open())).toBe(status.OK);
  fixture.storesAway = true;
  expect(codeOf(await intruder.open())).toBe(status.UNAVAILABLE);
  expect(fixture.refusals).toEqual([
    { reason: 'handshake_refused', address: '127.0.0.1' },
    { reason: 'handshake_protocol_version', address: '127.0.0.1' },
  ]);
});

test('a verifier that cannot be opened is refused like any other, and leaves its node and the address', async () => {
  const agent = await newAgent();
  fixture.spoilVerifier('node-1');
  expect(await agent.open()).toMatchObject({ code: status.UNAUTHENTICATED, details: 'session refused' });
  expect(fixture.refusals).toMatchObject([
    { reason: 'handshake_verifier', address: '127.0.0.1', node_id: 'node-1' },
    { reason: 'handshake_refused', address: '127.0.0.1' },
  ]);
});
