/** Pings the two stores every second in the background. Only one part of readiness: see `src/start/followers.ts`. */
import { startLoop, timedOut, withDeadline } from '../kernel/background.js';
import { errorText, ServiceError } from '../kernel/errors.js';
import type { Logger } from '../kernel/logger.js';
import type { EventStore } from '../storage/event-store.js';
import type { ReadStore } from '../storage/read-store.js';

const pingEveryMs = 1_000;
/** A store that takes longer counts as out of reach. */
const pingTimeoutMs = 5_000;

export interface StoreHealth {
  /** One sentence per store that does not answer; the cause is in the service's log. */
  problems(): readonly string[];
  close(): Promise<void>;
}

type Pinged = Pick<EventStore | ReadStore, 'ping'>;

/** Resolves after the first pings. */
export async function watchStores(
  stores: { readonly 'event store': Pinged; readonly 'read store': Pinged },
  logger: Logger,
): Promise<StoreHealth> {
  /** When a store stopped answering, in milliseconds of a monotonic clock. */
  const away = new Map<string, number>();

  async function check(name: string, store: Pinged): Promise<void> {
    let problem: string | undefined;
    try {
      const answer = await withDeadline(store.ping(), pingTimeoutMs);
      if (answer === timedOut) problem = `no answer within ${pingTimeoutMs} ms`;
    } catch (error) {
      problem = errorText(error instanceof ServiceError && error.cause !== undefined ? error.cause : error);
    }
    const since = away.get(name);
    if (problem !== undefined && since === undefined) {
      away.set(name, performance.now());
      logger.error({ store: name, problem }, `the ${name} is out of reach`);
    }
    if (problem === undefined && since !== undefined) {
      away.delete(name);
      logger.info({ store: name, away_ms: Math.round(performance.now() - since) }, `the ${name} answers again`);
    }
  }

  const checkAll = async (): Promise<void> => {
    await Promise.all(Object.entries(stores).map(([name, store]) => check(name, store)));
  };
  await checkAll();
  const loop = startLoop(pingEveryMs, checkAll, (error) =>
    logger.error({ error: errorText(error) }, 'the stores could not be checked'),
  );
  return { problems: () => [...away.keys()].map((name) => `the ${name} is out of reach`), close: () => loop.close() };
}
