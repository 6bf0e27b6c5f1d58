/**
 * Takes the reports of this instance's sessions: into the table at once, into history, and later into the store. Only the start
 * and the end of a session wait for the store. `others.ts` reads what other instances take. Serves
 * `docs/contract/agent-protocol.md#heartbeats-commands-metrics`.
 */
import type { Clock } from '../kernel/clock.js';
import type { Logger } from '../kernel/logger.js';
import { listenerCounters, sumOfRows } from './counted-rows.js';
import { applyHeartbeat, applyMetrics, plausibleMetrics, type Entry, type Part } from './entry.js';
import type { HeldBack } from './held-back.js';
import { slotMs } from './history/points.js';
import type { Recorder } from './history/recorder.js';
import { sampleRates } from './listener-rates.js';
import type { Others } from './others.js';
import type { Activity, Carriers, HeartbeatFacts, MetricsFacts, ReportingProcess, Telemetry } from './port.js';
import type { Presence } from './presence.js';
import { createRecentSums } from './recent-sums.js';
import type { ReportStore } from './store.js';
import type { Table } from './table.js';
import { createTrafficMetrics } from './traffic-metrics.js';
import { tuning } from './tuning.js';

interface OwnDeps {
  readonly instanceId: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** See `ReportsDeps`. */
  readonly carriers?: ((nodeId: string) => Carriers) | undefined;
  /** Undefined if history is not recorded. */
  readonly recorder: Recorder | undefined;
  readonly table: Table;
  readonly store: Pick<ReportStore, 'enter' | 'write'>;
  readonly presence: Pick<Presence, 'opened' | 'alive' | 'ended'>;
  readonly heldBack: HeldBack;
  /** Undefined if there are no other instances. */
  readonly others: Others | undefined;
}

/** Whether the node's session is at this instance. */
export const isOwn = (table: Pick<Table, 'find'>, nodeId: string): boolean =>
  table.find(nodeId)?.presence?.until === Number.POSITIVE_INFINITY;

/** Whether a first report would be a false peak: the process has run for longer than a slot, and nobody knows when it counted what. */
const coversMore = ({ beat }: Entry, last: unknown): boolean =>
  last === undefined && (beat?.uptime ?? 0) * 1_000 > slotMs;

/** Enters reports in the entry of their node, in history and in the sums of this instance. */
function createIntake({ clock, logger, carriers, recorder, table }: OwnDeps) {
  const traffic = createTrafficMetrics(function* () {
    for (const [nodeId, { metrics }] of table.entries()) {
      if (metrics !== undefined && isOwn(table, nodeId)) yield metrics.report;
    }
  });
  const heartbeats = createRecentSums(clock, ['heartbeats'], tuning.recentHeartbeats);
  const recentTraffic = createRecentSums(clock, listenerCounters, tuning.recentTraffic);
  let refusalLoggedAt = Number.NEGATIVE_INFINITY;
  function refuse(nodeId: string): void {
    traffic.refused();
    if (clock.monotonic() - refusalLoggedAt < tuning.refusalLogMs) return;
    refusalLoggedAt = clock.monotonic();
    logger.warn({ node_id: nodeId }, 'an agent counted more bytes than any link carries; its counters are left out');
  }

  return {
    /** @returns the parts that have changed */
    heartbeat(nodeId: string, entry: Entry, facts: HeartbeatFacts): readonly Part[] {
      const at = clock.now();
      const last = entry.beat?.at;
      heartbeats.note({ heartbeats: 1 });
      if (carriers) sampleRates(entry, entry, carriers(nodeId).begins);
      const growth = applyHeartbeat(entry, facts, at);
      const { listeners, links } = growth;
      if (growth.refused) refuse(nodeId);
      // The first report of a session may cover any time.
      if (entry.hasReported && listeners !== undefined) recentTraffic.note(sumOfRows(listenerCounters, listeners));
      entry.hasReported = true;
      const known = coversMore(entry, last) ? { ...growth, listeners: undefined, links: undefined } : growth;
      recorder?.heartbeat(nodeId, { entry, growth: known, at, last });
      if (listeners === undefined) return links === undefined ? [] : ['links'];
      return links === undefined ? ['listeners'] : ['listeners', 'links'];
    },
    metrics(nodeId: string, entry: Entry, given: MetricsFacts, process: ReportingProcess): void {
      const [at, last] = [clock.now(), entry.metrics];
      const report = plausibleMetrics(given, last?.process_id === process.process_id ? last : undefined, at, entry);
      if (report !== given) refuse(nodeId);
      const before = applyMetrics(entry, report, process, at) ?? (coversMore(entry, last) ? report : undefined);
      traffic.note(report, before);
      recorder?.metrics(nodeId, report, before);
    },
    activity: (): Activity => ({ heartbeats_per_minute: heartbeats.sums().heartbeats, last_5m: recentTraffic.sums() }),
    trafficMetrics: traffic.metrics,
  };
}

