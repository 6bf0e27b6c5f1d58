/**
 * Implements the port with presence and node documents, on one clock. Only the opening of a session waits for the store.
 * Implements `docs/contract/agent-protocol.md#heartbeats-commands-metrics`.
 */
import type { Clock } from '../kernel/clock.js';
import type { Logger } from '../kernel/logger.js';
import type { ReadStore } from '../storage/read-store.js';
import { openNodeDocuments } from './node-documents.js';
import { openHistory } from './history.js';
import type { Carriers, Telemetry } from './port.js';
import { createPresence } from './presence.js';
import { createTrafficMetrics } from './traffic-metrics.js';

export interface TelemetryDeps {
  readonly readStore: ReadStore;
  readonly clock: Clock;
  readonly logger: Logger;
  /** For whom history is recorded; undefined: it is not. */
  readonly history?: { readonly instanceId: string; carriers(nodeId: string): Carriers } | undefined;
}

export interface TelemetryService extends Telemetry {
  /** Deletes the reports of nodes that are gone. @throws ServiceError `unavailable` */
  forget(nodeIds: readonly string[]): Promise<void>;
}

/** @throws ServiceError `unavailable` */
export async function createTelemetry({
  readStore,
  clock,
  logger,
  history: recorded,
}: TelemetryDeps): Promise<TelemetryService> {
  const traffic = createTrafficMetrics();
  const history = recorded && (await openHistory({ readStore, clock, logger }, recorded.instanceId));
  const recording = recorded && history && { history, carriers: recorded.carriers };
  const documents = await openNodeDocuments(readStore, { logger, traffic, recording });
  const presence = createPresence(readStore.leases, logger);
  const rate = createRate(clock);
  return {
    async sessionOpened(nodeId, facts, offlineAfterMs) {
      documents.rewrite(nodeId);
      await presence.opened(nodeId, facts, offlineAfterMs);
      documents.seen(nodeId, clock.now());
    },
    alive(nodeId, facts, offlineAfterMs, heartbeat) {
      presence.alive(nodeId, facts, offlineAfterMs);
      if (heartbeat === undefined) return documents.seen(nodeId, clock.now());
      rate.note();
      documents.heartbeat(nodeId, heartbeat, clock.now(), offlineAfterMs);
    },
    heartbeatsPerMinute: rate.perMinute,
    metrics: (nodeId, report, processId) => documents.metrics(nodeId, report, processId, clock.now()),
    sessionEnded: presence.ended,
    onLost: presence.onLost,
    presence: presence.of,
    held: presence.held,
    online: presence.all,
    vitals: documents.vitals,
    listeners: documents.listeners,
    links: documents.links,
    reportedMetrics: documents.reportedMetrics,
    recordsHistory: history !== undefined,
    history: (resourceId, step, from) => history?.read(resourceId, step, from) ?? Promise.resolve(new Map()),
    trafficMetrics: traffic.metrics,
    forget: documents.forget,
    async flush() {
      await presence.flush();
      await documents.flush();
      await history?.flush();
    },
    async close() {
      await presence.close();
      await documents.close();
      await history?.close();
    },
  };
}

interface Rate {
  note(): void;
  /** How often in the last 60 seconds. */
  perMinute(): number;
}

const seconds = 60;

/** How often something happened in the last minute, to the second. @internal exported for tests */
export function createRate(clock: Pick<Clock, 'monotonic'>): Rate {
  /** Counts of each of the last seconds; a second and the one a minute later share a place. */
  const counts = Array.from({ length: seconds }, () => 0);
  let last = Math.floor(clock.monotonic() / 1000);

  const moveOn = (): number => {
    const now = Math.floor(clock.monotonic() / 1000);
    for (let second = Math.max(last, now - seconds) + 1; second <= now; second += 1) counts[second % seconds] = 0;
    last = now;
    return now % seconds;
  };

  return {
    note() {
      const place = moveOn();
      counts[place] = (counts[place] ?? 0) + 1;
    },
    perMinute() {
      moveOn();
      return counts.reduce((sum, count) => sum + count, 0);
    },
  };
}
