/** Whether the two stores answer, asked every second in the background. Judges nothing else: readiness is the app's. */
import { startLoop, timedOut, withDeadline } from '../kernel/background.js';
import { errorText } from '../kernel/errors.js';
import { limits } from '../kernel/limits.js';
import type { Logger } from '../kernel/logger.js';
import type { EventStore } from '../storage/event-store.js';
import type { ReadStore } from '../storage/read-store.js';

export interface StoreHealth {
  /** Sentences, empty while both answer. */
  problems(): readonly string[];
  close(): Promise<void>;
}

type Pinged = Pick<EventStore | ReadStore, 'ping'>;

/** Starts asking; the first answers are in when it resolves. */
export async function watchStores(
  stores: { readonly 'event store': Pinged; readonly 'read store': Pinged },
  logger: Logger,
): Promise<StoreHealth> {
  const found = new Map<string, string>();

  async function ask(name: string, store: Pinged): Promise<void> {
    let problem: string | undefined;
    try {
      const answer = await withDeadline(store.ping(), limits.telemetry.pingTimeoutMs);
      if (answer === timedOut) problem = `the ${name} did not answer within ${limits.telemetry.pingTimeoutMs} ms`;
    } catch (error) {
      problem = `the ${name} is out of reach: ${errorText(error)}`;
    }
    const before = found.get(name);
    if (problem !== undefined && before === undefined)
      logger.error({ store: name, problem }, 'a store is out of reach');
    if (problem === undefined && before !== undefined) logger.info({ store: name }, 'a store answers again');
    if (problem === undefined) found.delete(name);
    else found.set(name, problem);
  }

  const askAll = async (): Promise<void> => {
    await Promise.all(Object.entries(stores).map(([name, store]) => ask(name, store)));
  };
  await askAll();
  const loop = startLoop(limits.telemetry.pingEveryMs, askAll, (error) =>
    logger.error({ error: errorText(error) }, 'asking the stores failed'),
  );
  return { problems: () => [...found.values()], close: () => loop.close() };
}
