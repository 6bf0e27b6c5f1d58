/**
 * How long to wait before the next connection, depending on how the last one ended, and when to rekey. Pure. Implements
 * SUPERSEDED in `docs/contract/agent-protocol.md#control`, `docs/contract/agent-protocol.md#rekey`, and the backoff and
 * `retry_after_ms` of `docs/contract/agent-protocol.md#the-reference-agent`.
 */
import { SessionCloseReason } from '../gen/svc/control/v1/session.js';
import { limits } from '../kernel/limits.js';
import { backoff } from '../kernel/retry.js';
import type { StreamEnd } from './control-stream.js';
import { tuning } from './tuning.js';

/**
 * @param end how the stream ended; a refused OpenSession counts as lost
 * @param attempt how many connections in a row brought no answer, from 0
 * @returns milliseconds: the backoff, 0.5 to 30 s, or longer if an encrypted close asks for it
 */
export function reconnectDelay(end: StreamEnd, attempt: number, random: () => number): number {
  const backoffMs = backoff(limits.agentControl.reconnect, attempt, random);
  if (end.kind === 'lost') return backoffMs;
  const requestedMs = Math.min(end.close.retryAfterMs, tuning.retryAfterMaxMs);
  switch (end.close.reason) {
    // Another process uses this node's PSK and has a newer session: the two must not keep superseding each other.
    case SessionCloseReason.SUPERSEDED:
      return Math.max(backoffMs, requestedMs, limits.agentControl.supersededWaitMs);
    // The PSK is no longer valid. A restored store may accept it again, so keep trying at the slowest pace.
    case SessionCloseReason.REVOKED:
      return Math.max(backoffMs, requestedMs, limits.agentControl.reconnect.maxMs);
    default:
      return Math.max(backoffMs, requestedMs);
  }
}

/**
 * When to replace a session: the smaller of both intervals with 10 % jitter, so that a fleet does not rekey all at once.
 * @returns milliseconds since the session was opened
 */
export function rekeyDelay(configuredSeconds: number, grantedSeconds: number, random: () => number): number {
  const granted = grantedSeconds > 0 ? grantedSeconds : limits.agentControl.rekeyDefaultSeconds;
  const jitter = 1 + limits.agentControl.rekeyJitter * (2 * random() - 1);
  return Math.min(configuredSeconds, granted) * 1000 * jitter;
}
