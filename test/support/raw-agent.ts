/**
 * An agent that does nothing by itself: the test chooses every byte that it sends. Real gRPC, the Noise of `src/noise`.
 */
import {
  Client,
  Metadata,
  credentials,
  status as grpcStatus,
  type ClientDuplexStream,
  type StatusObject,
} from '@grpc/grpc-js';
import { randomBytes } from 'node:crypto';
import type { HeartbeatRequest } from '../../src/gen/svc/control/v1/heartbeat.js';
import { SecureAgentServiceService } from '../../src/gen/svc/control/v1/secure_agent_service.js';
import {
  AgentPayload,
  OpenSessionRequest,
  OpenSessionResponse,
  SecureFrame,
  ServicePayload,
  SessionGrant,
  SessionOffer,
  type AgentHello,
  type SessionClose,
} from '../../src/gen/svc/control/v1/session.js';
import { Joiner, splitPayload } from '../../src/channel/noise/fragmenter.js';
import { controlPrologue, initiate, type NoiseSession } from '../../src/channel/noise/handshake.js';
import { agentKeysFrom } from '../../src/channel/noise/control-psk.js';
import { eventually } from './eventually.js';
import { valueOf } from './noise-parties.js';

export type Sayable = NonNullable<AgentPayload['payload']>;
type Heard = NonNullable<ServicePayload['payload']>;

interface OpenChoices {
  readonly protocolVersion?: number;
  readonly timestampMs?: number;
  readonly nonce?: Buffer;
  /** Instead of an encoded SessionOffer. */
  readonly offer?: Uint8Array;
  readonly handshake?: Buffer;
  /** Instead of an encoded OpenSessionRequest. */
  readonly request?: Buffer;
}

export interface Refused {
  readonly code: number;
  readonly details: string;
  readonly metadata: Metadata;
}

export interface Opened {
  readonly sessionId: Buffer;
  readonly noise: NoiseSession;
  readonly grant: SessionGrant;
  /** Message 1, as it was sent. */
  readonly handshake: Buffer;
}

export interface RawStream {
  readonly heard: Heard[];
  readonly call: ClientDuplexStream<Buffer, Buffer>;
  say(payload: Sayable): void;
  /** Says a heartbeat, and waits until one thing more was heard. */
  beat(sequence: number): Promise<void>;
  /** Sends any bytes as a payload, split into fragments. */
  sayBytes(payload: Uint8Array): void;
  /** Sends one plaintext, fragment byte included, encrypted with the next sequence. */
  sayFragment(plaintext: Uint8Array): void;
  /** Sends a frame as given. */
  sendFrame(frame: Partial<SecureFrame>): void;
  sendBytes(bytes: Buffer): void;
  /** Encrypts the next plaintext without sending it. */
  seal(plaintext: Uint8Array): SecureFrame;
  halfClose(): void;
  /** Stops reading, so that the service's window fills. */
  stopReading(): void;
  resumeReading(): void;
  readonly status: Promise<StatusObject>;
  /** The service's encrypted SessionClose, if it sent one. */
  closeHeard(): SessionClose | undefined;
  /** The generations of the snapshots received, in order. */
  generationsHeard(): bigint[];
}

export interface RawAgent {
  readonly nodeId: string;
  open(choices?: OpenChoices): Promise<Opened | Refused>;
  /** Opens a session; fails the test if it is refused. */
  session(): Promise<Opened>;
  attach(opened: Opened): RawStream;
  /** Opens a stream without a session. */
  bare(): ClientDuplexStream<Buffer, Buffer>;
  /** Opens a session, attaches it and says hello. */
  connect(hello?: Partial<AgentHello>): Promise<RawStream & { readonly opened: Opened }>;
  unary(path: string, request: Buffer): Promise<Buffer | Refused>;
  disconnect(): void;
}

export function isRefused(answer: object): answer is Refused {
  return 'code' in answer;
}

export const codeOf = (answer: Opened | Refused | Buffer): number => (isRefused(answer) ? answer.code : grpcStatus.OK);

export function helloOf(partial: Partial<AgentHello> = {}): Sayable {
  const value = {
    nodeId: '',
    publicIpv4: '',
    publicIpv6: '',
    agentVersion: 'raw/1',
    multiplex: false,
    multiplexPort: 0,
    detectedAddresses: [],
    features: [],
    processId: Buffer.alloc(0),
    ...partial,
  };
  return { $case: 'hello', value };
}

export function heartbeatOf(sequence: number, partial: Partial<HeartbeatRequest> = {}): Sayable {
  return {
    $case: 'heartbeat',
    value: {
      nodeId: '',
      sequence: BigInt(sequence),
      timestamp: undefined,
      cpuUsage: 0.5,
      memoryUsage: 0.25,
      uptimeSeconds: 7n,
      linkMetrics: [],
      runtimeListeners: [],
      ...partial,
    },
  };
}

export function configRequestOf(version: bigint, checksum = Buffer.alloc(0)): Sayable {
  return { $case: 'configRequest', value: { nodeId: '', configVersion: version, checksum } };
}

const pass = (bytes: Buffer): Buffer => bytes;

