/**
 * Appends a group of commands and finds out what became of it. Where the store does not say, the group's ids are looked
 * for first, then the very same append is tried again: whichever try arrives is written, the others are answered as it
 * was. Not deciding and not folding: the gateway does both. Implements `docs/contract/domain.md#commands-and-events`.
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
  /** The events stand right behind the expected revision; `position` is not below that of the last one. */
  | { readonly kind: 'appended'; readonly position: number }
  /** Something else stands there: nothing of the group is written, nor ever will be. */
  | { readonly kind: 'conflict' }
  | { readonly kind: 'unavailable' }
  /** It may be written, or be written later. */
  | { readonly kind: 'unknown' };

export interface AppendGroupOptions {
  readonly eventStore: EventStore;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Ends the waiting: one more look, then `unknown`. */
  readonly signal: AbortSignal;
}

/** Appends the events behind the revision `expected`, -1 for a stream that is not there yet. Bounded in tries and time. */
export async function appendGroup(
  options: AppendGroupOptions,
  stream: string,
  expected: number,
  events: readonly ProposedEvent[],
): Promise<GroupOutcome> {
  const { eventStore, clock, logger, signal } = options;
  const started = clock.monotonic();
  // From the first unknown answer on, no answer but "appended" tells what became of the tries before it.
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
        logger.warn({ stream, cause: outcome.cause, tries }, 'the event store refused an append');
        if (!uncertain) return { kind: 'unavailable' };
        break;
      case 'unknown':
        logger.warn(
          { stream, cause: outcome.cause, tries },
          'the outcome of an append is unknown; looking for its events',
        );
        break;
      default:
        return unreachable(outcome);
    }
    uncertain = true;
    const found = await lookFor(options, stream, expected, events);
    if (found.kind !== 'nothing') return found;
    const waited = clock.monotonic() - started;
    if (signal.aborted || tries >= tuning.gatewayAttempts || waited >= tuning.outcomeWaitMs) {
      return { kind: 'unknown' };
    }
    await sleep(backoff(tuning.outcomeRetry, tries), signal);
  }
}

type Found = Extract<GroupOutcome, { readonly kind: 'appended' | 'conflict' }> | { readonly kind: 'nothing' };

/** What stands where the group would. An append is atomic: its first event tells. */
async function lookFor(
  { eventStore, logger }: AppendGroupOptions,
  stream: string,
  expected: number,
  events: readonly ProposedEvent[],
): Promise<Found> {
  try {
    let position: number | undefined;
    const range = { direction: 'forward', from: expected + 1, maxCount: events.length } as const;
    for await (const event of eventStore.read(stream, range)) {
      if (position === undefined && event.id !== events[0]?.id) return { kind: 'conflict' };
      position = event.position;
    }
    return position === undefined ? { kind: 'nothing' } : { kind: 'appended', position };
  } catch (error) {
    logger.warn({ stream, error: errorText(error) }, 'the log could not be read while looking for an append');
    return { kind: 'nothing' };
  }
}
