/**
 * Checks the time limits of all sessions, in parts with turns of the event loop between them: ten thousand at once would
 * hold up every answer and every push five times a second. Not the limits: those are in `session.ts`. Implements
 * `docs/contract/agent-protocol.md#control`.
 */
import { yieldToEventLoop } from '../../kernel/background.js';
import type { Clock } from '../../kernel/clock.js';
import type { LiveSession } from './live-session.js';
import { tuning } from './tuning.js';

interface Ticks {
  /** Checks the next sessions, as many as one sweep may: each session of a small fleet, a part of a large one. */
  next(): void;
  close(): void;
}

/** @param all the sessions, which may come and go while they are gone through */
export function createTicks(all: () => Iterable<Pick<LiveSession, 'tick'>>, clock: Clock): Ticks {
  let round: Iterator<Pick<LiveSession, 'tick'>> | undefined;
  let running = false;
  let closed = false;

  /** @returns false at the end of a round */
  const part = (): boolean => {
    const now = clock.monotonic();
    round ??= all()[Symbol.iterator]();
    for (let visited = 0; visited < tuning.sweepPart; visited += 1) {
      const session = round.next();
      if (session.done === true) {
        round = undefined;
        return false;
      }
      session.value.tick(now);
    }
    return true;
  };

  const run = async (): Promise<void> => {
    running = true;
    for (let parts = 0; parts < tuning.sweepParts && !closed && part(); parts += 1) await yieldToEventLoop();
    running = false;
  };

  return {
    next() {
      if (!running && !closed) void run();
    },
    close() {
      closed = true;
    },
  };
}
