/**
 * OpenSession: admission, the handshake, and the checks of an authenticated offer (clock, replay, the node's budget).
 * The result is a pending session, which `control.ts` attaches to a stream. An unknown node, a wrong PSK and a deleted
 * node get the same answer after the same work. A join token counts as a node here. Implements
 * `docs/contract/agent-protocol.md#opensession` and `docs/contract/joining.md#join-tokens`.
 */
import { randomBytes } from 'node:crypto';
import type { AcceptedPsk, Delivery } from '../../delivery/port.js';
import {
  OpenSessionRequest,
  OpenSessionResponse,
  SessionGrant,
  SessionOffer,
} from '../../gen/svc/control/v1/session.js';
import { withDeadline, yieldToEventLoop } from '../../kernel/background.js';
import type { Clock } from '../../kernel/clock.js';
import { GrpcStatus, errorText, type GrpcStatusCode } from '../../kernel/errors.js';
import { joinTokenIn } from '../../kernel/ids.js';
import { limits } from '../../kernel/limits.js';
import type { SampledLog } from '../../kernel/sampled-log.js';
import type { SeenOnce } from '../../kernel/seen-once.js';
import { controlPrologue, respond, sessionIdOf, type Responded } from '../../channel/noise/handshake.js';
import { generateX25519, type X25519KeyPair } from '../../kernel/crypto/crypto.js';
import { createDummyVerifier, type OpenedVerifier, type PskVerifier } from '../../security/psk.js';
import type { AddressBudget, ChargeNode, ProvenPairs } from './admission/budgets.js';
import type { HandshakeGate } from './admission/handshake-gate.js';
import type { PendingTable } from './admission/pending-table.js';
import type { AgentConnection } from '../listener/connection.js';
import { intervalsOf } from './heartbeats.js';
import { closeReasons } from './close-reasons.js';
import type { OpenAnswer, OpenCall } from './grpc-server.js';
import { decodeStrictly } from './wire-scan.js';
import { openWith, sealWith } from '../../security/sealing.js';
import type { ServiceKeys } from '../../security/service-keys.js';

interface OpenSessionDeps {
  readonly delivery: Pick<Delivery, 'psks' | 'pskTries' | 'settings' | 'atHead'>;
  /** Opens a node's sealed verifier. */
  openVerifier(nodeId: string, sealed: AcceptedPsk['verifier']): OpenedVerifier;
  readonly serviceKeys: Pick<ServiceKeys, 'pairOf'>;
  readonly clock: Clock;
  readonly refusals: Pick<SampledLog, 'note'>;
  readonly addresses: AddressBudget;
  readonly provenPairs: Pick<ProvenPairs, 'take'>;
  readonly chargeNode: ChargeNode;
  readonly gate: HandshakeGate;
  /** Every authenticated message 1, until the check of its clock refuses it. One memory per instance. */
  readonly replays: SeenOnce;
  readonly pending: PendingTable;
  readonly rekeySeconds: number;
  /** How long admission may take in total, in milliseconds. */
  readonly admissionDelayMs: number;
  /** True while no new sessions are accepted. */
  draining(): boolean;
  /** Counts an answered call by its outcome. */
  count(outcome: string): void;
}

export type OpenSession = (bytes: Uint8Array, call: OpenCall) => Promise<OpenAnswer>;

interface Refusal {
  readonly outcome: string;
  readonly code: GrpcStatusCode;
  readonly details: string;
  readonly trailers?: { readonly [name: string]: string };
}

/** The result of a call; `addressFault`: the failure counts against the source address. */
type OpenResult =
  | { readonly ok: true; readonly response: Uint8Array }
  | { readonly ok: false; readonly refusal: Refusal; readonly addressFault: boolean };

/** The answer to any call that does not authenticate. */
const refused: Refusal = { outcome: 'refused', ...closeReasons.unauthenticated.status };
const overBudget = (outcome: string): Refusal => ({
  outcome,
  code: GrpcStatus.RESOURCE_EXHAUSTED,
  details: 'too many sessions are being opened',
});
const unavailable: Refusal = { outcome: 'draining', ...closeReasons.draining(0).status };
const gone: Refusal = { outcome: 'cancelled', code: GrpcStatus.UNAVAILABLE, details: 'connection closed' };

const agent = limits.agent;

const refuse = (refusal: Refusal, addressFault: boolean): OpenResult => ({ ok: false, refusal, addressFault });

