/**
 * A minimal service side of the control protocol for tests of the agent: real gRPC and a real handshake, while the test
 * decides the answers. No admission, no limits, no stores.
 */
import { Metadata, Server, ServerCredentials, status, type ServerDuplexStream } from '@grpc/grpc-js';
import { randomBytes } from 'node:crypto';
import {
  SecureAgentServiceService,
  type SecureAgentServiceServer,
} from '../../src/gen/svc/control/v1/secure_agent_service.js';
import {
  AgentPayload,
  ServicePayload,
  SessionGrant,
  SessionOffer,
  type SecureFrame,
  type SessionClose,
} from '../../src/gen/svc/control/v1/session.js';
import type { Command } from '../../src/gen/svc/control/v1/command.js';
import type { RuntimeConfigSnapshot } from '../../src/gen/svc/control/v1/config.js';
import type { AgentConfig } from '../../src/agent/config.js';
import { Joiner, splitPayload } from '../../src/channel/noise/fragmenter.js';
import { controlPrologue, respond, sessionIdOf, type NoiseSession } from '../../src/channel/noise/handshake.js';
import { agentKeysFrom, encodeControlPsk } from '../../src/channel/noise/control-psk.js';
import { generateX25519 } from '../../src/kernel/crypto/crypto.js';
import { limits } from '../../src/kernel/limits.js';
import { valueOf } from './noise-parties.js';

export type Said = NonNullable<AgentPayload['payload']>;
export type Answer = NonNullable<ServicePayload['payload']>;

export interface ServerSession {
  readonly index: number;
  /** The agent's end of its connection. */
  readonly peer: string;
  readonly said: Said[];
  send(payload: Answer): void;
  push(snapshot: RuntimeConfigSnapshot): void;
  /** Answers a heartbeat, with the intervals now in force. */
  beat(ackSequence: bigint, secs?: number, metricsSecs?: number, commands?: Command[]): void;
  /** Sends a SessionClose under the session's keys, then the status. */
  close(close: SessionClose, code?: number): void;
  /** Ends the stream with a bare status, without a SessionClose. */
  drop(code?: number): void;
  readonly over: boolean;
}

export interface ControlServerOptions {
  readonly grant?: Partial<SessionGrant>;
  /** How far the service's clock is ahead of this machine's. */
  readonly clockOffsetMs?: number;
  readonly port?: number;
  /** Answers an OpenSession, at once or later. */
  onOpen?(answer: () => void): void;
  onSaid?(said: Said, session: ServerSession): void;
}

export interface ControlServer {
  readonly port: number;
  readonly sessions: ServerSession[];
  readonly config: AgentConfig;
  /** The node's PSK as text. */
  readonly controlPsk: string;
  /** OpenSession calls, refused ones included. */
  opens(): number;
  stop(): Promise<void>;
}

/** A node's PSK as the service would issue it, with the service's key pair. */
interface Issued {
  readonly controlPsk: string;
  readonly service: ReturnType<typeof generateX25519>;
}

export function issuePsk(): Issued {
  const service = generateX25519();
  return { service, controlPsk: encodeControlPsk({ secret: randomBytes(32), servicePublic: service.publicKey }) };
}

