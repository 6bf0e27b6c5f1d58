/**
 * A logger for events that authenticated callers and agents can trigger at will: one line each within a budget, of which
 * one source may use a quarter. Lines beyond it are counted and summed up. Events of strangers go to `sampled-log.ts`.
 */
import type { Clock } from './clock.js';
import type { Logger } from './logger.js';
import { createLru } from './lru.js';
import { createTokenBucket, type TokenBucket } from './token-bucket.js';
import { getOrMake } from './maps.js';

export interface BudgetedLogger extends Logger {
  /** Lines dropped since the start. */
  leftOut(): number;
  /** Reports the lines dropped since the last summary. */
  close(): void;
}

interface BudgetedLoggerOptions {
  readonly logger: Logger;
  readonly clock: Clock;
  /** What the lines are about, for the sentence that says how many were dropped. */
  readonly what: string;
  /** The log field that names the source of a line. */
  readonly source: string;
  readonly linesPerSecond?: number;
  /** How many lines may be written at once. */
  readonly burst?: number;
}

const tellEveryMs = 10_000;
/** At 300 bytes a line, at most 6.5 GB a day after a burst of 7.5 MB. */
const usual = { linesPerSecond: 250, burst: 25_000 };
/** The share of the budget that one source may use. */
const sourceShare = 0.25;
/** Sources with a budget of their own. */
const rememberedSources = 1_000;

/** Debug lines have no budget: whoever turns them on wants all of them. */
export function createBudgetedLogger(options: BudgetedLoggerOptions): BudgetedLogger {
  const { logger, clock, what, source, linesPerSecond = usual.linesPerSecond, burst = usual.burst } = options;
  const budget = createTokenBucket(linesPerSecond, burst, clock.monotonic());
  const ofSource = createLru<TokenBucket>(rememberedSources);
  let [leftOut, told] = [0, 0];

  const tell = (): void => {
    if (leftOut === told) return;
    logger.warn({ left_out: leftOut - told }, `more ${what} than are logged one by one`);
    told = leftOut;
  };
  const timer = setInterval(tell, tellEveryMs);
  timer.unref();

  const within =
    (level: 'info' | 'warn' | 'error'): Logger['info'] =>
    (fields, message) => {
      const now = clock.monotonic();
      const own = getOrMake(ofSource, String(Reflect.get(fields, source)), () =>
        createTokenBucket(linesPerSecond * sourceShare, burst * sourceShare, now),
      );
      if (own.wait(now) > 0 || budget.wait(now) > 0) {
        leftOut += 1;
        return;
      }
      own.take(now);
      budget.take(now);
      logger[level](fields, message);
    };
  return {
    debug: (fields, message) => logger.debug(fields, message),
    info: within('info'),
    warn: within('warn'),
    error: within('error'),
    leftOut: () => leftOut,
    close() {
      clearInterval(timer);
      tell();
    },
  };
}
