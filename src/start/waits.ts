/** What a start waits for, telling every few seconds that it is still at it. Part of the wiring, see `app.ts`. */
import type { Delivery } from '../delivery/port.js';
import { sleep } from '../kernel/background.js';
import { streams } from '../kernel/event.js';
import type { Logger } from '../kernel/logger.js';
import type { Projections } from '../projections/port.js';
import type { EventStore } from '../storage/event-store.js';
import { lastRevision } from '../storage/event-store.js';

/** How often the log says that the start still waits. */
const progressEveryMs = 5_000;
const pollMs = 20;

/** Waits until delivery has folded what was in the log. */
export async function waitForLog(
  eventStore: EventStore,
  delivery: Pick<Delivery, 'state' | 'waitFor'>,
  logger: Logger,
): Promise<void> {
  const began = performance.now();
  const head = (await lastRevision(eventStore, streams.fleet)) ?? -1;
  while (delivery.state().kind !== 'unknown_event' && !(await delivery.waitFor(head, progressEveryMs))) {
    logger.info({ head }, 'reading the event log');
  }
  logger.info({ ms: Math.round(performance.now() - began), head }, 'the event log is read');
}

/**
 * Waits until the read models hold what was in the log: agents that are admitted earlier could be sent once more what
 * they had rejected. Goes on when the projections have stopped for good: then the instance is read-only.
 */
export async function waitForProjections(projections: Projections, logger: Logger): Promise<void> {
  const settled = (): boolean => projections.status().caughtUp || projections.status().unknownEvent !== null;
  for (let told = performance.now(); !settled();) {
    await sleep(pollMs);
    if (performance.now() - told < progressEveryMs) continue;
    told = performance.now();
    const { position, lastError } = projections.status();
    logger.info({ position, error: lastError }, 'filling the read models');
  }
}
