/**
 * One attached session as a pure machine: (state, input) → (state, outputs). It knows which payload may come when, the
 * time limits, and how the session ends. It has no socket, cipher, clock or store: bytes arrive joined and decrypted,
 * the time comes with each input, and effects are returned as data for `live-session.ts` to carry out. Implements
 * `docs/contract/agent-protocol.md#control` with its table of ends, and the signs of life of
 * `docs/contract/agent-protocol.md#heartbeats-commands-metrics`.
 */
import type { JoinAnswer } from '../../commands/join-tokens.js';
import type { ConfigAnswer, ApplyReport, SnapshotPush } from '../../delivery/port.js';
import { ConfigApplyStatus, type ConfigApplyReport } from '../../gen/svc/control/v1/config.js';
import type { DiagnosticsReport } from '../../gen/svc/control/v1/diagnostics.js';
import type { HeartbeatRequest } from '../../gen/svc/control/v1/heartbeat.js';
import type { MetricsReport } from '../../gen/svc/control/v1/metrics.js';
import type { AgentHello, JoinRequest, SessionCloseReason } from '../../gen/svc/control/v1/session.js';
import { unreachable } from '../../kernel/errors.js';
import { joinTokenIn } from '../../kernel/ids.js';
import { limits } from '../../kernel/limits.js';
import { readAgentPayload, type AgentMessage } from './agent-payload.js';
import { closeReasons, type CloseReason } from './close-reasons.js';
import type { InboundFailure } from './frames.js';
import { noTables, type KnownTables } from './heartbeat-tables.js';
import type { AgentIntervals } from './heartbeats.js';

/** All times are monotonic milliseconds. */
interface OpenState {
  /** For a join token: `join` until its request has come, `joining` until that is answered. */
  readonly phase: 'hello' | 'live' | 'join' | 'joining';
  readonly nodeId: string;
  readonly helloBy: number;
  readonly expiresAt: number;
  readonly lastPayloadAt: number;
  /** When the first fragment of the unfinished message arrived. */
  readonly unfinishedSince: number | undefined;
  /** When the service stopped reading, so that the agent's silence does not count; undefined while it reads. */
  readonly pausedSince: number | undefined;
  readonly intervals: AgentIntervals;
  /** The tables of the last heartbeat. */
  readonly tables: KnownTables;
}

export type SessionState = OpenState | { readonly phase: 'over' };

export type SessionInput =
  /** A complete message, decrypted and joined. */
  | { readonly kind: 'payload'; readonly bytes: Uint8Array }
  /** A fragment that is not the last of its message. */
  | { readonly kind: 'fragment' }
  /** A frame that was refused. */
  | { readonly kind: 'refused_frame'; readonly failure: InboundFailure }
  /** All sessions together hold too many bytes of unfinished messages. */
  | { readonly kind: 'overloaded'; readonly retryAfterMs: number }
  | { readonly kind: 'half_closed' }
  | { readonly kind: 'lost' }
  | { readonly kind: 'tick' }
  /** The service stops or resumes reading from this agent. */
  | { readonly kind: 'paused'; readonly paused: boolean }
  /** Delivery's answer to a ConfigRequest. */
  | { readonly kind: 'config_answer'; readonly answer: ConfigAnswer }
  /** A HeartbeatResponse with these intervals is on its way. */
  | { readonly kind: 'intervals'; readonly intervals: AgentIntervals }
  /** The outcome of a JoinRequest. */
  | {
      readonly kind: 'join_answer';
      readonly answer: JoinAnswer | { readonly kind: 'later'; readonly retryAfterMs: number };
    }
  | { readonly kind: 'superseded' }
  | { readonly kind: 'revoked' }
  | { readonly kind: 'draining'; readonly retryAfterMs: number };

export type SessionOutput =
  | { readonly kind: 'hello'; readonly hello: AgentHello }
  /** A heartbeat, config request, or report of metrics or diagnostics was read; its list entries are charged to the read budget. */
  | { readonly kind: 'charge'; readonly entries: number }
  /** A valid payload other than a heartbeat arrived. Only after `hello`. */
  | { readonly kind: 'alive' }
  /** A heartbeat arrived, which is also a sign of life. */
  | { readonly kind: 'heartbeat'; readonly heartbeat: HeartbeatRequest; readonly tables: KnownTables }
  | { readonly kind: 'config_request'; readonly version: bigint; readonly checksum: Uint8Array }
  | { readonly kind: 'apply_report'; readonly outcome: ApplyReport }
  /** A report with a status unknown to this release. */
  | { readonly kind: 'ignored_report' }
  | { readonly kind: 'metrics'; readonly metrics: MetricsReport }
  | { readonly kind: 'diagnostics'; readonly report: DiagnosticsReport }
  | { readonly kind: 'join'; readonly request: JoinRequest }
  | { readonly kind: 'send_grant'; readonly grant: Extract<JoinAnswer, { readonly kind: 'granted' }> }
  | { readonly kind: 'send_unchanged'; readonly generation: number }
  | { readonly kind: 'send_snapshot'; readonly push: SnapshotPush }
  | { readonly kind: 'end'; readonly reason: CloseReason; readonly agentReason: SessionCloseReason | undefined };

