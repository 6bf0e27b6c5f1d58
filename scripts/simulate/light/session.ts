/**
 * A session of a light agent: OpenSession with the real handshake, then payloads as encrypted frames on the Control
 * stream. The agent (`agent.ts`) decides when to open one, what to send and how to react. Implements the agent's side
 * of `docs/contract/agent-protocol.md#opensession` and `docs/contract/agent-protocol.md#control`.
 */
import { randomBytes } from 'node:crypto';
import { SecureAgentServiceService } from '../../../src/gen/svc/control/v1/secure_agent_service.js';
import {
  AgentPayload,
  OpenSessionRequest,
  OpenSessionResponse,
  SecureFrame,
  SessionGrant,
  SessionOffer,
} from '../../../src/gen/svc/control/v1/session.js';
import type { StreamEnd } from '../../../src/agent/control/stream.js';
import { agentVersion } from '../../../src/agent/agent.js';
import { GrpcStatus, errorText } from '../../../src/kernel/errors.js';
import { limits } from '../../../src/kernel/limits.js';
import { createJoiner, splitPayload } from '../../../src/channel/noise/fragmenter.js';
import { controlPrologue, initiate, sessionIdOf } from '../../../src/channel/noise/handshake.js';
import type { NoiseSession } from '../../../src/channel/noise/handshake.js';
import type { AgentKeys } from '../../../src/channel/noise/control-psk.js';
import type { Call, Connection } from './connection.js';
import { readServicePayload } from './payloads.js';
import type { Heard } from './payloads.js';

export interface LightIdentity {
  readonly nodeId: string;
  readonly keys: AgentKeys;
}

type Heardable = Exclude<Heard, { readonly kind: 'close' | 'unknown' }>;

export interface SessionHandlers {
  /** Any payload but SessionClose. */
  onHeard(heard: Heardable): void;
  /** Called once. */
  onEnd(end: StreamEnd): void;
}

export interface LightSession {
  readonly grant: SessionGrant;
  /** Opens the Control stream. Called once. */
  attach(handlers: SessionHandlers): void;
  say(payload: NonNullable<AgentPayload['payload']>): void;
  /** Sends an already encoded AgentPayload. */
  sayBytes(payload: Uint8Array): void;
  /** Half-closes the stream; the service then ends it. */
  halfClose(): void;
}

interface Refusal {
  /** Undefined if the connection was lost before an answer. */
  readonly status: number | undefined;
  readonly detail: string;
  readonly serverTimeMs: number | undefined;
}

interface OpenAnswer {
  opened(session: LightSession): void;
  refused(refusal: Refusal): void;
}

const empty = Buffer.alloc(0);
const asBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);

/**
 * Opens a session on the connection. Exactly one of the two callbacks is called.
 * @param now the service's time as the agent knows it, in Unix milliseconds
 */
export function openSession(connection: Connection, identity: LightIdentity, now: number, answer: OpenAnswer): void {
  const { nodeId, keys } = identity;
  const refuse = (status: number | undefined, detail: string, serverTimeMs?: number): void =>
    answer.refused({ status, detail, serverTimeMs });
  const party = {
    prologue: controlPrologue(nodeId),
    psk: keys.psk,
    localStatic: keys.nodeStatic,
    remoteStatic: keys.servicePublic,
  };
  const offer = { timestampMs: BigInt(Math.round(now)), nonce: randomBytes(limits.agent.nonceBytes), agentVersion };
  const initiated = initiate(party, SessionOffer.encode(offer).finish());
  if (!initiated.ok) return refuse(GrpcStatus.INTERNAL, `handshake: ${initiated.error}`);
  let opened: LightSession | undefined;
  let fault = 'the service did not answer OpenSession';
  const call = connection.call(SecureAgentServiceService.openSession.path, {
    onMessage(message) {
      try {
        const response = OpenSessionResponse.decode(message);
        const finished = initiated.value.finish(response.handshake);
        if (!finished.ok) throw new Error(finished.error);
        const sessionId = sessionIdOf(finished.value.handshakeHash);
        if (!response.sessionId.equals(sessionId)) throw new Error('a session id that does not match the handshake');
        opened = sessionOn(connection, finished.value, asBuffer(sessionId));
      } catch (error) {
        fault = `unusable answer to OpenSession: ${errorText(error)}`;
      }
    },
    onEnd({ status, serverTimeMs, detail }) {
      if (status === GrpcStatus.OK && opened !== undefined) return answer.opened(opened);
      initiated.value.discard();
      refuse(status, status === GrpcStatus.OK ? fault : detail, serverTimeMs);
    },
  });
  const request = {
    nodeId,
    protocolVersion: limits.agent.protocolVersion,
    handshake: asBuffer(initiated.value.message),
  };
  call.send(OpenSessionRequest.encode(request).finish());
  call.halfClose();
}

function sessionOn(
  connection: Connection,
  noise: NoiseSession & { readonly payload: Uint8Array },
  sessionId: Buffer,
): LightSession {
  const joiner = createJoiner(limits.agent.joinedOutBytes);
  let call: Call | undefined;
  let attached = false;
  let over = false;

  const sayBytes = (payload: Uint8Array): void => {
    if (over || call === undefined) return;
    for (const plaintext of splitPayload(payload)) {
      const sequence = noise.send.nextSequence;
      const encrypted = noise.send.encrypt(sequence, plaintext);
      if (!encrypted.ok) return connection.destroy(`encryption: ${encrypted.error}`);
      const frame = {
        sessionId: attached ? empty : sessionId,
        sequence: BigInt(sequence),
        ciphertext: asBuffer(encrypted.value),
      };
      attached = true;
      call.send(SecureFrame.encode(frame).finish());
    }
  };

  /** The payload that a frame completes; undefined if more fragments follow. @throws Error for an invalid frame */
  const read = (message: Buffer): Heard | undefined => {
    const frame = SecureFrame.decode(message);
    const plaintext = noise.receive.decrypt(frame.sequence, frame.ciphertext);
    if (!plaintext.ok) throw new Error(`frame refused: ${plaintext.error}`);
    const joined = joiner.push(plaintext.value, 0);
    if (joined.kind === 'refused') throw new Error(`fragment refused: ${joined.reason}`);
    return joined.kind === 'payload' ? readServicePayload(joined.payload) : undefined;
  };

  return {
    grant: SessionGrant.decode(noise.payload),
    attach(handlers) {
      const finish = (end: StreamEnd): void => {
        if (over) return;
        over = true;
        joiner.discard();
        noise.send.wipe();
        noise.receive.wipe();
        handlers.onEnd(end);
      };
      call = connection.call(SecureAgentServiceService.control.path, {
        onMessage(message) {
          if (over) return;
          let heard: Heard | undefined;
          try {
            heard = read(message);
          } catch (error) {
            return connection.destroy(errorText(error));
          }
          if (heard === undefined || heard.kind === 'unknown') return;
          if (heard.kind === 'close') finish({ kind: 'closed', close: heard.value });
          else handlers.onHeard(heard);
        },
        onEnd: ({ detail }) => finish({ kind: 'lost', detail }),
      });
    },
    say: (payload) => sayBytes(AgentPayload.encode({ payload }).finish()),
    sayBytes,
    halfClose: () => call?.halfClose(),
  };
}
