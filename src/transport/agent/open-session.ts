/**
 * OpenSession: admission, the handshake, and what an authenticated offer still has to pass (clock, replay, the node's
 * budget). Gives a pending session; attaching it is `service.ts`. Says the same after the same work to an unknown node,
 * a wrong PSK and a deleted node. Implements `docs/contract/agent-protocol.md#opensession`, row by row.
 */
import type { Delivery } from '../../delivery/port.js';
import {
  OpenSessionRequest,
  OpenSessionResponse,
  SessionGrant,
  SessionOffer,
} from '../../gen/svc/control/v1/session.js';
import { yieldToEventLoop } from '../../kernel/background.js';
import type { Clock } from '../../kernel/clock.js';
import { GrpcStatus, errorText } from '../../kernel/errors.js';
import type { GrpcStatusCode } from '../../kernel/errors.js';
import { limits } from '../../kernel/limits.js';
import type { Logger } from '../../kernel/logger.js';
import { controlPrologue, respond, sessionIdOf } from '../../noise/handshake.js';
import type { Responded } from '../../noise/handshake.js';
import { importX25519Public } from '../../noise/keys.js';
import type { X25519KeyPair } from '../../noise/keys.js';
import type { OpenedVerifier, PskVerifier } from '../../security/psk.js';
import type { AddressBudget } from './admission/address-budget.js';
import type { HandshakeGate } from './admission/handshake-gate.js';
import type { NodeBudget } from './admission/node-budget.js';
import type { PendingTable } from './admission/pending-table.js';
import type { ReplayCache } from './admission/replay-cache.js';
import type { AgentConnection } from './agent-stream.js';
import { createDecoy } from './decoy.js';
import type { OpenAnswer } from './grpc-server.js';
import { toldBy } from './agent-intervals.js';
import { checkShape } from './wire-scan.js';

export type SealedVerifier = NonNullable<ReturnType<Delivery['verifier']>>;

export interface OpenSessionDeps {
  readonly delivery: Pick<Delivery, 'verifier' | 'settings'>;
  /** Opens a node's sealed verifier. @throws when the store of data keys is out of reach */
  openVerifier(nodeId: string, sealed: SealedVerifier): Promise<OpenedVerifier>;
  readonly serviceStatic: X25519KeyPair;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly addresses: AddressBudget;
  readonly nodes: NodeBudget;
  readonly gate: HandshakeGate;
  readonly replays: ReplayCache;
  readonly pending: PendingTable;
  readonly rekeySeconds: number;
  /** How long admission may be delayed in all, in milliseconds. */
  readonly admissionDelayMs: number;
  /** Sessions are not served now. */
  draining(): boolean;
  /** Each answered call, by outcome. */
  count(outcome: string): void;
}

export type OpenSession = (
  bytes: Uint8Array,
  connection: AgentConnection,
  cancelled: () => boolean,
) => Promise<OpenAnswer>;

interface Refusal {
  readonly outcome: string;
  readonly code: GrpcStatusCode;
  readonly details: string;
  readonly trailers?: { readonly [name: string]: string };
}

/** What came of a handshake; `addressFault` tells whether it stays on the bill of the source address. */
type Shaken =
  | { readonly ok: true; readonly response: Uint8Array }
  | { readonly ok: false; readonly refusal: Refusal; readonly addressFault: boolean };

/** The one answer to everything that did not authenticate. */
const refused: Refusal = { outcome: 'refused', code: GrpcStatus.UNAUTHENTICATED, details: 'session refused' };
const overBudget = (outcome: string): Refusal => ({
  outcome,
  code: GrpcStatus.RESOURCE_EXHAUSTED,
  details: 'too many sessions are being opened',
});
const unavailable: Refusal = {
  outcome: 'draining',
  code: GrpcStatus.UNAVAILABLE,
  details: 'this instance can not serve now',
};
const gone: Refusal = { outcome: 'cancelled', code: GrpcStatus.UNAVAILABLE, details: 'connection closed' };

const agent = limits.agent;

