/**
 * How far the state in memory is from the end of the log, judged by its subscription alone. Whether this instance may
 * serve also depends on the compiler version (`fleet/committed-fleet.ts`).
 */
import { errorText } from '../kernel/errors.js';
import type { Logger } from '../kernel/logger.js';
import { StarvedError } from '../storage/event-store.js';

export type LogDistance =
  /** The subscription is open and everything in the log is folded. */
  | 'live'
  /** The subscription dropped within the grace period: near enough to answer, too far to push. */
  | 'just_dropped'
  /** It dropped longer ago and nothing has arrived since: the log is out of reach. */
  | 'cut_off'
  /** The log is being read, and its end has not been reached. */
  | 'behind';

export interface LogConnection {
  distance(): LogDistance;
  /** The end of the log was reached. */
  caughtUp(): void;
  /** Something arrived from the log, but not its end. */
  heard(): void;
  dropped(cause: unknown): void;
  /** The log is read again from an earlier place. */
  reset(): void;
  close(): void;
}

export interface LogConnectionDeps {
  readonly logger: Logger;
  /** How long a dropped subscription still counts as near the end of the log. */
  readonly graceMs: number;
  /** The grace period ended. */
  onGraceEnd(): void;
}

export function createLogConnection(deps: LogConnectionDeps): LogConnection {
  let live = false;
  let grace: NodeJS.Timeout | undefined;
  let cutOff = false;
  /** Something has arrived since the subscription dropped. */
  let heardSince = false;
  /** The log had more than the subscription delivered when it dropped. */
  let knownBehind = false;

  const endGrace = (): void => {
    clearTimeout(grace);
    grace = undefined;
  };

  const startGrace = (): void => {
    endGrace();
    grace = setTimeout(() => {
      grace = undefined;
      cutOff = !heardSince;
      deps.onGraceEnd();
    }, deps.graceMs);
    grace.unref();
  };

  return {
    distance() {
      if (live) return 'live';
      if (cutOff) return 'cut_off';
      return grace === undefined || knownBehind ? 'behind' : 'just_dropped';
    },
    caughtUp() {
      live = true;
      cutOff = false;
      endGrace();
    },
    heard() {
      if (live || heardSince) return;
      heardSince = true;
      // The log is reachable again: unless its end is reached within the grace period, this instance is behind.
      if (cutOff) startGrace();
    },
    dropped(cause) {
      heardSince = false;
      // Logged once; later drops are failed attempts to subscribe again.
      if (!live) return;
      deps.logger.warn({ error: errorText(cause) }, 'the subscription to the log dropped');
      live = false;
      knownBehind = cause instanceof StarvedError;
      startGrace();
    },
    reset() {
      live = false;
      cutOff = false;
      endGrace();
    },
    close: () => clearTimeout(grace),
  };
}