export interface Step {
  readonly state: SessionState;
  readonly outputs: readonly SessionOutput[];
}

interface SessionStart {
  readonly nodeId: string;
  /** When OpenSession was answered, and when the stream was opened. */
  readonly openedAt: number;
  readonly streamAt: number;
  readonly rekeyAfterSecs: number;
  readonly intervals: AgentIntervals;
}

const { agent } = limits;

export function startState(start: SessionStart): SessionState {
  return {
    phase: joinTokenIn(start.nodeId) === undefined ? 'hello' : 'join',
    nodeId: start.nodeId,
    helloBy: start.streamAt + agent.helloWithinMs,
    expiresAt: start.openedAt + Math.round(start.rekeyAfterSecs * 1000 * agent.sessionAgeFactor),
    lastPayloadAt: start.streamAt,
    unfinishedSince: undefined,
    pausedSince: undefined,
    intervals: start.intervals,
    tables: noTables,
  };
}

const untilAnswered: ReadonlySet<SessionInput['kind']> = new Set(['tick', 'half_closed', 'revoked', 'draining']);

/** Never throws, whatever the agent sent. After `end` there are no more outputs. */
export function step(state: SessionState, input: SessionInput, now: number): Step {
  if (state.phase === 'over') return { state, outputs: [] };
  // The node may be in the log already: only its answer, or the machine, ends the session.
  if (state.phase === 'joining' && untilAnswered.has(input.kind)) return next(state);
  switch (input.kind) {
    case 'payload':
      return onPayload(state, input.bytes, now);
    case 'fragment':
      return next({ ...state, unfinishedSince: state.unfinishedSince ?? now });
    case 'refused_frame':
      return over(reasonFor(input.failure));
    case 'overloaded':
      return over(closeReasons.overloaded(input.retryAfterMs));
    case 'half_closed':
      return over(closeReasons.byAgent);
    case 'lost':
      return over(closeReasons.lost);
    case 'tick':
      return onTick(state, now);
    case 'paused':
      return next(input.paused ? { ...state, pausedSince: state.pausedSince ?? now } : resumed(state, now));
    case 'config_answer':
      return onAnswer(state, input.answer);
    case 'intervals':
      return next({ ...state, intervals: input.intervals });
    case 'join_answer':
      return onJoinAnswer(state, input.answer);
    case 'superseded':
      return over(closeReasons.superseded);
    case 'revoked':
      return over(closeReasons.revoked);
    case 'draining':
      return over(closeReasons.draining(input.retryAfterMs));
    default:
      return unreachable(input);
  }
}

function next(state: SessionState, ...outputs: readonly SessionOutput[]): Step {
  return { state, outputs };
}

function over(reason: CloseReason, agentReason?: SessionCloseReason): Step {
  return { state: { phase: 'over' }, outputs: [{ kind: 'end', reason, agentReason }] };
}

function reasonFor(failure: InboundFailure): CloseReason {
  switch (failure) {
    case 'malformed_frame':
      return closeReasons.protocolError('frame does not parse');
    case 'foreign_session':
      return closeReasons.protocolError('session_id: not the id of this session');
    case 'ciphertext_too_large':
      return closeReasons.protocolError('ciphertext: longer than 65535 bytes');
    case 'bad_fragment':
      return closeReasons.protocolError('fragment: wrong first byte or size');
    case 'payload_too_large':
      return closeReasons.protocolError('message: longer than 4 MiB');
    case 'not_authentic':
      return closeReasons.badFrame;
    default:
      return unreachable(failure);
  }
}

/** The agent could not be heard: its silence starts now, and its unfinished message gets the time back. */
function resumed(state: OpenState, now: number): OpenState {
  const { unfinishedSince, pausedSince } = state;
  const late = unfinishedSince === undefined ? 0 : now - Math.max(pausedSince ?? now, unfinishedSince);
  return {
    ...state,
    pausedSince: undefined,
    lastPayloadAt: now,
    unfinishedSince: unfinishedSince === undefined ? undefined : unfinishedSince + late,
  };
}

function onTick(state: OpenState, now: number): Step {
  if (now > state.expiresAt) return over(closeReasons.expired);
  if (state.phase !== 'live') {
    const missing = state.phase === 'hello' ? 'hello' : 'JoinRequest';
    return now > state.helloBy ? over(closeReasons.outOfOrder(`no ${missing} within 10 s`)) : next(state);
  }
  if (state.unfinishedSince !== undefined) {
    const late = now - state.unfinishedSince > agent.messageCompleteMs && state.pausedSince === undefined;
    return late ? over(closeReasons.protocolError('a message was not complete within 30 s')) : next(state);
  }
  const silent = now - state.lastPayloadAt > state.intervals.offlineAfterMs && state.pausedSince === undefined;
  return silent ? over(closeReasons.idle) : next(state);
}

