/** Pings the two stores every second in the background. Only one part of readiness: see `src/app/followers.ts`. */
import { Histogram } from 'prom-client';
import { startLoop, timedOut, withDeadline } from '../kernel/background.js';
import { errorText, ServiceError } from '../kernel/errors.js';
import type { Logger } from '../kernel/logger.js';
import { secondsBounds } from '../kernel/seconds-bounds.js';
import type { EventStore } from '../storage/event-store.js';
import type { ReadStore } from '../storage/read-store.js';
import { StoreAccessError } from '../storage/store-access.js';
import type { MetricSource } from './metrics.js';

const pingEveryMs = 1_000;
/** A store that takes longer counts as out of reach: with the second until the next ping, that shows within 5 s. */
const pingTimeoutMs = 3_500;

export interface StoreHealth {
  /** Whether a store is known not to answer. */
  away(store: StoreName): boolean;
  /** One sentence per store that does not answer; the cause is in the service's log. */
  problems(): readonly string[];
  /** The same for operators: says what to do where waiting does not help. */
  reasons(): readonly string[];
  metrics(): readonly MetricSource[];
  close(): Promise<void>;
}

type StoreName = 'event store' | 'read store';
type Pinged = Pick<EventStore | ReadStore, 'ping'>;

/** Resolves after the first pings. */
export async function watchStores(stores: { readonly [K in StoreName]: Pinged }, logger: Logger): Promise<StoreHealth> {
  /** Since when a store cannot be used, in milliseconds of a monotonic clock, and the trouble with it, if known. */
  const away = new Map<string, { readonly since: number; readonly trouble: string | undefined }>();

  const seconds = new Histogram({
    name: 'svc_store_ping_seconds',
    help: 'Time that a store takes to answer a ping; one is sent every second.',
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
    if (before === undefined) logger.error({ store: name, problem }, `the ${name} is out of reach`);
    if (trouble !== undefined && trouble !== before?.trouble) {
      logger.error({ store: name, problem: trouble }, `the ${name} cannot be used before somebody acts`);
    }
    away.set(name, { since: before?.since ?? performance.now(), trouble });
  }

  const checkAll = async (): Promise<void> => {
    await Promise.all(Object.entries(stores).map(([name, store]) => check(name, store)));
  };
  await checkAll();
  const loop = startLoop(pingEveryMs, checkAll, (error) =>
    logger.error({ error: errorText(error) }, 'the stores could not be checked'),
  );
  const outOfReach = (name: string): string => `the ${name} is out of reach`;
  return {
    away: (name) => away.has(name),
    problems: () => [...away.keys()].map(outOfReach),
    reasons: () => [...away].map(([name, { trouble }]) => trouble ?? outOfReach(name)),
    metrics: () => [
      {
        type: 'gauge',
        name: 'svc_store_up',
        help: '1 while the store answers.',
        label: 'store',
        read: () => new Map(Object.keys(stores).map((name) => [name, away.has(name) ? 0 : 1])),
      },
      seconds,
    ],
    close: () => loop.close(),
  };
}
