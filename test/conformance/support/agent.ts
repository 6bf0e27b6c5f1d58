/**
 * An agent written from the documentation and the proto files alone: gRPC by hand over node:http2, cryptography of @noble,
 * messages by what buf reads in `proto/`. It shares no code with the service.
 */
import { randomBytes } from 'node:crypto';
import { connect, type ClientHttp2Session, type ClientHttp2Stream, type IncomingHttpHeaders } from 'node:http2';
import { hkdf } from '@noble/hashes/hkdf.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { utf8ToBytes } from '@noble/hashes/utils.js';
import { expect } from 'vitest';
import type { ConfigUpdate, RuntimeConfigSnapshot } from '../../../src/gen/svc/control/v1/config.js';
import type { HeartbeatRequest, HeartbeatResponse } from '../../../src/gen/svc/control/v1/heartbeat.js';
import type {
  AgentPayload,
  SecureFrame,
  ServicePayload,
  SessionClose,
  SessionGrant,
} from '../../../src/gen/svc/control/v1/session.js';
import { oracleDecrypt, oracleEncrypt, oracleInitiate } from '../../support/noise-oracle.js';
import { decodeProto, encodeProto } from '../../support/proto-messages.js';

/** gRPC status codes by name. */
export const status = {
  OK: 0,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  UNIMPLEMENTED: 12,
  UNAVAILABLE: 14,
  UNAUTHENTICATED: 16,
} as const;

export interface Enrolment {
  readonly nodeId: string;
  readonly staticPrivate: Buffer;
  readonly psk: Buffer;
  readonly servicePublic: Buffer;
}

const salt = utf8ToBytes('svc-control-v1');
const derive = (secret: Buffer, info: string): Buffer => Buffer.from(hkdf(sha256, secret, salt, utf8ToBytes(info), 32));

/** Derives an agent's keys from its control PSK. */
export function enrol(nodeId: string, controlPsk: string): Enrolment {
  expect(controlPsk).toMatch(/^svcpsk1_[A-Za-z0-9_-]+$/);
  const bytes = Buffer.from(controlPsk.slice('svcpsk1_'.length), 'base64url');
  expect(bytes).toHaveLength(64);
  const secret = bytes.subarray(0, 32);
  return {
    nodeId,
    staticPrivate: derive(secret, 'node-static'),
    psk: derive(secret, 'noise-psk'),
    servicePublic: bytes.subarray(32),
  };
}

export interface Ended {
  readonly code: number;
  readonly message: string;
  readonly trailers: IncomingHttpHeaders;
}

export interface Session {
  readonly id: Buffer;
  readonly grant: SessionGrant;
  readonly sendKey: Uint8Array;
  readonly receiveKey: Uint8Array;
  readonly nodeId: string;
}

interface OpenOptions {
  readonly timestampMs?: number;
}

/** Makes a message 1 and reads its answer. */
function initiate(enrolment: Enrolment, { timestampMs = Date.now() }: OpenOptions) {
  const offer = Buffer.from(
    encodeProto('SessionOffer', {
      timestampMs: BigInt(timestampMs),
      nonce: randomBytes(16),
      agentVersion: 'conformance/1',
    }),
  );
  return oracleInitiate(
    {
      prologue: Buffer.concat([Buffer.from('svc-control-v1'), Buffer.from([0]), Buffer.from(enrolment.nodeId)]),
      psk: enrolment.psk,
      staticPrivate: enrolment.staticPrivate,
      remoteStatic: enrolment.servicePublic,
      ephemeralPrivate: randomBytes(32),
    },
    offer,
  );
}

const framed = (message: Uint8Array): Buffer => {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.byteLength, 1);
  return Buffer.concat([head, message]);
};

/** Reads the gRPC messages of a stream. */
function readMessages(stream: ClientHttp2Stream, onMessage: (message: Buffer) => void): void {
  let rest: Buffer = Buffer.alloc(0);
  stream.on('data', (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= 5 && rest.length >= 5 + rest.readUInt32BE(1)) {
      const end = 5 + rest.readUInt32BE(1);
      onMessage(rest.subarray(5, end));
      rest = rest.subarray(end);
    }
  });
}

/** How a stream ended: its trailers, or code -1 if the connection was lost without any. */
function readStatus(stream: ClientHttp2Stream): Promise<Ended> {
  return new Promise((resolve) => {
    let headers: IncomingHttpHeaders = {};
    const add = (more: IncomingHttpHeaders): void => {
      headers = { ...headers, ...more };
    };
    stream.on('response', add);
    stream.on('trailers', add);
    stream.on('error', () => undefined);
    const finish = (): void => {
      // As gRPC clients do at the end of a call: close this half of the stream.
      if (!stream.closed) stream.close();
      resolve({
        code: headers['grpc-status'] === undefined ? -1 : Number(headers['grpc-status']),
        message: decodeURIComponent(String(headers['grpc-message'] ?? '')),
        trailers: headers,
      });
    };
    stream.on('end', finish);
    stream.on('close', finish);
  });
}

