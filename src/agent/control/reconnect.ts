/**
 * How long an agent waits before the next connection, depending on how the last one ended, and when it rekeys. Sets no
 * timers. Implements SUPERSEDED of `docs/contract/agent-protocol.md#control`, `docs/contract/agent-protocol.md#rekey`,
 * the backoff and `retry_after_ms` of `docs/contract/agent-protocol.md#the-reference-agent`, and
 * `docs/agent-protocol.md#how-a-session-ends`.
 */
import { SessionCloseReason } from '../../gen/svc/control/v1/session.js';
import { GrpcStatus, unreachable } from '../../kernel/errors.js';
import { limits } from '../../kernel/limits.js';
import { backoff } from '../../kernel/retry.js';
import type { StreamEnd } from './stream.js';

/** The longest `retry_after_ms` that is honoured. */
const retryAfterMaxMs = 60 * 60_000;

export type ConnectionEnd =
  | StreamEnd
  /** OpenSession was refused; refusals are not authenticated. */
  | { readonly kind: 'refused'; readonly status: number; readonly detail: string };

export interface ReconnectPace {
  /** OpenSession was granted: the PSK is valid. */
  opened(): void;
  /** The service has answered on the session: the next loss is the first in a row. */
  answered(): void;
  /**
   * @param end of the connection
   * @returns milliseconds until the next one: the backoff of 0.5 to 30 s, or longer if an encrypted close asks for it
   */
  after(end: ConnectionEnd): number;
}

export function createReconnectPace(random: () => number): ReconnectPace {
  /** Connections in a row without an answer. */
  let attempt = 0;
  let revoked = false;
  return {
    opened() {
      revoked = false;
    },
    answered() {
      attempt = 0;
    },
    after(end) {
      if (end.kind === 'closed' && end.close.reason === SessionCloseReason.REVOKED) revoked = true;
      const backoffMs = backoff(limits.agentControl.reconnect, attempt, random);
      attempt += 1;
      return Math.max(backoffMs, leastAfter(end, revoked));
    },
  };
}

function leastAfter(end: ConnectionEnd, revoked: boolean): number {
  const { supersededWaitMs, revokedRetryMs, protocolErrorWaitMs } = limits.agentControl;
  switch (end.kind) {
    case 'lost':
      return 0;
    case 'refused':
      // The service refuses a revoked PSK like this. A restored store may accept it again, so the agent never gives up.
      return revoked && end.status === GrpcStatus.UNAUTHENTICATED ? revokedRetryMs : 0;
    case 'closed': {
      const requestedMs = Math.min(end.close.retryAfterMs, retryAfterMaxMs);
      switch (end.close.reason) {
        // Another process uses this node's PSK and has a newer session: the two must not keep superseding each other.
        case SessionCloseReason.SUPERSEDED:
          return Math.max(requestedMs, supersededWaitMs);
        case SessionCloseReason.REVOKED:
          return Math.max(requestedMs, revokedRetryMs);
        // This agent is at fault, and would only do it again.
        case SessionCloseReason.PROTOCOL_ERROR:
          return Math.max(requestedMs, protocolErrorWaitMs);
        default:
          return requestedMs;
      }
    }
    default:
      return unreachable(end);
  }
}

/**
 * When to replace a session: after the smaller of both intervals, with 10 % jitter to spread a fleet's rekeys.
 * @returns milliseconds since the session was opened
 */
export function rekeyDelay(configuredSeconds: number, grantedSeconds: number, random: () => number): number {
  const granted = grantedSeconds > 0 ? grantedSeconds : limits.agentControl.rekeyDefaultSeconds;
  const jitter = 1 + limits.agentControl.rekeyJitter * (2 * random() - 1);
  return Math.min(configuredSeconds, granted) * 1000 * jitter;
}
