/**
 * A logger for what authenticated callers and agents can cause as often as they like: a line for each, as long as there
 * are no more of them than a log file can take, and one source may take no more than a quarter of that, so that it
 * cannot crowd the others out. Lines beyond the budget are counted and summed up in one line.
 * Strangers must not be able to cause this many lines, so lines that they cause go to the sampled log
 * (`sampled-log.ts`).
 */
import type { Clock } from './clock.js';
import type { Logger } from './logger.js';
import { createLru, getOrCreate } from './lru.js';
import type { TokenBucket } from './token-bucket.js';
import { createTokenBucket } from './token-bucket.js';

export interface BudgetedLogger extends Logger {
  /** Lines left out since the start. */
  leftOut(): number;
  /** Tells what no line has told yet. */
  close(): void;
}

interface BudgetedLoggerOptions {
  readonly logger: Logger;
  readonly clock: Clock;
  /** Which lines these are, for the sentence that tells how many were left out. */
  readonly what: string;
  /** The field that tells who has caused a line. */
  readonly source: string;
  readonly linesPerSecond?: number;
  /** Lines at once. */
  readonly burst?: number;
}

const tellEveryMs = 10_000;
/** At 300 bytes a line at most 6.5 GB a day, after a burst of 7.5 MB. */
const usual = { linesPerSecond: 250, burst: 25_000 };
/** The part of the budget that one source may have. */
const sourceShare = 0.25;
/** Sources with a budget of their own. */
const rememberedSources = 1_000;

/** Lines of level debug have no budget: who turns them on wants them all. */
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
      const own = getOrCreate(ofSource, String(Reflect.get(fields, source)), () =>
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
