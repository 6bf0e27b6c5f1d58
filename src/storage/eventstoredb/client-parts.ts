/**
 * Which private parts of the client package the adapter uses. Each is there for speed or comfort and has a public way
 * beside it. A package in which a part works differently must not break the service: each part is tried once, without a
 * server, before its first use, and left alone when the trial fails. The setting SVC_EVENTSTORE_CLIENT=public leaves all
 * of them alone. Implements `docs/contract/configuration.md#configuration`.
 */
import { EventStoreDBClient, jsonEvent, START } from '@eventstore/db-client';
import { timedOut, withDeadline } from '../../kernel/background.js';
import { errorText } from '../../kernel/errors.js';
import type { Logger } from '../../kernel/logger.js';
import { tryLeanSubscription } from './lean-subscription.js';

export type ClientWay = 'fast' | 'public';

export interface ClientParts {
  /** Subscriptions decode our events themselves (`lean-subscription.ts`). Else the package does, at twice the cost. */
  readonly ownDecoding: boolean;
  /** A call with credentials of its own takes the classic way (`batch-path.ts`). Else all appends take the same way. */
  readonly classicCalls: boolean;
  /** The channel of a client can be asked (`server-time.ts`). Else the time of the newest event stands for the clock. */
  readonly channel: boolean;
}

export const publicParts: ClientParts = { ownDecoding: false, classicCalls: false, channel: false };

const trialMs = 2_000;

/** Never connects, as long as the parts are what they are taken for. */
const standIn = (client: typeof EventStoreDBClient): EventStoreDBClient =>
  new client({ endpoint: { address: '127.0.0.1', port: 1 } }, { insecure: true });

/** What an append asks a client for first: whether the server supports the batch way, or not. */
async function asksForBatchWay(client: typeof EventStoreDBClient, credentials?: object): Promise<boolean> {
  const asked: (string | symbol)[] = [];
  const recorder = new Proxy(
    {},
    {
      get: (_, name) => async () => {
        asked.push(name);
        throw new Error('only a trial');
      },
    },
  );
  const append = client.prototype.appendToStream as (...args: readonly unknown[]) => Promise<unknown>;
  const event = jsonEvent({ type: 'Trial', data: {} });
  await append
    .call(recorder, 'trial', [event], credentials === undefined ? {} : { credentials })
    .catch(() => undefined);
  if (asked.length === 0) throw new Error('an append uses nothing of its client');
  return asked.includes('supports');
}

async function tryClassicCalls(client: typeof EventStoreDBClient): Promise<void> {
  if (!(await asksForBatchWay(client))) throw new Error('an append does not ask whether the batch way is supported');
  if (await asksForBatchWay(client, { username: 'none', password: 'none' })) {
    throw new Error('an append with credentials of its own takes the batch way');
  }
}

async function tryChannel(client: typeof EventStoreDBClient): Promise<void> {
  const inner = standIn(client) as unknown as { readonly getChannel?: unknown };
  if (typeof inner.getChannel !== 'function') throw new Error('a client has no channel');
}

/**
 * Tries each part of the package once.
 * @param client the class of the package; tests pass another
 */
export async function tryClientParts(logger: Logger, client = EventStoreDBClient): Promise<ClientParts> {
  const works = async (part: keyof ClientParts, trial: () => Promise<void>): Promise<boolean> => {
    try {
      if ((await withDeadline(trial(), trialMs)) !== timedOut) return true;
      throw new Error(`the trial did not end within ${trialMs} ms`);
    } catch (error) {
      logger.warn(
        { part, error: errorText(error) },
        'a private part of the client package of the event store works differently: its public way is used, which is slower',
      );
      return false;
    }
  };
  const [ownDecoding, classicCalls, channel] = await Promise.all([
    works('ownDecoding', () => tryLeanSubscription(standIn(client), { fromPosition: START })),
    works('classicCalls', () => tryClassicCalls(client)),
    works('channel', () => tryChannel(client)),
  ]);
  return { ownDecoding, classicCalls, channel };
}
