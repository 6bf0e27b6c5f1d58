/**
 * A session of a light agent: OpenSession with the real handshake, then payloads as encrypted frames on the Control
 * stream. The agent (`agent.ts`) decides when to open one, what to send and how to react. Implements the agent's side
 * of `docs/contract/agent-protocol.md#opensession` and `docs/contract/agent-protocol.md#control`.
 */
import { SecureAgentServiceService } from '../../../src/gen/svc/control/v1/secure_agent_service.js';
import {
  AgentPayload,
  OpenSessionRequest,
  OpenSessionResponse,
  SecureFrame,
  type SessionGrant,
} from '../../../src/gen/svc/control/v1/session.js';
import {
  beginOpening,
  wipe,
  type Identity,
  type Opened,
  type OpenRefusal,
} from '../../../src/agent/control/opening.js';
import type { StreamEnd } from '../../../src/agent/control/stream.js';
import { agentVersion } from '../../../src/agent/agent.js';
import { GrpcStatus, errorText } from '../../../src/kernel/errors.js';
import { limits } from '../../../src/kernel/limits.js';
import { err, type Result } from '../../../src/kernel/result.js';
import { Joiner, splitPayload } from '../../../src/channel/noise/fragmenter.js';
import type { Call, Connection } from './connection.js';
import { readServicePayload, type Heard } from './payloads.js';

export type LightIdentity = Omit<Identity, 'agentVersion'>;

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
  const opening = beginOpening({ ...identity, agentVersion }, now);
  if (!opening.ok) return answer.refused({ ...opening.error, serverTimeMs: undefined });
  const { request, finish, discard } = opening.value;
  let finished: Result<Opened, OpenRefusal> | undefined;
  const call = connection.call(SecureAgentServiceService.openSession.path, {
    onMessage(message) {
      try {
        finished ??= finish(OpenSessionResponse.decode(message));
      } catch (error) {
        finished = err({ status: GrpcStatus.INTERNAL, detail: errorText(error) });
      }
    },
    onEnd({ status, serverTimeMs, detail }) {
      if (finished?.ok === true) return answer.opened(sessionOn(connection, finished.value));
      if (finished === undefined) discard();
      answer.refused({ status, detail, ...finished?.error, serverTimeMs });
    },
  });
  call.send(OpenSessionRequest.encode(request).finish());
  call.halfClose();
}

function sessionOn(connection: Connection, { noise, sessionId, grant }: Opened): LightSession {
  const joiner = new Joiner(limits.agent.joinedOutBytes);
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
    const joined = joiner.push(plaintext.value);
    if (joined.kind === 'refused') throw new Error(`fragment refused: ${joined.reason}`);
    return joined.kind === 'payload' ? readServicePayload(joined.payload) : undefined;
  };

  return {
    grant,
    attach(handlers) {
      const finish = (end: StreamEnd): void => {
        if (over) return;
        over = true;
        joiner.discard();
        wipe(noise);
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
