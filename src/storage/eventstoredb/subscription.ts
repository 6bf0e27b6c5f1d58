/**
 * Subscriptions to streams of the log, by name. Servers up to 23.10 often drop a subscription as too slow: it then
 * resumes at once after the last event, and the consumer does not notice. Any other unrequested end is thrown, and the
 * consumer subscribes again from its last point. Implements `event-store.ts` (subscribe).
 */
import { sleep } from '../../kernel/background.js';
import type { Clock } from '../../kernel/clock.js';
import { ServiceError } from '../../kernel/errors.js';
import type { Logger } from '../../kernel/logger.js';
import { backoff } from '../../kernel/retry.js';
import {
  isBeyond,
  passedBy,
  StarvedError,
  type LogItem,
  type ResumePoint,
  type SubscribeOptions,
} from '../event-store.js';
import { type Connection, subscriptionPlaces } from './connection.js';
import { failureText, isForeignPosition, isTooSlow } from './failure.js';
import { readHead } from './read.js';
import type { ReplacedLog } from './replaced-log.js';
import { openFlow } from './subscription-flow.js';
import { guardCaughtUp, missingAfter, watchForStarvation } from './starvation.js';

export interface SubscriptionDeps {
  readonly logger: Logger;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly replaced: ReplacedLog;
}

/** Refuses a position past the end of the log: the log was restored from a backup, and new events would be missed. */
async function assertWithinLog(
  connection: Connection,
  { after }: SubscribeOptions,
  replaced: ReplacedLog,
): Promise<void> {
  if (after === 'start' || after.commit === 0) return;
  const head = await readHead(connection);
  if (isBeyond(after, head)) throw replaced.refused(after.commit, head);
}

/** The point after an item; undefined for an item without a position. */
function pointBehind(item: LogItem): ResumePoint | undefined {
  if (item.kind === 'checkpoint') return item.point;
  const last = item.kind === 'events' ? item.events.at(-1) : undefined;
  return last === undefined ? undefined : { commit: last.position, prepare: last.position };
}

/** Logs and returns why a subscription after `options.after` ended. @param moved whether it delivered events */
async function endOf(
  error: unknown,
  connection: Connection,
  { after, streams }: SubscribeOptions,
  moved: boolean,
  { logger, replaced }: SubscriptionDeps,
): Promise<ServiceError> {
  if (isForeignPosition(error) && after !== 'start' && !moved) {
    return replaced.refused(after.commit, await readHead(connection));
  }
  const cause = failureText(error);
  logger.warn({ streams, cause }, 'a subscription to the event store ended');
  return new ServiceError('unavailable', `The subscription to the log ended: ${cause}.`, { cause: error });
}

/** Subscribes again whenever the subscription is dropped as too slow. @throws on any other end */
async function* flows(
  connection: Connection,
  options: SubscribeOptions,
  deps: SubscriptionDeps,
): AsyncGenerator<LogItem, void, void> {
  const { signal, streams } = options;
  const { logger, clock, replaced } = deps;
  const { tuning } = connection;
  const { slowTries, retry } = tuning;
  let after = options.after;
  let emptyDrops = 0;
  while (!signal.aborted) {
    const lease = await connection.lease();
    if (signal.aborted) return;
    const flow = openFlow(lease, { ...options, after }, tuning);
    const missing = (position: number): Promise<number | undefined> => missingAfter(connection, streams, position);
    const toHandOut = guardCaughtUp(missing);
    const watch = watchForStarvation({
      clock,
      arrived: flow.arrived,
      missing,
      everyMs: tuning.headEveryMs,
      starvedMs: tuning.starvedMs,
      starvedCatchingUpMs: tuning.starvedCatchingUpMs,
      onStarved: (position) => flow.fail(new StarvedError(position)),
      onError: (error) => logger.debug({ streams, cause: failureText(error) }, 'the heads could not be read'),
    });
    let moved = false;
    try {
      while (!signal.aborted) {
        for (const item of await flow.next()) {
          moved ||= item.kind === 'events';
          after = pointBehind(item) ?? after;
          if (options.after !== 'start') replaced.goesOn(options.after.commit);
          yield* await toHandOut(item, after === 'start' ? 0 : passedBy(after));
        }
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof StarvedError) {
        logger.warn(
          { streams, after: after === 'start' ? 0 : after.commit, missing: error.position },
          'a subscription to the event store is alive but delivers nothing while the log grows; it is being replaced',
        );
        await connection.discard(lease, 'a subscription delivered nothing');
        throw error;
      }
      emptyDrops = moved ? 0 : emptyDrops + 1;
      if (!isTooSlow(error) || emptyDrops > slowTries) {
        throw await endOf(error, connection, { ...options, after }, moved, deps);
      }
      logger.debug({ streams }, 'the event store dropped a busy subscription, which resumes at once');
    } finally {
      // Not awaited: it may be in the middle of a read.
      void watch.close();
      await flow.close();
    }
    if (emptyDrops > 0) await sleep(backoff(retry, emptyDrops), signal);
  }
}

/** @throws ServiceError `unavailable` when the subscription ends before the signal aborts */
export async function* subscribeToLog(
  connection: Connection,
  options: SubscribeOptions,
  deps: SubscriptionDeps,
): AsyncGenerator<LogItem, void, void> {
  const { signal } = options;
  if (signal.aborted) return;
  await assertWithinLog(connection, options, deps.replaced);
  const giveBack = await subscriptionPlaces.take();
  try {
    yield* flows(connection, options, deps);
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    giveBack();
  }
}