export function createRawAgent(
  target: { readonly host: string; readonly port: number; readonly clock: { now(): number } },
  nodeId: string,
  controlPsk: string,
): RawAgent {
  const keys = valueOf(agentKeysFrom(controlPsk));
  const party = {
    prologue: controlPrologue(nodeId),
    psk: keys.psk,
    localStatic: keys.nodeStatic,
    remoteStatic: keys.servicePublic,
  };
  const client = new Client(`${target.host}:${target.port}`, credentials.createInsecure(), {
    'grpc.use_local_subchannel_pool': 1,
    'grpc.enable_retries': 0,
    'grpc.enable_http_proxy': 0,
    'grpc.max_send_message_length': -1,
  });

  const unary = (path: string, request: Buffer): Promise<Buffer | Refused> =>
    new Promise((resolve) => {
      client.makeUnaryRequest(path, pass, pass, request, new Metadata(), (error, response) => {
        resolve(error ?? response ?? Buffer.alloc(0));
      });
    });

  const open = async (choices: OpenChoices = {}): Promise<Opened | Refused> => {
    const offer =
      choices.offer ??
      SessionOffer.encode({
        timestampMs: BigInt(Math.round(choices.timestampMs ?? target.clock.now())),
        nonce: choices.nonce ?? randomBytes(16),
        agentVersion: 'raw/1',
      }).finish();
    const initiated = valueOf(initiate(party, offer));
    const handshake = choices.handshake ?? Buffer.from(initiated.message);
    const request =
      choices.request ??
      Buffer.from(
        OpenSessionRequest.encode({ nodeId, protocolVersion: choices.protocolVersion ?? 1, handshake }).finish(),
      );
    const answer = await unary(SecureAgentServiceService.openSession.path, request);
    if (isRefused(answer)) return answer;
    const response = OpenSessionResponse.decode(answer);
    const noise = valueOf(initiated.finish(response.handshake));
    return { sessionId: response.sessionId, noise, grant: SessionGrant.decode(noise.payload), handshake };
  };

  const bare = (): ClientDuplexStream<Buffer, Buffer> => {
    const call = client.makeBidiStreamRequest(SecureAgentServiceService.control.path, pass, pass);
    call.on('error', () => undefined);
    return call;
  };

  const attach = (opened: Opened): RawStream => {
    const call = bare();
    const heard: Heard[] = [];
    const joiner = new Joiner(16 * 1024 * 1024);
    let named = false;
    call.on('data', (bytes: Buffer) => {
      const frame = SecureFrame.decode(bytes);
      const plaintext = valueOf(opened.noise.receive.decrypt(frame.sequence, frame.ciphertext));
      const joined = joiner.push(plaintext);
      if (joined.kind === 'refused') throw new Error(joined.reason);
      if (joined.kind === 'more') return;
      const { payload } = ServicePayload.decode(joined.payload);
      if (payload !== undefined) heard.push(payload);
    });
    const status = new Promise<StatusObject>((resolve) => call.on('status', resolve));
    const seal = (plaintext: Uint8Array): SecureFrame => {
      const sequence = opened.noise.send.nextSequence;
      const ciphertext = Buffer.from(valueOf(opened.noise.send.encrypt(sequence, plaintext)));
      const sessionId = named ? Buffer.alloc(0) : opened.sessionId;
      named = true;
      return { sessionId, sequence: BigInt(sequence), ciphertext };
    };
    const sendBytes = (bytes: Buffer): void => void call.write(bytes);
    const send = (frame: SecureFrame): void => sendBytes(Buffer.from(SecureFrame.encode(frame).finish()));
    const sayBytes = (payload: Uint8Array): void => {
      for (const plaintext of splitPayload(payload)) send(seal(plaintext));
    };
    const say = (payload: Sayable): void => sayBytes(AgentPayload.encode({ payload }).finish());
    return {
      heard,
      call,
      say,
      async beat(sequence) {
        const before = heard.length;
        say(heartbeatOf(sequence));
        await eventually(() => heard.length).toBe(before + 1);
      },
      sayBytes,
      sayFragment: (plaintext) => send(seal(plaintext)),
      sendFrame: (frame) => send({ sessionId: Buffer.alloc(0), sequence: 0n, ciphertext: Buffer.alloc(0), ...frame }),
      sendBytes,
      seal,
      halfClose: () => void call.end(),
      stopReading: () => void call.pause(),
      resumeReading: () => void call.resume(),
      status,
      closeHeard() {
        const last = heard.at(-1);
        return last?.$case === 'close' ? last.value : undefined;
      },
      generationsHeard: () =>
        heard.flatMap((payload) =>
          payload.$case === 'configUpdate' && payload.value.update?.$case === 'snapshot'
            ? [payload.value.update.value.generation]
            : [],
        ),
    };
  };

  const session = async (): Promise<Opened> => {
    const answer = await open();
    if (isRefused(answer)) throw new Error(`OpenSession was refused: ${answer.code} ${answer.details}`);
    return answer;
  };

  return {
    nodeId,
    open,
    session,
    attach,
    bare,
    async connect(hello) {
      const opened = await session();
      const stream = attach(opened);
      stream.say(helloOf(hello));
      return { ...stream, opened };
    },
    unary,
    disconnect: () => client.close(),
  };
}
