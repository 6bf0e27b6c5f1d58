/**
 * Appends events right behind a revision and stays until they are known to stand there: the one append of an import.
 * The same append is repeated, with the same ids and the same expected revision, which a store answers like the first try.
 */
import { sleep } from '../../kernel/background.js';
import { ServiceError } from '../../kernel/errors.js';
import type { ProposedEvent } from '../../kernel/event.js';
import { backoff, storeRetry } from '../../kernel/retry.js';
import type { EventStore } from '../event-store.js';
import { tuning } from './tuning.js';

/**
 * @param after the revision that they follow, -1 for a stream that is not there yet
 * @throws ServiceError `conflict` when something else stands there; `unavailable` when the store stays away for
 *   `tuning.giveUpMs` or the signal aborts before it is known
 */
export async function appendExactly(
  eventStore: EventStore,
  stream: string,
  after: number,
  events: readonly ProposedEvent[],
  signal: AbortSignal,
): Promise<void> {
  const began = performance.now();
  const proposed = events.map(({ id, type, data, metadata }) => ({ id, type, data, metadata }));
  for (let tries = 0; ; tries += 1) {
    const outcome = await eventStore.append(stream, after < 0 ? 'no_stream' : after, proposed);
    if (outcome.kind === 'appended') return;
    if (outcome.kind === 'conflict') {
      throw new ServiceError(
        'conflict',
        `${stream} stands at ${outcome.actual === 'no_stream' ? 'no event' : `revision ${outcome.actual}`} where the ` +
          `archive goes on behind revision ${after}: something else writes into this log`,
      );
    }
    if (signal.aborted || performance.now() - began > tuning.giveUpMs) {
      throw new ServiceError('unavailable', `the event store does not take events: ${outcome.cause}`);
    }
    await sleep(backoff(storeRetry, tries), signal);
  }
}
