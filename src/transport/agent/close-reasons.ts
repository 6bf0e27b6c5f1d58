/**
 * All ways in which a session or a stream can end, as data: the SessionClose sent under the session's keys, and the
 * gRPC status. `session.ts` decides which one applies. Implements the table of ends in
 * `docs/contract/agent-protocol.md#control`.
 */
import { SessionCloseReason, type SessionClose } from '../../gen/svc/control/v1/session.js';
import { GrpcStatus, type GrpcStatusCode } from '../../kernel/errors.js';
import type { StreamStatus } from './agent-stream.js';

export interface CloseReason {
  /** Stable word for counters and logs. */
  readonly cause: CloseCause;
  readonly status: StreamStatus;
  /** Undefined: nothing more is sent under the session's keys. */
  readonly close: SessionClose | undefined;
}

type CloseCause =
  | 'unauthenticated'
  | 'malformed'
  | 'protocol_error'
  | 'out_of_order'
  | 'bad_frame'
  | 'superseded'
  | 'revoked'
  | 'expired'
  | 'idle'
  | 'draining'
  | 'overloaded'
  | 'closed_by_agent'
  | 'joined'
  | 'lost';

const overloadedBy = (details: string, retryAfterMs: number): CloseReason =>
  closing('overloaded', SessionCloseReason.OVERLOADED, GrpcStatus.RESOURCE_EXHAUSTED, details, retryAfterMs);

function closing(
  cause: CloseCause,
  reason: SessionCloseReason,
  code: GrpcStatusCode,
  message: string,
  retryAfterMs = 0,
): CloseReason {
  return { cause, status: { code, details: message }, close: { reason, message, retryAfterMs } };
}

function bare(cause: CloseCause, code: GrpcStatusCode, details: string): CloseReason {
  return { cause, status: { code, details }, close: undefined };
}

export const closeReasons = {
  /** No session was attached: unknown, expired, opened on another connection, or the stream sent no frame. */
  unauthenticated: bare('unauthenticated', GrpcStatus.UNAUTHENTICATED, 'session refused'),
  /** The first frame does not parse: without a session there is no key to send a SessionClose with. */
  malformed: bare('malformed', GrpcStatus.INVALID_ARGUMENT, 'frame does not parse'),
  /** Wrong sequence or tag: the sender may not be the agent, so nothing more is sent. */
  badFrame: bare('bad_frame', GrpcStatus.ABORTED, 'frame refused'),
  byAgent: bare('closed_by_agent', GrpcStatus.OK, ''),
  /** The stream is already gone, so nothing can be sent. */
  lost: bare('lost', GrpcStatus.UNAVAILABLE, 'stream lost'),
  protocolError: (message: string): CloseReason =>
    closing('protocol_error', SessionCloseReason.PROTOCOL_ERROR, GrpcStatus.INVALID_ARGUMENT, message),
  outOfOrder: (message: string): CloseReason =>
    closing('out_of_order', SessionCloseReason.PROTOCOL_ERROR, GrpcStatus.FAILED_PRECONDITION, message),
  superseded: closing(
    'superseded',
    SessionCloseReason.SUPERSEDED,
    GrpcStatus.ABORTED,
    'a newer session of this node is live',
  ),
  revoked: closing(
    'revoked',
    SessionCloseReason.REVOKED,
    GrpcStatus.PERMISSION_DENIED,
    'the control PSK was replaced or the node was deleted',
  ),
  /** A machine may not join, for good. */
  joinRefused: (message: string): CloseReason =>
    closing('revoked', SessionCloseReason.REVOKED, GrpcStatus.PERMISSION_DENIED, message),
  joined: closing('joined', SessionCloseReason.NORMAL, GrpcStatus.OK, ''),
  expired: closing(
    'expired',
    SessionCloseReason.EXPIRED,
    GrpcStatus.DEADLINE_EXCEEDED,
    'the session is older than 1.15 times its rekey interval',
  ),
  idle: closing('idle', SessionCloseReason.IDLE, GrpcStatus.DEADLINE_EXCEEDED, 'no message was received for too long'),
  draining: (retryAfterMs: number): CloseReason =>
    closing(
      'draining',
      SessionCloseReason.DRAINING,
      GrpcStatus.UNAVAILABLE,
      'this instance cannot serve agents now',
      retryAfterMs,
    ),
  overloaded: (retryAfterMs: number): CloseReason => overloadedBy('the service is overloaded', retryAfterMs),
  raisedTooSoon: (nodeId: string, reported: number, retryAfterMs: number): CloseReason =>
    overloadedBy(
      `the generation of the node ${nodeId} was raised a short while ago and cannot be raised above ${reported} yet`,
      retryAfterMs,
    ),
} as const;

/** Between 0.5 and 1.5 times the base, in whole milliseconds, so that a fleet does not return all at once. */
export function jittered(baseMs: number, random: () => number): number {
  return Math.round(baseMs * (0.5 + random()));
}
