/**
 * The agent listener, the PSK and OpenSession: `docs/contract/agent-protocol.md#the-listener`,
 * `docs/contract/agent-protocol.md#psk-verifier-service-identity`, `docs/contract/agent-protocol.md#opensession`.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { encodeProto } from '../support/proto-messages.js';
import {
  attach,
  configRequest,
  connectAgent,
  enrol,
  hello,
  initiate,
  status,
  type Enrolment,
  type Link,
} from './support/agent.js';
import { createNode, type NodeData } from './support/resources.js';
import { sharedService } from './support/running.js';

const shared = sharedService();
const openSession = '/svc.control.v1.SecureAgentService/OpenSession';
const links: Link[] = [];

function newLink(): Link {
  const link = connectAgent(shared.service.controlEndpoint);
  links.push(link);
  return link;
}

async function enrolled(): Promise<Enrolment> {
  const node = await createNode(shared.api);
  return enrol(node.id, node.control_psk);
}

afterEach(() => {
  for (const link of links.splice(0)) link.close();
});

describe('the listener', () => {
  /** Sends bytes over plain TCP; tells what came back and how long the connection lived. */
  async function rawBytes(bytes: string | Buffer): Promise<{ readonly ms: number; readonly received: string }> {
    const { hostname, port } = new URL(shared.service.controlEndpoint);
    const socket: Socket = connect(Number(port), hostname);
    let received = '';
    socket.on('data', (chunk: Buffer) => {
      received += chunk.toString('latin1');
    });
    socket.on('error', () => undefined);
    await once(socket, 'connect');
    const started = performance.now();
    socket.write(bytes);
    await once(socket, 'close');
    return { ms: performance.now() - started, received };
  }

  const incomplete = 'PRI * HTTP/2.0\r\n\r\nSM\r\n';

  it('closes a connection without an HTTP/2 preface at once and without an answer', async () => {
    // Which is given its time, although it came first.
    const slower = rawBytes(incomplete);
    const atOnce = Promise.all(
      ['GET / HTTP/1.1\r\nhost: x\r\n\r\n', Buffer.from('16030100', 'hex'), 'PRI * HTTP/1.1\r\n\r\n', '\0'].map(
        rawBytes,
      ),
    );
    const first = await Promise.race([slower.then(() => 'the incomplete one'), atOnce]);
    expect(first).toMatchObject([{ received: '' }, { received: '' }, { received: '' }, { received: '' }]);
    await slower;
  });

  it('closes a connection whose preface is not complete within 5 s', async () => {
    const { ms, received } = await rawBytes(incomplete);
    expect(received).toBe('');
    expect(ms).toBeGreaterThan(3_500);
  });

  it('answers every RPC of AgentService with UNIMPLEMENTED', async () => {
    const link = newLink();
    for (const rpc of ['Register', 'Heartbeat', 'StreamConfig', 'ReportMetrics']) {
      const { ended } = await link.unary(`/svc.control.v1.AgentService/${rpc}`, Buffer.alloc(0));
      expect(ended.code, rpc).toBe(status.UNIMPLEMENTED);
    }
    expect((await link.unary('/svc.control.v1.SecureAgentService/Nope', Buffer.alloc(0))).ended.code).toBe(
      status.UNIMPLEMENTED,
    );
  });

  it('refuses a gRPC message over 66 KiB', async () => {
    const { ended } = await newLink().unary(openSession, Buffer.alloc(66 * 1024 + 1));
    expect(ended.code).toBe(status.RESOURCE_EXHAUSTED);
  });

  it('allows 4 HTTP/2 streams per connection', async () => {
    const link = newLink();
    await once(link.http2, 'remoteSettings');
    expect(link.http2.remoteSettings.maxConcurrentStreams).toBe(4);
  });
});