export interface Link {
  readonly http2: ClientHttp2Session;
  /** Opens a session, or returns how that was refused. */
  open(enrolment: Enrolment, options?: OpenOptions): Promise<{ readonly ended: Ended; readonly session?: Session }>;
  /** Opens a session; fails the test if it is refused. */
  session(enrolment: Enrolment): Promise<Session>;
  control(session: Session): Control;
  close(): void;
}

const agentService = '/svc.control.v1.SecureAgentService';

/** One HTTP/2 connection to the agent listener. */
export function connectAgent(endpoint: string): Link {
  const http2 = connect(endpoint);
  http2.on('error', () => undefined);
  http2.unref();
  const start = (path: string): ClientHttp2Stream =>
    http2.request({ ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers' });

  async function unary(path: string, message: Uint8Array): Promise<{ ended: Ended; answer: Buffer | undefined }> {
    const stream = start(path);
    let answer: Buffer | undefined;
    readMessages(stream, (message) => {
      answer = message;
    });
    const ended = readStatus(stream);
    stream.end(framed(message));
    return { ended: await ended, answer };
  }

  async function open(enrolment: Enrolment, options: OpenOptions = {}) {
    const handshake = initiate(enrolment, options);
    const { ended, answer } = await unary(
      `${agentService}/OpenSession`,
      encodeProto('OpenSessionRequest', {
        nodeId: enrolment.nodeId,
        protocolVersion: 1,
        handshake: Buffer.from(handshake.message),
      }),
    );
    if (answer === undefined || ended.code !== status.OK) return { ended };
    const response = decodeProto('OpenSessionResponse', answer);
    const keys = handshake.finish(response.handshake);
    expect(response.sessionId).toEqual(Buffer.from(keys.hash.subarray(0, 16)));
    return {
      ended,
      session: {
        id: response.sessionId,
        grant: decodeProto('SessionGrant', keys.payload),
        sendKey: keys.initiatorToResponder,
        receiveKey: keys.responderToInitiator,
        nodeId: enrolment.nodeId,
      },
    };
  }

  return {
    http2,
    open,
    async session(enrolment) {
      const { ended, session } = await open(enrolment);
      if (session === undefined) throw new Error(`OpenSession was refused: ${ended.code} ${ended.message}`);
      return session;
    },
    control: (session) => startControl(start(`${agentService}/Control`), session),
    close: () => http2.destroy(),
  };
}

export type Said = NonNullable<AgentPayload['payload']>;

export interface Control {
  readonly stream: ClientHttp2Stream;
  say(payload: Said): void;
  /** The next payload of the service. */
  next(timeoutMs?: number): Promise<ServicePayload>;
  snapshot(timeoutMs?: number): Promise<RuntimeConfigSnapshot>;
  update(timeoutMs?: number): Promise<NonNullable<ConfigUpdate['update']>>;
  heartbeatResponse(): Promise<HeartbeatResponse>;
  /** Fails the test if anything arrives within this time. */
  silence(ms: number): Promise<void>;
  /** The SessionClose, if one came, and the status. Fails the test if the stream does not end. */
  ended(timeoutMs?: number): Promise<Ended & { readonly close: SessionClose | undefined }>;
  /** How many fragments each received payload had. */
  readonly fragments: number[];
}

/** How long a test waits for what an idle machine sends at once. */
const patienceMs = 20_000;

const within = <T>(promise: Promise<T>, ms: number, awaited: string): Promise<T> => {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${awaited} did not come within ${ms} ms`)), ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
};

const largestFragment = 65_518;

function startControl(stream: ClientHttp2Stream, session: Session): Control {
  const waiting: ServicePayload[] = [];
  const fragments: number[] = [];
  let wake: (() => void) | undefined;
  let received = 0n;
  let sent = 0n;
  let joined: Buffer[] = [];
  let close: SessionClose | undefined;
  let fault: unknown;
  let over = false;
  const ending = readStatus(stream);
  void ending.then(() => {
    over = true;
    wake?.();
  });
  readMessages(stream, (message) => {
    try {
      const frame = decodeProto('SecureFrame', message);
      expect(frame.sequence).toBe(received);
      expect(frame.sessionId).toHaveLength(0);
      expect(frame.ciphertext.length).toBeLessThanOrEqual(65_535);
      const plaintext = Buffer.from(oracleDecrypt(session.receiveKey, received, frame.ciphertext));
      received += 1n;
      expect([0, 1]).toContain(plaintext[0]);
      joined.push(plaintext.subarray(1));
      if (plaintext[0] === 1) return expect(plaintext.length).toBeGreaterThan(16 * 1024);
      expect(close, 'nothing follows a SessionClose').toBeUndefined();
      const payload = decodeProto('ServicePayload', Buffer.concat(joined));
      fragments.push(joined.length);
      joined = [];
      if (payload.payload?.$case === 'close') close = payload.payload.value;
      else waiting.push(payload);
    } catch (error) {
      fault = error;
    }
    wake?.();
  });
  const frame = (value: Partial<SecureFrame>): void => {
    if (!stream.destroyed && stream.writable) stream.write(framed(encodeProto('SecureFrame', value)));
  };
  const seal = (plaintext: Uint8Array): Partial<SecureFrame> => {
    const sequence = sent;
    sent += 1n;
    return {
      ...(sequence === 0n ? { sessionId: session.id } : {}),
      sequence,
      ciphertext: Buffer.from(oracleEncrypt(session.sendKey, sequence, plaintext)),
    };
  };
  const payload = (encoded: Uint8Array): void => {
    let at = 0;
    do {
      const part = encoded.subarray(at, at + largestFragment);
      at += part.length;
      frame(seal(Buffer.concat([Buffer.from([at < encoded.length ? 1 : 0]), part])));
    } while (at < encoded.length);
  };
  async function next(timeoutMs = patienceMs): Promise<ServicePayload> {
    const until = Date.now() + timeoutMs;
    for (;;) {
      if (fault !== undefined) throw fault;
      const first = waiting.shift();
      if (first !== undefined) return first;
      if (over) throw new Error(`the stream has ended: ${JSON.stringify({ ...(await ending), close })}`);
      if (Date.now() > until) throw new Error(`no payload came within ${timeoutMs} ms`);
      await within(
        new Promise<void>((resolve) => {
          wake = resolve;
        }),
        Math.max(1, until - Date.now()),
        'a payload',
      ).catch(() => undefined);
    }
  }
  async function update(timeoutMs?: number): Promise<NonNullable<ConfigUpdate['update']>> {
    const { payload: received } = await next(timeoutMs);
    if (received?.$case !== 'configUpdate') throw new Error(`expected a ConfigUpdate, got ${received?.$case}`);
    if (received.value.update === undefined) throw new Error('the ConfigUpdate is empty');
    return received.value.update;
  }
  return {
    stream,
    say: (said) => payload(encodeProto('AgentPayload', { payload: said })),
    next,
    update,
    async snapshot(timeoutMs) {
      const received = await update(timeoutMs);
      if (received.$case !== 'snapshot') throw new Error(`expected a snapshot, got ${received.$case}`);
      return received.value;
    },
    async heartbeatResponse() {
      const { payload: received } = await next();
      if (received?.$case !== 'heartbeatResponse') throw new Error(`expected a response, got ${received?.$case}`);
      return received.value;
    },
    async silence(ms) {
      await new Promise((resolve) => setTimeout(resolve, ms));
      expect(waiting.map((received) => received.payload?.$case)).toEqual([]);
      expect(close).toBeUndefined();
      expect(over).toBe(false);
    },
    async ended(timeoutMs = patienceMs) {
      const end = await within(ending, timeoutMs, 'the end of the stream');
      if (fault !== undefined) throw fault;
      return { ...end, close };
    },
    fragments,
  };
}

export const hello = (value: Partial<Extract<Said, { $case: 'hello' }>['value']> = {}): Said => ({
  $case: 'hello',
  value: {
    nodeId: '',
    publicIpv4: '',
    publicIpv6: '',
    agentVersion: 'conformance/1',
    multiplex: false,
    multiplexPort: 0,
    detectedAddresses: [],
    features: [],
    processId: Buffer.alloc(0),
    ...value,
  },
});

export const heartbeat = (sequence: bigint, value: Partial<HeartbeatRequest> = {}): Said => ({
  $case: 'heartbeat',
  value: {
    nodeId: '',
    sequence,
    timestamp: undefined,
    cpuUsage: 0,
    memoryUsage: 0,
    uptimeSeconds: 0n,
    linkMetrics: [],
    runtimeListeners: [],
    ...value,
  },
});

export const configRequest = (configVersion = 0n, checksum: Uint8Array = Buffer.alloc(0), nodeId = ''): Said => ({
  $case: 'configRequest',
  value: { nodeId, configVersion, checksum: Buffer.from(checksum) },
});

export const applied = (snapshot: Pick<RuntimeConfigSnapshot, 'generation' | 'checksum'>): Said => ({
  $case: 'applyReport',
  value: { generation: snapshot.generation, status: 1, errors: [], durationMs: 1n, checksum: snapshot.checksum },
});

export const rejected = (
  snapshot: Pick<RuntimeConfigSnapshot, 'generation' | 'checksum'>,
  errors: Extract<Said, { $case: 'applyReport' }>['value']['errors'] = [],
): Said => ({
  $case: 'applyReport',
  value: { generation: snapshot.generation, status: 2, errors, durationMs: 1n, checksum: snapshot.checksum },
});

export const closing = (reason: SessionClose['reason']): Said => ({
  $case: 'close',
  value: { reason, message: '', retryAfterMs: 0 },
});

/** The fingerprint of a node's static public key, as REST shows it. */
export const fingerprint = (publicKey: Uint8Array): string =>
  `SHA256:${Buffer.from(sha256(publicKey)).toString('base64url')}`;

export interface Attached {
  readonly link: Link;
  readonly session: Session;
  readonly control: Control;
}

/** Connects, opens a session, attaches it and says hello. */
export async function attach(endpoint: string, enrolment: Enrolment, said: Said = hello()): Promise<Attached> {
  const link = connectAgent(endpoint);
  const session = await link.session(enrolment);
  const control = link.control(session);
  control.say(said);
  return { link, session, control };
}
