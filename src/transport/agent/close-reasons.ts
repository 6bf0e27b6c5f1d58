/**
 * How a session or a stream can end, as data: what is said under the session's keys, and the bare gRPC status. The
 * choice of the row is the session's. Implements the table of ends of `docs/contract/agent-protocol.md`.
 */
import { SessionCloseReason } from '../../gen/svc/control/v1/session.js';
import type { SessionClose } from '../../gen/svc/control/v1/session.js';
import { GrpcStatus } from '../../kernel/errors.js';
import type { GrpcStatusCode } from '../../kernel/errors.js';
import type { StreamStatus } from './agent-stream.js';

export interface End {
  /** Stable word for counters and logs. */
  readonly cause: EndCause;
  readonly status: StreamStatus;
  /** Undefined: nothing more is sent under the session's keys. */
  readonly close: SessionClose | undefined;
}

export type EndCause =
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
  | 'lost';

function closing(
  cause: EndCause,
  reason: SessionCloseReason,
  code: GrpcStatusCode,
  message: string,
  retryAfterMs = 0,
): End {
  return { cause, status: { code, details: message }, close: { reason, message, retryAfterMs } };
}

function bare(cause: EndCause, code: GrpcStatusCode, details: string): End {
  return { cause, status: { code, details }, close: undefined };
}

export const ends = {
  /** No session was attached: unknown, expired, opened on another connection, no frame at all. */
  unauthenticated: bare('unauthenticated', GrpcStatus.UNAUTHENTICATED, 'session refused'),
  /** Before a session is attached there is no key to say more with. */
  malformed: bare('malformed', GrpcStatus.INVALID_ARGUMENT, 'frame does not parse'),
  /** Wrong sequence or tag: whoever sent it may not be the agent, so nothing more is said. */
  badFrame: bare('bad_frame', GrpcStatus.ABORTED, 'frame refused'),
  byAgent: bare('closed_by_agent', GrpcStatus.OK, ''),
  /** The stream is gone already: nothing can be said. */
  lost: bare('lost', GrpcStatus.UNAVAILABLE, 'stream lost'),
  protocolError: (message: string): End =>
    closing('protocol_error', SessionCloseReason.PROTOCOL_ERROR, GrpcStatus.INVALID_ARGUMENT, message),
  outOfOrder: (message: string): End =>
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
  expired: closing(
    'expired',
    SessionCloseReason.EXPIRED,
    GrpcStatus.DEADLINE_EXCEEDED,
    'the session is older than 1.15 times its rekey interval',
  ),
  idle: closing('idle', SessionCloseReason.IDLE, GrpcStatus.DEADLINE_EXCEEDED, 'nothing was heard for too long'),
  draining: (retryAfterMs: number): End =>
    closing(
      'draining',
      SessionCloseReason.DRAINING,
      GrpcStatus.UNAVAILABLE,
      'this instance can not serve now',
      retryAfterMs,
    ),
  overloaded: (retryAfterMs: number): End =>
    closing(
      'overloaded',
      SessionCloseReason.OVERLOADED,
      GrpcStatus.RESOURCE_EXHAUSTED,
      'too much at once',
      retryAfterMs,
    ),
} as const;

/** Between half and one and a half times the base, in whole milliseconds: a fleet must not come back at one moment. */
export function jittered(baseMs: number, random: () => number): number {
  return Math.round(baseMs * (0.5 + random()));
}