export function createOpenSession(deps: OpenSessionDeps): OpenSession {
  const { clock, refusals } = deps;
  const shakeHands = createHandshakes(deps);

  const admit = async (request: OpenSessionRequest, call: OpenCall): Promise<OpenResult> => {
    const began = clock.monotonic();
    const { remoteAddress } = call.connection;
    const refund =
      deps.addresses.take(remoteAddress) ??
      deps.provenPairs.take(remoteAddress, request.nodeId) ??
      (await deps.addresses.charge(remoteAddress, deps.admissionDelayMs));
    if (refund === undefined) return refuse(overBudget('address_budget'), true);
    // Another instance may have made the token a moment ago. Known or not, so that the time to answer reveals nothing.
    if (
      joinTokenIn(request.nodeId) !== undefined &&
      (await withDeadline(deps.delivery.atHead(), deps.admissionDelayMs)) !== true
    ) {
      refund();
      return refuse(unavailable, false);
    }
    const leave = await deps.gate.enter(deps.admissionDelayMs - (clock.monotonic() - began));
    if (leave === undefined) {
      refund();
      return refuse(overBudget('admission'), false);
    }
    // For every node, known or not, the work starts in its own turn of the event loop, so that the time to answer
    // reveals nothing.
    await yieldToEventLoop();
    const workBegan = clock.monotonic();
    try {
      const result = call.cancelled() ? refuse(gone, false) : shakeHands(request, call.connection);
      if (result.ok || !result.addressFault) refund();
      return result;
    } catch (error) {
      refund();
      const event = { reason: 'handshake_failed', address: remoteAddress, error: errorText(error) };
      refusals.note(event, 'a handshake failed');
      return refuse(unavailable, false);
    } finally {
      leave(clock.monotonic() - workBegan);
    }
  };

  const open = async (bytes: Uint8Array, call: OpenCall): Promise<OpenResult> => {
    const request = readRequest(bytes);
    const faulty = 'code' in request;
    // For a faulty call, the counter of the connection's faulty calls charges the address.
    call.judge(faulty ? 'faulty' : 'sound');
    if (faulty) return refuse(request, false);
    return deps.draining() ? refuse(unavailable, false) : admit(request, call);
  };

  return async (bytes, call) => {
    const result = await open(bytes, call);
    if (result.ok) {
      deps.count('ok');
      return result;
    }
    const { outcome, code, details, trailers } = result.refusal;
    deps.count(outcome);
    if (result.refusal !== unavailable && result.refusal !== gone) {
      const address = call.connection.remoteAddress;
      refusals.note({ reason: `handshake_${outcome}`, address }, 'a session was refused to an agent');
    }
    return { ok: false, status: { code, details }, ...(trailers === undefined ? {} : { trailers }) };
  };
}

/**
 * The part that costs CPU time, in one synchronous piece: the handshake, the checks of the authenticated offer, and the
 * pending session.
 */
