/**
 * When sessions check their time limits: a fifth of them each turn, so that each checks once a second; and every turn
 * those over their budget, because they resume reading as soon as their debt is paid. Serves
 * `docs/contract/agent-protocol.md#control`.
 */
import type { LiveSession } from './live-session-port.js';

/** How often the wheel turns. */
export const turnMs = 200;
const parts = 5;

type Ticked = Pick<LiveSession, 'tick' | 'throttled' | 'closed'>;

export function createSessionWheel() {
  const wheel = Array.from({ length: parts }, () => new Set<Ticked>());
  const throttled = new Set<Ticked>();
  let added = 0;
  let at = 0;
  return {
    /** Until the session is closed. */
    add(session: Ticked): void {
      const part = wheel[added % parts];
      added += 1;
      part?.add(session);
      void session.closed.then(() => {
        part?.delete(session);
        throttled.delete(session);
      });
    },
    /** The session is throttled now. */
    throttled: (session: Ticked): void => void throttled.add(session),
    /** @returns whether all sessions have had their turn since this was last true */
    turn(): boolean {
      for (const session of throttled) {
        session.tick();
        if (!session.throttled) throttled.delete(session);
      }
      for (const session of wheel[at] ?? []) if (!throttled.has(session)) session.tick();
      at = (at + 1) % parts;
      return at === 0;
    },
  };
}
