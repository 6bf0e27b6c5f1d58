/**
 * Telemetry as the port has it: presence and what nodes told last, with one clock. Nothing here is an event, nothing
 * here makes a session wait but its opening. Implements `docs/contract/agent-protocol.md`, Heartbeats, commands, metrics.
 */
import type { Clock } from '../kernel/clock.js';
import { timestamp } from '../kernel/clock.js';
import type { Logger } from '../kernel/logger.js';
import type { ReadStore } from '../storage/read-store.js';
import { openNodeDocuments } from './node-documents.js';
import type { Telemetry } from './port.js';
import { createPresence } from './presence.js';

export interface TelemetryDeps {
  readonly readStore: ReadStore;
  readonly clock: Clock;
  readonly logger: Logger;
}

export interface TelemetryService extends Telemetry {
  /** Deletes what nodes told that are gone. @throws ServiceError `unavailable` */
  forget(nodeIds: readonly string[]): Promise<void>;
}

/** @throws ServiceError `unavailable` */
export async function createTelemetry({ readStore, clock, logger }: TelemetryDeps): Promise<TelemetryService> {
  const documents = await openNodeDocuments(readStore, logger);
  const presence = createPresence(readStore.leases, logger);
  const now = (): string => timestamp(clock.now());
  return {
    async sessionOpened(nodeId, facts, offlineAfterMs) {
      documents.anew(nodeId);
      await presence.opened(nodeId, facts, offlineAfterMs);
      documents.seen(nodeId, now());
    },
    alive(nodeId, facts, offlineAfterMs) {
      presence.alive(nodeId, facts, offlineAfterMs);
      documents.seen(nodeId, now());
    },
    heartbeat: (nodeId, facts) => documents.heartbeat(nodeId, facts, now()),
    metrics: (nodeId, report) => documents.metrics(nodeId, report, now()),
    sessionEnded: presence.ended,
    onLost: presence.onLost,
    presence: presence.of,
    online: presence.all,
    telemetry: documents.read,
    forget: documents.forget,
    async flush() {
      await presence.flush();
      await documents.flush();
    },
    async close() {
      await presence.close();
      await documents.close();
    },
  };
}