export function takeOwn(deps: OwnDeps): Omit<Telemetry, 'onLost'> {
  const { instanceId, clock, table, store, presence, heldBack, others } = deps;
  const intake = createIntake(deps);
  return {
    async sessionOpened(nodeId, facts, offlineAfterMs) {
      const entry = table.entry(nodeId);
      entry.hasReported = false;
      entry.closedAt = 0;
      entry.presence = { facts, until: Number.POSITIVE_INFINITY };
      entry.offlineAfterMs = offlineAfterMs;
      table.notify(nodeId);
      if (others !== undefined) heldBack.hold(nodeId);
      try {
        await presence.opened(nodeId, facts, offlineAfterMs);
        const before = await others?.stored(nodeId);
        if (before !== undefined && before.fields.instance !== instanceId) await store.enter([before]);
      } catch (error) {
        if (table.presence(nodeId) === facts) entry.presence = undefined;
        table.notify(nodeId);
        throw error;
      } finally {
        heldBack.release(nodeId);
      }
      entry.seenAt = clock.now();
      table.notify(nodeId);
      store.write(nodeId, []);
    },
    alive(nodeId, facts, offlineAfterMs, heartbeat) {
      presence.alive(nodeId, facts, offlineAfterMs);
      heldBack.enter(nodeId, () => {
        const entry = table.entry(nodeId);
        if (entry.presence?.facts.session_id === facts.session_id) entry.presence = { ...entry.presence, facts };
        entry.seenAt = clock.now();
        entry.offlineAfterMs = offlineAfterMs;
        const changed = heartbeat === undefined ? [] : intake.heartbeat(nodeId, entry, heartbeat);
        if (heartbeat !== undefined) table.notify(nodeId);
        store.write(nodeId, changed);
      });
    },
    metrics(nodeId, report, process) {
      heldBack.enter(nodeId, () => {
        intake.metrics(nodeId, table.entry(nodeId), report, process);
        table.notify(nodeId);
        store.write(nodeId, ['metrics']);
      });
    },
    async sessionEnded(nodeId, sessionId, byAgent = false) {
      const entry = table.find(nodeId);
      const wasLive = entry?.presence?.facts.session_id === sessionId;
      if (wasLive) {
        entry.presence = undefined;
        entry.closedAt = byAgent ? clock.now() : 0;
        table.notify(nodeId);
      }
      await presence.ended(nodeId, sessionId);
      if (!wasLive || isOwn(table, nodeId)) return;
      // If another instance has the node now, what it wrote must not be overwritten.
      const stored = await others?.stored(nodeId);
      const holder = stored?.fields.presence?.session_id ?? sessionId;
      if (stored === undefined || holder === sessionId) store.write(nodeId, []);
      else await others?.take([stored]);
    },
    activity: intake.activity,
    trafficMetrics: intake.trafficMetrics,
  };
}