describe('a granted session', () => {
  it('has the first 16 bytes of the handshake hash as its id, and the intervals in force', async () => {
    const enrolment = await enrolled();
    const before = Date.now();
    const session = await newLink().session(enrolment);
    const after = Date.now();
    expect(session.id).toHaveLength(16);
    expect(session.grant).toMatchObject({ rekeyAfterSecs: 21_600, heartbeatIntervalSecs: 10, metricsIntervalSecs: 60 });
    // Both have the clock of this machine.
    expect(Number(session.grant.serverTimeMs)).toBeGreaterThanOrEqual(before);
    expect(Number(session.grant.serverTimeMs)).toBeLessThanOrEqual(after);
  });

  it('does not make its node online before its first valid frame', async () => {
    const enrolment = await enrolled();
    const link = newLink();
    await link.session(enrolment);
    expect((await shared.api.ok<NodeData>('GET', `/api/nodes/${enrolment.nodeId}`)).status).toBe('pending');
  });

  it('may have a timestamp up to 120 s off', async () => {
    const enrolment = await enrolled();
    for (const offset of [-115_000, 115_000]) {
      const { ended } = await newLink().open(enrolment, { timestampMs: Date.now() + offset });
      expect(ended.code).toBe(status.OK);
    }
  });
});

describe('OpenSession refuses', () => {
  it('another protocol_version before any other check', async () => {
    const enrolment = await enrolled();
    const link = newLink();
    for (const protocolVersion of [0, 2, 4_294_967_295]) {
      expect((await link.open(enrolment, { protocolVersion })).ended.code).toBe(status.FAILED_PRECONDITION);
    }
    const short = { protocolVersion: 2, tamper: () => Buffer.alloc(3) };
    expect((await link.open(enrolment, short)).ended.code).toBe(status.FAILED_PRECONDITION);
    const unknown = { protocolVersion: 2, requestNodeId: randomUUID() };
    expect((await link.open(enrolment, unknown)).ended.code).toBe(status.FAILED_PRECONDITION);
  });

  it('a handshake outside 48..1,024 bytes as INVALID_ARGUMENT, before checking the node', async () => {
    const enrolment = await enrolled();
    const link = newLink();
    for (const length of [0, 47, 1_025, 60_000]) {
      const { ended } = await link.open(enrolment, { tamper: () => randomBytes(length), requestNodeId: randomUUID() });
      expect(ended.code, String(length)).toBe(status.INVALID_ARGUMENT);
    }
    for (const length of [48, 1_024]) {
      expect((await link.open(enrolment, { tamper: () => randomBytes(length) })).ended.code).toBe(
        status.UNAUTHENTICATED,
      );
    }
  });

  it('bytes that do not parse as INVALID_ARGUMENT', async () => {
    const { ended } = await newLink().unary(openSession, Buffer.from('ffffffffffff', 'hex'));
    expect(ended.code).toBe(status.INVALID_ARGUMENT);
  });

  it('an unknown node, a wrong PSK, a deleted node, a wrong prologue and a changed byte alike', async () => {
    const [enrolment, other] = [await enrolled(), await enrolled()];
    const deleted = await enrolled();
    await shared.api.ok('DELETE', `/api/nodes/${deleted.nodeId}`);
    const link = newLink();
    const unknown = { ...enrolment, nodeId: randomUUID() };
    const answers = [
      await link.open(unknown),
      await link.open({ ...enrolment, psk: randomBytes(32) }),
      await link.open({ ...enrolment, staticPrivate: randomBytes(32) }),
      await link.open(deleted),
      await link.open({ ...enrolment, nodeId: other.nodeId }),
      await link.open(enrolment, { prologueNodeId: other.nodeId }),
      await link.open({ ...enrolment, nodeId: 'not-a-uuid' }),
      await link.open({ ...enrolment, nodeId: '' }),
      await link.open(enrolment, {
        tamper: (message) => {
          message[40]! ^= 1;
          return message;
        },
      }),
      await link.open(enrolment, { tamper: (message) => Buffer.concat([Buffer.alloc(32), message.subarray(32)]) }),
    ];
    for (const { ended } of answers) {
      expect(ended).toMatchObject({ code: status.UNAUTHENTICATED, message: 'session refused' });
      expect(
        Object.keys(ended.trailers)
          .filter((key) => !key.startsWith(':'))
          .toSorted(),
      ).toEqual(
        Object.keys(answers[0]!.ended.trailers)
          .filter((key) => !key.startsWith(':'))
          .toSorted(),
      );
    }
  });

  it('a nonce that is not 16 bytes and an offer that does not parse as UNAUTHENTICATED', async () => {
    const enrolment = await enrolled();
    const link = newLink();
    for (const length of [0, 15, 17]) {
      const { ended } = await link.open(enrolment, { nonce: randomBytes(length) });
      expect(ended).toMatchObject({ code: status.UNAUTHENTICATED, message: 'session refused' });
    }
    const { ended } = await link.open(enrolment, { offer: Buffer.from('ffffffff', 'hex') });
    expect([status.UNAUTHENTICATED, status.INVALID_ARGUMENT]).toContain(ended.code);
  });

  it('a clock more than 120 s off as FAILED_PRECONDITION with the server time, once authenticated', async () => {
    const enrolment = await enrolled();
    const link = newLink();
    for (const offset of [-130_000, 130_000]) {
      const { ended } = await link.open(enrolment, { timestampMs: Date.now() + offset });
      expect(ended.code).toBe(status.FAILED_PRECONDITION);
      const serverTime = Number(ended.trailers['server-time-ms']);
      expect(Math.abs(serverTime - Date.now())).toBeLessThan(5_000);
    }
    const stranger = { ...enrolment, psk: randomBytes(32) };
    const { ended } = await link.open(stranger, { timestampMs: 5 });
    expect(ended).toMatchObject({ code: status.UNAUTHENTICATED, message: 'session refused' });
    expect(ended.trailers['server-time-ms']).toBeUndefined();
  });

  it('a replayed message 1, on the same or another connection', async () => {
    const enrolment = await enrolled();
    const { message } = initiate(enrolment);
    const request = encodeProto('OpenSessionRequest', {
      nodeId: enrolment.nodeId,
      protocolVersion: 1,
      handshake: Buffer.from(message),
    });
    expect((await newLink().unary(openSession, request)).ended.code).toBe(status.OK);
    for (const link of [newLink(), newLink()]) {
      const { ended } = await link.unary(openSession, request);
      expect(ended).toMatchObject({ code: status.UNAUTHENTICATED, message: 'session refused' });
    }
  });

  it('the old PSK after a reset', async () => {
    const enrolment = await enrolled();
    const { control_psk: psk } = await shared.api.ok<{ control_psk: string }>(
      'POST',
      `/api/nodes/${enrolment.nodeId}/psk`,
    );
    const link = newLink();
    expect((await link.open(enrolment)).ended.code).toBe(status.UNAUTHENTICATED);
    expect((await link.open(enrol(enrolment.nodeId, psk))).ended.code).toBe(status.OK);
  });
});