/** No tick before this time ends the session, unless a fragment or new intervals arrive. */
export function dueAt(state: SessionState): number {
  if (state.phase === 'over') return Number.POSITIVE_INFINITY;
  if (state.phase !== 'live' || state.unfinishedSince !== undefined || state.pausedSince !== undefined) return 0;
  return Math.min(state.expiresAt, state.lastPayloadAt + state.intervals.offlineAfterMs);
}

function onPayload(state: OpenState, bytes: Uint8Array, now: number): Step {
  const read = readAgentPayload(bytes, state.nodeId, state.tables);
  if (read.kind === 'refused') return over(closeReasons.protocolError(read.why));
  const { message, entries, tables } =
    read.kind === 'message' ? read : { message: undefined, entries: 0, tables: state.tables };
  if (state.phase === 'join' || state.phase === 'joining') return onJoining(state, message);
  if (state.phase === 'hello' && message?.$case !== 'hello') {
    return over(closeReasons.outOfOrder('the first payload is not a hello'));
  }
  if (message === undefined) return over(closeReasons.protocolError('payload: contains nothing this release knows'));
  const alive: OpenState = { ...state, phase: 'live', lastPayloadAt: now, unfinishedSince: undefined, tables };
  if (state.phase === 'hello') {
    return message.$case === 'hello' ? next(alive, { kind: 'hello', hello: message.value }) : next(alive);
  }
  return onMessage(alive, message, entries);
}

function onMessage(state: OpenState, message: AgentMessage, entries: number): Step {
  const charge: SessionOutput = { kind: 'charge', entries };
  switch (message.$case) {
    case 'hello':
      return over(closeReasons.outOfOrder('a second hello'));
    case 'heartbeat':
      return next(state, charge, { kind: 'heartbeat', heartbeat: message.value, tables: state.tables });
    case 'configRequest': {
      const { configVersion: version, checksum } = message.value;
      return next(state, charge, { kind: 'alive' }, { kind: 'config_request', version, checksum });
    }
    case 'applyReport':
      return next(state, { kind: 'alive' }, reportOf(message.value));
    case 'metrics':
      return next(state, charge, { kind: 'alive' }, { kind: 'metrics', metrics: message.value });
    case 'diagnostics':
      return next(state, charge, { kind: 'alive' }, { kind: 'diagnostics', report: message.value });
    case 'close':
      return over(closeReasons.byAgent, message.value.reason);
    case 'join':
      return over(closeReasons.outOfOrder("a JoinRequest on a node's session"));
    default:
      return unreachable(message);
  }
}

/** A payload on the session of a join token. */
function onJoining(state: OpenState, message: AgentMessage | undefined): Step {
  if (message?.$case === 'close') return over(closeReasons.byAgent, message.value.reason);
  if (state.phase === 'joining') return over(closeReasons.outOfOrder('a payload after the JoinRequest'));
  if (message?.$case !== 'join') return over(closeReasons.outOfOrder('the first payload is not a JoinRequest'));
  return next({ ...state, phase: 'joining', unfinishedSince: undefined }, { kind: 'join', request: message.value });
}

function onJoinAnswer(
  state: OpenState,
  answer: Extract<SessionInput, { readonly kind: 'join_answer' }>['answer'],
): Step {
  if (state.phase !== 'joining') return next(state);
  switch (answer.kind) {
    case 'granted': {
      const { outputs, state: ended } = over(closeReasons.joined);
      return { state: ended, outputs: [{ kind: 'send_grant', grant: answer }, ...outputs] };
    }
    case 'refused':
      return over(closeReasons.joinRefused(answer.message));
    case 'later':
      return over(closeReasons.draining(answer.retryAfterMs));
    default:
      return unreachable(answer);
  }
}

function reportOf(report: ConfigApplyReport): SessionOutput {
  const status = statusOf(report);
  if (status === undefined) return { kind: 'ignored_report' };
  return {
    kind: 'apply_report',
    outcome: {
      generation: report.generation,
      checksum: report.checksum,
      status,
      errors: report.errors.map((error) => ({
        resource_type: error.resourceType,
        resource_id: error.resourceId,
        path: error.path,
        message: error.message,
      })),
      durationMs: Math.min(Number(report.durationMs), Number.MAX_SAFE_INTEGER),
    },
  };
}

function statusOf(report: ConfigApplyReport): ApplyReport['status'] | undefined {
  switch (report.status) {
    case ConfigApplyStatus.APPLIED:
      return 'applied';
    case ConfigApplyStatus.REJECTED:
      return 'rejected';
    default:
      return undefined;
  }
}

function onAnswer(state: OpenState, answer: ConfigAnswer): Step {
  switch (answer.kind) {
    case 'snapshot':
      return next(state, { kind: 'send_snapshot', push: answer.push });
    case 'unchanged':
      return next(state, { kind: 'send_unchanged', generation: answer.generation });
    case 'raised_too_soon':
      return over(closeReasons.raisedTooSoon(state.nodeId, answer.reported, answer.retryAfterMs));
    case 'absurd_version':
      return over(closeReasons.outOfOrder('config_version: too far above the generation of the node'));
    case 'draining':
      return over(closeReasons.draining(answer.retryAfterMs));
    default:
      return unreachable(answer);
  }
}