export async function startControlServer(
  options: ControlServerOptions = {},
  issued = issuePsk(),
): Promise<ControlServer> {
  const nodeId = 'node-1';
  const keys = valueOf(agentKeysFrom(issued.controlPsk));
  const pending = new Map<string, NoiseSession>();
  const sessions: ServerSession[] = [];
  let opens = 0;

  const service: SecureAgentServiceServer = {
    openSession(call, callback) {
      opens += 1;
      const refuse = (code: number, details: string, metadata = new Metadata()): void =>
        callback({ code, details, metadata });
      const started = respond(
        {
          prologue: controlPrologue(call.request.nodeId),
          psk: keys.psk,
          localStatic: issued.service,
          remoteStatic: keys.nodeStatic.publicKey,
        },
        call.request.handshake,
      );
      if (!started.ok) return refuse(status.UNAUTHENTICATED, 'session refused');
      const serverTime = Date.now() + (options.clockOffsetMs ?? 0);
      const offer = SessionOffer.decode(started.value.payload);
      if (Math.abs(Number(offer.timestampMs) - serverTime) > limits.agent.clockSkewMs) {
        const trailer = new Metadata();
        trailer.set('server-time-ms', String(serverTime));
        return refuse(status.FAILED_PRECONDITION, 'clock skew', trailer);
      }
      const grant = SessionGrant.encode({
        rekeyAfterSecs: 21_600,
        heartbeatIntervalSecs: 10,
        metricsIntervalSecs: 60,
        serverTimeMs: BigInt(serverTime),
        ...options.grant,
      }).finish();
      const finished = valueOf(started.value.finish(grant));
      const sessionId = Buffer.from(sessionIdOf(finished.handshakeHash));
      pending.set(sessionId.toString('hex'), finished);
      const answer = (): void => callback(null, { sessionId, handshake: Buffer.from(finished.message) });
      if (options.onOpen === undefined) answer();
      else options.onOpen(answer);
    },
    control(call) {
      serveControl(call, pending, sessions, options);
    },
  };
  const server = new Server({ 'grpc.max_receive_message_length': limits.agent.grpcMessageBytes });
  server.addService(SecureAgentServiceService, service);
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync(`127.0.0.1:${options.port ?? 0}`, ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });

  return {
    port,
    sessions,
    controlPsk: issued.controlPsk,
    config: {
      nodeId,
      endpoint: { host: '127.0.0.1', port },
      keys,
      rekeyIntervalSeconds: 21_600,
      metrics: undefined,
      rejectUnsupported: true,
      logLevel: 'error',
    },
    opens: () => opens,
    async stop() {
      server.forceShutdown();
    },
  };
}

function serveControl(
  call: ServerDuplexStream<SecureFrame, SecureFrame>,
  pending: Map<string, NoiseSession>,
  sessions: ServerSession[],
  options: ControlServerOptions,
): void {
  const joiner = new Joiner(limits.agent.joinedInBytes);
  let noise: NoiseSession | undefined;
  let over = false;
  const said: Said[] = [];
  const write = (payload: Answer): void => {
    if (noise === undefined || over) return;
    for (const plaintext of splitPayload(ServicePayload.encode({ payload }).finish())) {
      const sequence = noise.send.nextSequence;
      const ciphertext = Buffer.from(valueOf(noise.send.encrypt(sequence, plaintext)));
      call.write({ sessionId: Buffer.alloc(0), sequence: BigInt(sequence), ciphertext });
    }
  };
  const end = (code: number, details: string): void => {
    if (over) return;
    over = true;
    if (code === status.OK) call.end();
    else call.emit('error', { code, details, metadata: new Metadata() });
  };
  const session: ServerSession = {
    index: sessions.length,
    peer: call.getPeer(),
    said,
    send: write,
    push: (value) => write({ $case: 'configUpdate', value: { update: { $case: 'snapshot', value } } }),
    beat(ackSequence, secs = 1, metricsSecs = 60, commands = []) {
      const intervals = { heartbeatIntervalSecs: secs, metricsIntervalSecs: metricsSecs };
      write({ $case: 'heartbeatResponse', value: { ok: true, ackSequence, commands, ...intervals } });
    },
    close(close, code = status.ABORTED) {
      write({ $case: 'close', value: close });
      end(code, 'closed');
    },
    drop: (code = status.UNAVAILABLE) => end(code, 'dropped'),
    get over() {
      return over;
    },
  };
  call.on('error', () => (over = true));
  call.on('cancelled', () => (over = true));
  call.on('end', () => end(status.OK, ''));
  call.on('data', (frame: SecureFrame) => {
    if (over) return;
    if (noise === undefined) {
      const id = frame.sessionId.toString('hex');
      noise = pending.get(id);
      pending.delete(id);
      if (noise === undefined) return end(status.UNAUTHENTICATED, 'session refused');
      sessions.push(session);
    }
    const plaintext = noise.receive.decrypt(frame.sequence, frame.ciphertext);
    if (!plaintext.ok) return end(status.ABORTED, plaintext.error);
    const joined = joiner.push(plaintext.value);
    if (joined.kind === 'refused') return end(status.INVALID_ARGUMENT, joined.reason);
    if (joined.kind === 'more') return;
    const payload = AgentPayload.decode(joined.payload).payload;
    if (payload === undefined) return end(status.INVALID_ARGUMENT, 'empty payload');
    said.push(payload);
    options.onSaid?.(payload, session);
    if (payload.$case === 'close') end(status.OK, '');
  });
}