describe('the key of the service', () => {
  it('is the same for every node', async () => {
    const [a, b] = [await enrolled(), await enrolled()];
    expect(a.servicePublic).toEqual(b.servicePublic);
  });
});

describe('pending sessions', () => {
  it('are at most 2 per node: a third drops the oldest', async () => {
    const enrolment = await enrolled();
    const link = newLink();
    const [one, two, three] = [
      await link.session(enrolment),
      await link.session(enrolment),
      await link.session(enrolment),
    ];
    const first = link.control(one);
    first.say(hello());
    expect((await first.ended()).code).toBe(status.UNAUTHENTICATED);
    for (const session of [two, three]) {
      const control = link.control(session);
      control.say(hello());
      control.say(configRequest());
      await control.snapshot();
    }
  });

  it('can be attached only on the connection that opened them', async () => {
    const enrolment = await enrolled();
    const session = await newLink().session(enrolment);
    const foreign = newLink().control(session);
    foreign.say(hello());
    expect(await foreign.ended()).toMatchObject({ code: status.UNAUTHENTICATED, close: undefined });
  });

  it('are not found by an unknown or empty id: UNAUTHENTICATED', async () => {
    const enrolment = await enrolled();
    const link = newLink();
    const session = await link.session(enrolment);
    const unknown = link.control({ ...session, id: randomBytes(16) });
    unknown.say(hello());
    expect(await unknown.ended()).toMatchObject({ code: status.UNAUTHENTICATED, close: undefined });
    const none = link.control({ ...session, id: Buffer.alloc(0) });
    none.say(hello());
    expect(await none.ended()).toMatchObject({ code: status.UNAUTHENTICATED, close: undefined });
  });

  it('are dropped by a PSK reset', async () => {
    const enrolment = await enrolled();
    const link = newLink();
    const session = await link.session(enrolment);
    await shared.api.ok('POST', `/api/nodes/${enrolment.nodeId}/psk`);
    const control = link.control(session);
    control.say(hello());
    expect(await control.ended()).toMatchObject({ code: status.UNAUTHENTICATED, close: undefined });
  });

  it('can be attached once', async () => {
    const enrolment = await enrolled();
    const { link, session, control } = await attach(shared.service.controlEndpoint, enrolment);
    links.push(link);
    control.say(configRequest());
    await control.snapshot();
    const again = link.control(session);
    again.say(hello());
    expect(await again.ended()).toMatchObject({ code: status.UNAUTHENTICATED, close: undefined });
    control.say(configRequest());
    await control.snapshot();
  });
});

