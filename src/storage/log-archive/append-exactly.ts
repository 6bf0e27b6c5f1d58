/**
 * Appends events of an import directly after a revision and retries until they are known to be there. Every try has the
 * same ids and the same expected revision, so a store gives a repeat the answer of the first try.
 */
import { sleep } from '../../kernel/background.js';
import { ServiceError } from '../../kernel/errors.js';
import type { ProposedEvent } from '../../kernel/event.js';
import { backoff, storeRetry } from '../../kernel/retry.js';
import type { EventStore } from '../event-store.js';
import { tuning } from './tuning.js';

/**
 * @param after the revision that they follow; -1 for a stream that does not exist
 * @throws ServiceError `conflict` when other events are there; `unavailable` when the store stays away for
 *   `tuning.giveUpMs` or the signal aborts first
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
        `${stream} ends at ${outcome.actual === 'no_stream' ? 'no event' : `revision ${outcome.actual}`} where the ` +
          `archive continues after revision ${after}: something else is writing to this log`,
      );
    }
    if (signal.aborted || performance.now() - began > tuning.giveUpMs) {
      throw new ServiceError('unavailable', `the event store does not accept events: ${outcome.cause}`);
    }
    await sleep(backoff(storeRetry, tries), signal);
  }
}
