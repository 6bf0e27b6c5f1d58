/** What a start waits for, with a line in its own log every few seconds. See `followers.ts`. */
import { sleep } from '../kernel/background.js';
import { streams } from '../kernel/event.js';
import type { Logger } from '../kernel/logger.js';
import type { CommittedFleet } from '../projections/fleet/committed-fleet.js';
import type { Projections } from '../projections/port.js';
import type { EventStore } from '../storage/event-store.js';
import { lastRevision } from '../storage/event-store.js';

const progressEveryMs = 5_000;
const pollMs = 20;

/** Waits until the committed fleet holds what was in the log. */
export async function waitForLog(
  eventStore: EventStore,
  committed: Pick<CommittedFleet, 'state' | 'passed'>,
  logger: Logger,
): Promise<void> {
  const startedAt = performance.now();
  const head = (await lastRevision(eventStore, streams.fleet)) ?? -1;
  const stopped = (): boolean => ['unknown_event', 'broken_log'].includes(committed.state().kind);
  while (!stopped() && !(await committed.passed(head, progressEveryMs))) {
    logger.info({ head }, 'reading the event log');
  }
  logger.info({ ms: Math.round(performance.now() - startedAt), head }, 'the event log is read');
}

/**
 * Waits until the read models hold what was in the log: an agent that is admitted earlier could be sent again what it
 * has rejected. Returns when an unknown event has stopped the projections for good: the instance is read-only then.
 * @param stopped true when the log cannot be read to its end, so that nothing is admitted anyway
 */
export async function waitForProjections(
  projections: Pick<Projections, 'status'>,
  stopped: () => boolean,
  logger: Logger,
): Promise<void> {
  const settled = (): boolean =>
    projections.status().caughtUp || projections.status().unknownEvent !== null || stopped();
  for (let loggedAt = performance.now(); !settled();) {
    await sleep(pollMs);
    if (performance.now() - loggedAt < progressEveryMs) continue;
    loggedAt = performance.now();
    const { position, lastError } = projections.status();
    logger.info({ position, error: lastError }, 'filling the read models');
  }
}