describe('the budgets', () => {
  it('let a node open 10 sessions at once and then 1 per second, without charging another node', async () => {
    const [enrolment, other] = [await enrolled(), await enrolled()];
    const link = newLink();
    const codes: number[] = [];
    // On a slow machine the budget refills meanwhile.
    while (codes.length < 60 && !codes.includes(status.RESOURCE_EXHAUSTED)) {
      codes.push((await link.open(enrolment)).ended.code);
    }
    expect(codes.slice(0, 10)).toEqual(Array.from({ length: 10 }, () => status.OK));
    expect(codes.at(-1)).toBe(status.RESOURCE_EXHAUSTED);
    expect((await link.open(other)).ended.code).toBe(status.OK);
  });

  it('let a node open ten sessions at once, and some more as seconds pass, however valid their frames are', async () => {
    const enrolment = await enrolled();
    const began = performance.now();
    let opened = 0;
    for (; opened < 60 && (await newLink().open(enrolment)).ended.code === status.OK; opened += 1) {
      const attached = await attach(shared.service.controlEndpoint, enrolment).catch(() => undefined);
      if (attached === undefined) break;
      opened += 1;
      attached.control.say(configRequest());
      await attached.control.snapshot();
      attached.link.close();
    }
    expect(opened).toBeGreaterThanOrEqual(9);
    expect(opened).toBeLessThanOrEqual(10 + Math.ceil((performance.now() - began) / 1000));
  });

  it('do not let anyone without the PSK lock a node out', async () => {
    const enrolment = await enrolled();
    const link = newLink();
    const stranger = { ...enrolment, psk: randomBytes(32) };
    const codes: number[] = [];
    for (let i = 0; i < 30; i += 1) codes.push((await link.open(stranger)).ended.code);
    expect(new Set(codes)).toEqual(new Set([status.UNAUTHENTICATED]));
    expect((await link.open(enrolment)).ended.code).toBe(status.OK);
  });

  it('delay and then refuse an address with too many failures', async () => {
    const enrolment = await enrolled();
    const stranger = { ...enrolment, psk: randomBytes(32) };
    const codes = new Set<number>();
    await Promise.all(
      Array.from({ length: 120 }, async () => {
        codes.add((await newLink().open(stranger)).ended.code);
      }),
    );
    expect(codes).toEqual(new Set([status.UNAUTHENTICATED, status.RESOURCE_EXHAUSTED]));
    expect((await newLink().open(enrolment)).ended.code).toBe(status.OK);
  });
});

it('a SessionOffer is encoded with the field numbers of the proto file', () => {
  const offer = encodeProto('SessionOffer', { timestampMs: 1n, nonce: Buffer.alloc(16) });
  expect(Buffer.from(offer).toString('hex')).toBe(`08011210${'00'.repeat(16)}`);
});
