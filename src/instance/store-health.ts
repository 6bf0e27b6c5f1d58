/** Pings both stores every second in the background. Only one part of readiness: see `src/projections/followers.ts`. */
import { Histogram } from 'prom-client';
import { startLoop, timedOut, withDeadline } from '../kernel/background.js';
import { errorText, ServiceError } from '../kernel/errors.js';
import { logsError, type Logger } from '../kernel/logger.js';
import { secondsBounds } from '../kernel/seconds-bounds.js';
import type { EventStore } from '../storage/event-store.js';
import type { ReadStore } from '../storage/read-store.js';
import { awayBecause, StoreAccessError } from '../storage/store-access.js';
import { gauge, type MetricSource } from './metrics.js';

const pingEveryMs = 1_000;
/** A store that takes longer counts as out of reach; with the second until the next ping, that shows within 5 s. */
const pingTimeoutMs = 3_500;

export interface StoreHealth {
  /** A sentence while a store is known not to answer; the cause is in the service's log. */
  away(store: StoreName): string | undefined;
  /** The sentences of all stores that do not answer. */
  problems(): readonly string[];
  /** The same for operators; also says what to do where waiting does not help. */
  reasons(): readonly string[];
  metrics(): readonly MetricSource[];
  close(): Promise<void>;
}

type StoreName = 'event store' | 'read store';

interface Away {
  /** In milliseconds of a monotonic clock. */
  readonly since: number;
  readonly sentence: string;
  /** What somebody must do before the store can be used, if known. */
  readonly trouble: string | undefined;
}

type Pinged = Pick<EventStore | ReadStore, 'ping'>;

/** Resolves after the first pings. */
export async function watchStores(stores: { readonly [K in StoreName]: Pinged }, logger: Logger): Promise<StoreHealth> {
  const away = new Map<string, Away>();

  const seconds = new Histogram({
    name: 'svc_store_ping_seconds',
    help: 'Time a store takes to answer a ping; one is sent every second.',
    labelNames: ['store', 'outcome'],
    buckets: secondsBounds,
    registers: [],
  });

  async function check(name: string, store: Pinged): Promise<void> {
    const began = performance.now();
    let problem: string | undefined;
    let trouble: string | undefined;
    try {
      const answer = await withDeadline(store.ping(), pingTimeoutMs);
      if (answer === timedOut) problem = `no answer within ${pingTimeoutMs} ms`;
    } catch (error) {
      problem = errorText(error instanceof ServiceError && error.cause !== undefined ? error.cause : error);
      if (error instanceof StoreAccessError) trouble = error.message;
    }
    const before = away.get(name);
    const outcome = problem === undefined ? 'ok' : 'failed';
    seconds.observe({ store: name, outcome }, (performance.now() - began) / 1000);
    if (problem === undefined) {
      if (before === undefined) return;
      away.delete(name);
      logger.info({ store: name, away_ms: Math.round(performance.now() - before.since) }, `the ${name} answers again`);
      return;
    }
    const sentence = awayBecause(name, problem);
    if (sentence !== before?.sentence) logger.error({ store: name, problem }, sentence);
    if (trouble !== undefined && trouble !== before?.trouble) {
      logger.error({ store: name, problem: trouble }, `the ${name} cannot be used before somebody acts`);
    }
    away.set(name, { since: before?.since ?? performance.now(), sentence, trouble });
  }

  const checkAll = async (): Promise<void> => {
    await Promise.all(Object.entries(stores).map(([name, store]) => check(name, store)));
  };
  await checkAll();
  const loop = startLoop(pingEveryMs, checkAll, logsError(logger, 'the stores could not be checked'));
  return {
    away: (name) => away.get(name)?.sentence,
    problems: () => Array.from(away.values(), ({ sentence }) => sentence),
    reasons: () => Array.from(away.values(), ({ sentence, trouble }) => trouble ?? sentence),
    metrics: () => [
      gauge(
        'svc_store_up',
        '1 while the store answers.',
        () => new Map(Object.keys(stores).map((name) => [name, away.has(name) ? 0 : 1])),
        'store',
      ),
      seconds,
    ],
    close: () => loop.close(),
  };
}