export function createOpenSession(deps: OpenSessionDeps): OpenSession {
  const { clock, delivery, logger } = deps;
  const decoy = createDecoy();

  const verifierOf = async (nodeId: string, sealed: SealedVerifier | undefined): Promise<PskVerifier> => {
    if (sealed === undefined) return decoy.open();
    const opened = await deps.openVerifier(nodeId, sealed);
    if (opened.kind === 'opened') return opened.verifier;
    if (opened.kind === 'refused')
      logger.error({ node_id: nodeId, reason: opened.reason }, 'a PSK verifier can not be opened');
    return decoy.open();
  };

  /** The part that costs processor time, in one go. */
  const shake = (
    request: OpenSessionRequest,
    sealed: SealedVerifier | undefined,
    verifier: PskVerifier,
    connection: AgentConnection,
  ): Shaken => {
    const fault = (refusal: Refusal, addressFault = true): Shaken => ({ ok: false, refusal, addressFault });
    const responded = respond(
      {
        prologue: controlPrologue(request.nodeId),
        psk: verifier.psk,
        localStatic: deps.serviceStatic,
        remoteStatic: importX25519Public(verifier.nodeStaticPublic),
      },
      request.handshake,
    );
    if (!responded.ok) return fault(refused);
    const handshake = responded.value;
    const answer = judge(request, sealed, handshake, connection);
    if (!answer.ok) handshake.discard();
    return answer;
  };

  const judge = (
    request: OpenSessionRequest,
    sealed: SealedVerifier | undefined,
    handshake: Responded,
    connection: AgentConnection,
  ): Shaken => {
    const fault = (refusal: Refusal, addressFault: boolean): Shaken => ({ ok: false, refusal, addressFault });
    const offer = readOffer(handshake.payload);
    if (offer === undefined || offer.nonce.length !== agent.nonceBytes) return fault(refused, true);
    const now = clock.now();
    const timestampMs = Number(offer.timestampMs);
    if (Math.abs(timestampMs - now) > agent.clockSkewMs) return fault(skewed(now), true);
    const seen = deps.replays.note(request.handshake, timestampMs, now);
    if (seen === 'replayed') return fault({ ...refused, outcome: 'replayed' }, true);
    if (seen === 'full') return fault(overBudget('replay_cache_full'), false);
    if (!deps.nodes.charge(request.nodeId)) return fault(overBudget('node_budget'), false);
    // The PSK may have been replaced while the verifier was opened.
    if (!sameVerifier(delivery.verifier(request.nodeId), sealed)) return fault(refused, false);
    if (connection.closed) return fault(gone, false);
    return { ok: true, response: openPending(request, handshake, connection, now) };
  };

  const openPending = (
    request: OpenSessionRequest,
    handshake: Responded,
    connection: AgentConnection,
    now: number,
  ): Uint8Array => {
    const told = toldBy(delivery.settings());
    const grant = SessionGrant.encode({
      rekeyAfterSecs: deps.rekeySeconds,
      heartbeatIntervalSecs: told.heartbeatSecs,
      metricsIntervalSecs: told.metricsSecs,
      serverTimeMs: BigInt(Math.round(now)),
    }).finish();
    const finished = handshake.finish(grant);
    // Only a handshake that has ended fails, and this one has just begun.
    if (!finished.ok) throw new Error(`handshake: ${finished.error}`);
    const { message, handshakeHash } = finished.value;
    const sessionId = sessionIdOf(handshakeHash);
    const id = Buffer.from(sessionId).toString('hex');
    const openedAt = clock.monotonic();
    deps.pending.add({ nodeId: request.nodeId, sessionId, id, connection, noise: finished.value, openedAt, told });
    return OpenSessionResponse.encode({ sessionId: Buffer.from(sessionId), handshake: Buffer.from(message) }).finish();
  };

  const admitted = async (
    request: OpenSessionRequest,
    connection: AgentConnection,
    cancelled: () => boolean,
  ): Promise<Shaken> => {
    const began = clock.monotonic();
    const charge = await deps.addresses.charge(connection.remoteAddress, deps.admissionDelayMs);
    if (charge === undefined) return { ok: false, refusal: overBudget('address_budget'), addressFault: true };
    const left = deps.admissionDelayMs - (clock.monotonic() - began);
    const place = await deps.gate.enter(left);
    if (place === undefined) {
      charge.refund();
      return { ok: false, refusal: overBudget('admission'), addressFault: false };
    }
    let cpuMs = 0;
    try {
      const shaken = await handshake(request, connection, cancelled, (cost) => {
        cpuMs = cost;
      });
      if (shaken.ok || !shaken.addressFault) charge.refund();
      return shaken;
    } catch (error) {
      charge.refund();
      logger.warn({ error: errorText(error) }, 'a handshake could not be served');
      return { ok: false, refusal: unavailable, addressFault: false };
    } finally {
      place.leave(cpuMs);
    }
  };

  const handshake = async (
    request: OpenSessionRequest,
    connection: AgentConnection,
    cancelled: () => boolean,
    onCost: (milliseconds: number) => void,
  ): Promise<Shaken> => {
    // Known or not, the work begins in a turn of its own: the time to the answer tells nothing.
    await yieldToEventLoop();
    if (cancelled()) return { ok: false, refusal: gone, addressFault: false };
    const sealed = delivery.verifier(request.nodeId);
    const verifier = await verifierOf(request.nodeId, sealed);
    const began = clock.monotonic();
    try {
      return shake(request, sealed, verifier, connection);
    } finally {
      onCost(clock.monotonic() - began);
    }
  };

  return async (bytes, connection, cancelled) => {
    const read = readRequest(bytes);
    const shaken: Shaken =
      'code' in read
        ? { ok: false, refusal: read, addressFault: false }
        : deps.draining()
          ? { ok: false, refusal: unavailable, addressFault: false }
          : await admitted(read, connection, cancelled);
    if (shaken.ok) {
      deps.count('ok');
      return shaken;
    }
    const { outcome, code, details, trailers } = shaken.refusal;
    deps.count(outcome);
    return { ok: false, status: { code, details }, ...(trailers === undefined ? {} : { trailers }) };
  };
}

