/**
 * Appends a group of commands and finds out the outcome. If the store does not say it, the log is searched for the
 * group's event ids first, then the same append is tried again: whichever try arrives first is written, and the store
 * answers the others like it. Neither decides nor folds. Implements `docs/contract/domain.md#commands-and-events`.
 */
import { sleep } from '../kernel/background.js';
import type { Clock } from '../kernel/clock.js';
import { errorText, unreachable } from '../kernel/errors.js';
import type { ProposedEvent } from '../kernel/event.js';
import type { Logger } from '../kernel/logger.js';
import { backoff } from '../kernel/retry.js';
import type { EventStore } from '../storage/event-store.js';
import { tuning } from './tuning.js';

export type GroupOutcome =
  /** The events directly follow the expected revision. `position` is the last one's or a later one. */
  | { readonly kind: 'appended'; readonly position: number }
  /** Other events stand there: nothing of the group is or will be written. */
  | { readonly kind: 'conflict' }
  | { readonly kind: 'unavailable' }
  /** The group may be written, now or later. */
  | { readonly kind: 'unknown' };

export interface AppendGroupOptions {
  readonly eventStore: EventStore;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Ends the retries: the log is read once more, then the outcome is `unknown`. */
  readonly signal: AbortSignal;
}

/**
 * Appends within bounds of tries and time.
 * @param expected revision to append behind; -1 for a stream without events
 */
export async function appendGroup(
  options: AppendGroupOptions,
  stream: string,
  expected: number,
  events: readonly ProposedEvent[],
): Promise<GroupOutcome> {
  const { eventStore, clock, logger, signal } = options;
  const started = clock.monotonic();
  // After an unknown answer, only "appended" says what became of the tries before.
  let uncertain = false;
  for (let tries = 1; ; tries += 1) {
    const outcome = await eventStore.append(stream, expected < 0 ? 'no_stream' : expected, events);
    switch (outcome.kind) {
      case 'appended':
        if (outcome.position !== undefined) return { kind: 'appended', position: outcome.position };
        break;
      case 'conflict':
        if (!uncertain) return { kind: 'conflict' };
        break;
      case 'unavailable':
      case 'refused':
        logger.warn({ stream, cause: outcome.cause, tries }, 'the event store refused an append');
        if (!uncertain) return { kind: 'unavailable' };
        break;
      case 'unknown':
        logger.warn(
          { stream, cause: outcome.cause, tries },
          'the outcome of an append is unknown; searching for its events',
        );
        break;
      default:
        return unreachable(outcome);
    }
    uncertain = true;
    const written = await search(options, stream, expected, events);
    if (written.kind !== 'nothing') return written;
    const waitedMs = clock.monotonic() - started;
    if (signal.aborted || tries >= tuning.gatewayAttempts || waitedMs >= tuning.outcomeWaitMs) {
      return { kind: 'unknown' };
    }
    await sleep(backoff(tuning.outcomeRetry, tries), signal);
  }
}

type Written = Extract<GroupOutcome, { readonly kind: 'appended' | 'conflict' }> | { readonly kind: 'nothing' };

/** The events that the log holds in place of the group. An append is atomic, so the first event tells for all. */
async function search(
  { eventStore, logger }: AppendGroupOptions,
  stream: string,
  expected: number,
  events: readonly ProposedEvent[],
): Promise<Written> {
  try {
    let position: number | undefined;
    const range = { direction: 'forward', from: expected + 1, maxCount: events.length } as const;
    for await (const event of eventStore.read(stream, range)) {
      if (position === undefined && event.id !== events[0]?.id) return { kind: 'conflict' };
      position = event.position;
    }
    return position === undefined ? { kind: 'nothing' } : { kind: 'appended', position };
  } catch (error) {
    logger.warn({ stream, error: errorText(error) }, 'the log could not be read while searching for an append');
    return { kind: 'nothing' };
  }
}
