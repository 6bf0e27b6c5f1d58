/**
 * The handshake of OpenSession without its transport, for the agent and for simulated ones. Implements the agent's side of
 * `docs/contract/agent-protocol.md#opensession`.
 */
import { randomBytes } from 'node:crypto';
import type { AgentKeys } from '../../channel/noise/control-psk.js';
import { controlPrologue, initiate, sessionIdOf, type NoiseSession } from '../../channel/noise/handshake.js';
import {
  SessionGrant,
  SessionOffer,
  type OpenSessionRequest,
  type OpenSessionResponse,
} from '../../gen/svc/control/v1/session.js';
import { GrpcStatus } from '../../kernel/errors.js';
import { limits } from '../../kernel/limits.js';
import { err, ok, type Result } from '../../kernel/result.js';

export interface Identity {
  readonly nodeId: string;
  readonly keys: AgentKeys;
  readonly agentVersion: string;
}

/** Why a session was refused. The agent never treats it as final, because a refusal is not authenticated. */
export interface OpenRefusal {
  readonly status: number;
  readonly detail: string;
}

export interface Opened {
  readonly noise: NoiseSession;
  readonly sessionId: Buffer;
  readonly grant: SessionGrant;
}

/** One of `finish` and `discard` is called, once. */
export interface Opening {
  readonly request: OpenSessionRequest;
  finish(answer: OpenSessionResponse): Result<Opened, OpenRefusal>;
  discard(): void;
}

/** @param now the service's time as the agent knows it, in Unix milliseconds */
export function beginOpening({ nodeId, keys, agentVersion }: Identity, now: number): Result<Opening, OpenRefusal> {
  const party = {
    prologue: controlPrologue(nodeId),
    psk: keys.psk,
    localStatic: keys.nodeStatic,
    remoteStatic: keys.servicePublic,
  };
  const offer = SessionOffer.encode({
    timestampMs: BigInt(Math.max(0, Math.round(now))),
    nonce: randomBytes(limits.agent.nonceBytes),
    agentVersion,
  }).finish();
  const initiated = initiate(party, offer);
  if (!initiated.ok) return err({ status: GrpcStatus.INTERNAL, detail: `handshake: ${initiated.error}` });
  const { message, finish, discard } = initiated.value;
  return ok({
    request: { nodeId, protocolVersion: limits.agent.protocolVersion, handshake: Buffer.from(message) },
    finish(answer) {
      const finished = finish(answer.handshake);
      if (!finished.ok) {
        const detail = `the service failed to authenticate: ${finished.error}`;
        return err({ status: GrpcStatus.UNAUTHENTICATED, detail });
      }
      const noise = finished.value;
      const sessionId = Buffer.from(sessionIdOf(noise.handshakeHash));
      const grant = decodeGrant(noise.payload);
      if (grant !== undefined && answer.sessionId.equals(sessionId)) return ok({ noise, sessionId, grant });
      wipe(noise);
      const detail = 'the grant does not parse, or the session id does not match the handshake hash';
      return err({ status: GrpcStatus.INTERNAL, detail });
    },
    discard,
  });
}

export function wipe(noise: NoiseSession): void {
  noise.send.wipe();
  noise.receive.wipe();
}

function decodeGrant(bytes: Uint8Array): SessionGrant | undefined {
  try {
    return SessionGrant.decode(bytes);
  } catch {
    return undefined;
  }
}