/** What the request alone tells, in the order of the contract. */
function readRequest(bytes: Uint8Array): OpenSessionRequest | Refusal {
  const malformed = (details: string): Refusal => ({
    outcome: 'malformed',
    code: GrpcStatus.INVALID_ARGUMENT,
    details,
  });
  let request: OpenSessionRequest;
  try {
    if (checkShape(bytes, {}) !== 'fits') return malformed('request does not parse');
    request = OpenSessionRequest.decode(bytes);
  } catch {
    return malformed('request does not parse');
  }
  if (request.protocolVersion !== agent.protocolVersion) {
    return {
      outcome: 'protocol_version',
      code: GrpcStatus.FAILED_PRECONDITION,
      details: `protocol_version: expected ${agent.protocolVersion}`,
    };
  }
  const { min, max } = agent.handshakeBytes;
  if (request.handshake.length < min || request.handshake.length > max) {
    return malformed(`handshake: expected ${min} to ${max} bytes, got ${request.handshake.length}`);
  }
  return request;
}

function readOffer(bytes: Uint8Array): SessionOffer | undefined {
  try {
    return checkShape(bytes, {}) === 'fits' ? SessionOffer.decode(bytes) : undefined;
  } catch {
    return undefined;
  }
}

function skewed(nowMs: number): Refusal {
  return {
    outcome: 'skewed',
    code: GrpcStatus.FAILED_PRECONDITION,
    details: 'the clock of the agent is more than 120 s off',
    trailers: { 'server-time-ms': String(Math.round(nowMs)) },
  };
}

function sameVerifier(a: SealedVerifier | undefined, b: SealedVerifier | undefined): boolean {
  return a?.key_id === b?.key_id && a?.nonce === b?.nonce && a?.ct === b?.ct;
}
