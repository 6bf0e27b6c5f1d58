/**
 * Implements the port with presence and node documents, on one clock. Only the opening of a session waits for the store.
 * Implements `docs/contract/agent-protocol.md#heartbeats-commands-metrics`.
 */
import type { Clock } from '../kernel/clock.js';
import type { Logger } from '../kernel/logger.js';
import type { ReadStore } from '../storage/read-store.js';
import { openNodeDocuments } from './node-documents.js';
import { openHistory } from './history/history.js';
import { trafficCounters } from './port.js';
import type { Carriers, Telemetry } from './port.js';
import { createPresence } from './presence.js';
import { createRecentSums } from './recent-sums.js';
import { createTrafficMetrics } from './traffic-metrics.js';
import { tuning } from './tuning.js';

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
  const heartbeats = createRecentSums(clock, ['heartbeats'], tuning.recentHeartbeats);
  const recentTraffic = createRecentSums(clock, trafficCounters, tuning.recentTraffic);
  const documents = await openNodeDocuments(readStore, { logger, traffic, recentTraffic, recording });
  const presence = createPresence(readStore.leases, logger);
  return {
    async sessionOpened(nodeId, facts, offlineAfterMs) {
      documents.rewrite(nodeId);
      await presence.opened(nodeId, facts, offlineAfterMs);
      documents.seen(nodeId, clock.now());
    },
    alive(nodeId, facts, offlineAfterMs, heartbeat) {
      presence.alive(nodeId, facts, offlineAfterMs);
      if (heartbeat === undefined) return documents.seen(nodeId, clock.now());
      heartbeats.note({ heartbeats: 1 });
      documents.heartbeat(nodeId, heartbeat, clock.now(), offlineAfterMs);
    },
    activity: () => ({ heartbeats_per_minute: heartbeats.sums().heartbeats, last_5m: recentTraffic.sums() }),
    metrics: (nodeId, report, process) => documents.metrics(nodeId, report, process, clock.now()),
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