function createHandshakes(
  deps: OpenSessionDeps,
): (request: OpenSessionRequest, connection: AgentConnection) => OpenResult {
  const { clock, delivery } = deps;
  const openDecoy = createDecoy();

  /** What both sides must know for a PSK; without a usable PSK, secrets that nobody knows. */
  const partyOf = (nodeId: string, psk: AcceptedPsk | undefined, address: string): Party => {
    const localStatic = psk === undefined ? undefined : deps.serviceKeys.pairOf(psk.service_public);
    if (psk === undefined || localStatic === undefined) return openDecoy();
    const opened = deps.openVerifier(nodeId, psk.verifier);
    if (opened.kind === 'opened') return { ...opened.verifier, localStatic };
    // Sampled, because anybody who knows the node's id can repeat it.
    const event = { reason: 'handshake_verifier', address, node_id: nodeId, cause: opened.reason };
    deps.refusals.note(event, 'cannot open a PSK verifier');
    return openDecoy();
  };

  const judgeOffer = (
    request: OpenSessionRequest,
    psk: AcceptedPsk | undefined,
    handshake: Responded,
    connection: AgentConnection,
  ): OpenResult => {
    const offer = decodeStrictly(SessionOffer, handshake.payload);
    if (!offer.ok || offer.value.nonce.length !== agent.nonceBytes) return refuse(refused, true);
    const now = clock.now();
    const timestampMs = Number(offer.value.timestampMs);
    if (Math.abs(timestampMs - now) > agent.clockSkewMs) return refuse(skewed(now), true);
    // Identified by its ephemeral key, to which the whole message is bound.
    const ephemeral = Buffer.from(request.handshake.subarray(0, 32)).toString('latin1');
    const replay = deps.replays.note(ephemeral, timestampMs + agent.clockSkewMs, now);
    if (replay === 'replayed') return refuse({ ...refused, outcome: 'replayed' }, true);
    if (replay === 'full') return refuse(overBudget('replay_cache_full'), false);
    if (!deps.chargeNode(request.nodeId)) return refuse(overBudget('node_budget'), false);
    if (connection.closed) return refuse(gone, false);
    return { ok: true, response: openPending(request.nodeId, psk, handshake, connection, now) };
  };

  const openPending = (
    nodeId: string,
    psk: AcceptedPsk | undefined,
    handshake: Responded,
    connection: AgentConnection,
    now: number,
  ): Uint8Array => {
    const intervals = intervalsOf(delivery.settings());
    const grant = SessionGrant.encode({
      rekeyAfterSecs: deps.rekeySeconds,
      heartbeatIntervalSecs: intervals.heartbeatSecs,
      metricsIntervalSecs: intervals.metricsSecs,
      serverTimeMs: BigInt(Math.round(now)),
    }).finish();
    const finished = handshake.finish(grant);
    // Finishing fails only for a handshake that is already over, and this one has just started.
    if (!finished.ok) throw new Error(`handshake: ${finished.error}`);
    const { message, handshakeHash } = finished.value;
    const sessionId = sessionIdOf(handshakeHash);
    const id = Buffer.from(sessionId).toString('hex');
    const openedAt = clock.monotonic();
    const { fingerprint = '', isCandidate = false } = psk ?? {};
    const noise = finished.value;
    deps.pending.add({
      nodeId,
      sessionId,
      id,
      psk: { fingerprint, isCandidate },
      connection,
      noise,
      openedAt,
      intervals,
    });
    return OpenSessionResponse.encode({ sessionId: Buffer.from(sessionId), handshake: Buffer.from(message) }).finish();
  };

  return (request, connection) => {
    const { nodeId } = request;
    const psks = delivery.psks(nodeId);
    const prologue = controlPrologue(nodeId);
    // The same number for every id, so that neither time nor cost tells which nodes have a candidate.
    for (let tries = 0; tries < delivery.pskTries(); tries += 1) {
      const psk = psks[tries];
      const { nodeStaticPublic: remoteStatic, ...party } = partyOf(nodeId, psk, connection.remoteAddress);
      const responded = respond({ prologue, remoteStatic, ...party }, request.handshake);
      if (!responded.ok) continue;
      const result = judgeOffer(request, psk, responded.value, connection);
      if (!result.ok) responded.value.discard();
      return result;
    }
    return refuse(refused, true);
  };
}

/** The checks of the request itself, in the contract's order. */
function readRequest(bytes: Uint8Array): OpenSessionRequest | Refusal {
  const malformed = (details: string): Refusal => ({
    outcome: 'malformed',
    code: GrpcStatus.INVALID_ARGUMENT,
    details,
  });
  const decoded = decodeStrictly(OpenSessionRequest, bytes);
  if (!decoded.ok) return malformed('request does not parse');
  const request = decoded.value;
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

function skewed(nowMs: number): Refusal {
  return {
    outcome: 'skewed',
    code: GrpcStatus.FAILED_PRECONDITION,
    details: "the agent's clock differs from the service's by more than 120 s",
    trailers: { 'server-time-ms': String(Math.round(nowMs)) },
  };
}

/** What one try of a handshake needs. */
interface Party extends PskVerifier {
  readonly localStatic: X25519KeyPair;
}

/** @returns opens a verifier for nodes without one, which costs the same as opening a real one */
function createDecoy(): () => Party {
  const dataKey = randomBytes(32);
  const context = { installationId: '', stream: 'decoy', resourceId: 'decoy', field: 'psk_verifier' };
  const verifier = createDummyVerifier();
  const party = { ...verifier, localStatic: generateX25519() };
  const sealed = sealWith(dataKey, 'decoy', Buffer.concat([verifier.nodeStaticPublic, verifier.psk]), context);
  return () => {
    openWith(dataKey, sealed, context);
    return party;
  };
}
