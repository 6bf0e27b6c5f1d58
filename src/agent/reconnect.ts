/**
 * How long to wait before the next connection, from how the last one ended. Pure.
 * Implements `docs/contract/agent-protocol.md`: backoff of the reference agent, SUPERSEDED, `retry_after_ms`.
 */
import { SessionCloseReason } from '../gen/svc/control/v1/session.js';
import { limits } from '../kernel/limits.js';
import { backoff } from '../kernel/retry.js';
import type { StreamEnd } from './control-stream.js';
import { tuning } from './tuning.js';

/**
 * @param end how the stream ended; a refused OpenSession counts as lost
 * @param attempt connections in a row, from 0, that brought no answer
 * @returns milliseconds: the backoff, 0.5 to 30 s, or longer where an encrypted close asks for it
 */
export function reconnectDelay(end: StreamEnd, attempt: number, random: () => number): number {
  const own = backoff(limits.agentControl.reconnect, attempt, random);
  if (end.kind === 'lost') return own;
  const asked = Math.min(end.close.retryAfterMs, tuning.retryAfterMaxMs);
  switch (end.close.reason) {
    // Another process has this node's PSK and a newer session: coming back at once would be a fight.
    case SessionCloseReason.SUPERSEDED:
      return Math.max(own, asked, limits.agentControl.supersededWaitMs);
    // The PSK is void; a restored store may yet know it again, so this goes on, at the slowest pace.
    case SessionCloseReason.REVOKED:
      return Math.max(own, asked, limits.agentControl.reconnect.maxMs);
    default:
      return Math.max(own, asked);
  }
}

/**
 * When a session is replaced: the smaller of both intervals, 10 % more or less, so that a fleet does not come at once.
 * @returns milliseconds from the session's opening
 */
export function rekeyDelay(ownSeconds: number, grantedSeconds: number, random: () => number): number {
  const granted = grantedSeconds > 0 ? grantedSeconds : limits.agentControl.rekeyDefaultSeconds;
  const jitter = 1 + limits.agentControl.rekeyJitter * (2 * random() - 1);
  return Math.min(ownSeconds, granted) * 1000 * jitter;
}
