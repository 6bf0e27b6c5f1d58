/**
 * Everything that `/metrics` shows of this service, in one list. The parts provide the numbers.
 * `docs/reference/metrics.md` is generated from it, and `docs/alerts.yml` watches some of it.
 */
import { Gauge, type Counter, type Histogram } from 'prom-client';
import type { FactRecorder } from '../commands/port.js';
import type { StandingFacts } from '../commands/standing-facts.js';
import type { BudgetedLogger } from '../kernel/budgeted-logger.js';
import type { SampledLog } from '../kernel/sampled-log.js';
import type { MetricSource, NumberSource } from '../instance/metrics.js';
import type { DeliveryService } from '../delivery/delivery.js';
import type { CommittedFleet } from '../projections/fleet/committed-fleet.js';
import type { Projections } from '../projections/port.js';
import type { LogChain } from '../security/log-chain/log-chain.js';
import type { FleetCounts } from '../reports/sums.js';
import { release } from '../kernel/version.js';

/** A part with its own metrics. */
export interface Measured {
  metrics(): readonly MetricSource[];
}

interface MeasuredService {
  ready(): boolean;
  /** How many stores do not answer. */
  storeProblems(): number;
  /** In seconds, by store. */
  clockDifferences(): ReadonlyMap<string, number>;
  /** Subscriptions to the log that were given up because they delivered nothing. */
  starved(): number;
  /** Foreign events in the streams of this service, by stream. */
  foreignEvents(): ReadonlyMap<string, number>;
  readonly timeToApplied: Histogram;
  readonly facts: Pick<FactRecorder, 'stats'>;
  readonly refusals: Pick<SampledLog, 'counts'>;
  /** Undefined until the fleet has been counted once. */
  fleet(): FleetCounts | undefined;
  readonly logs: { readonly [what: string]: Pick<BudgetedLogger, 'leftOut'> };
  readonly rest: {
    readonly sockets: { readonly open: number };
    readonly answers: { waitingBytes(): number };
    readonly waitingDeploys: { readonly taken: number };
    readonly eventStreams: { readonly taken: number };
    readonly requests: { readonly seconds: Histogram; readonly refused: Counter };
  };
  readonly parts: readonly Measured[];
}

export function serviceMetrics(service: MeasuredService): readonly MetricSource[] {
  return [
    buildInfo(),
    {
      type: 'gauge',
      name: 'svc_ready',
      help: '1 when this instance should get traffic.',
      read: () => (service.ready() ? 1 : 0),
    },
    {
      type: 'counter',
      name: 'svc_event_store_starved_total',
      help: 'Subscriptions to the log that were replaced because they delivered nothing while the log grew.',
      read: service.starved,
    },
    {
      type: 'counter',
      name: 'svc_log_foreign_events_total',
      help: 'Events of somebody else in the streams of this service.',
      label: 'stream',
      read: service.foreignEvents,
    },
    {
      type: 'gauge',
      name: 'svc_store_clock_difference_seconds',
      help: "How far this instance's clock is ahead of a store's; negative when it is behind.",
      label: 'store',
      read: service.clockDifferences,
    },
    { type: 'gauge', name: 'svc_store_problems', help: 'Stores that do not answer.', read: service.storeProblems },
    service.timeToApplied,
    ...factMetrics(service.facts),
    ...fleetMetrics(service.fleet),
    ...restMetrics(service.rest),
    {
      type: 'counter',
      name: 'svc_refusals_total',
      help: 'Refused actions of strangers, by reason.',
      label: 'reason',
      read: service.refusals.counts,
    },
    {
      type: 'counter',
      name: 'svc_log_left_out_total',
      help: 'Lines about requests and sessions that were not written because there were more than a log can take.',
      label: 'lines',
      read: () => new Map(Object.entries(service.logs).map(([what, log]) => [what, log.leftOut()])),
    },
    ...service.parts.flatMap((part) => part.metrics()),
  ];
}

function buildInfo(): Gauge {
  const info = new Gauge({
    name: 'svc_build_info',
    help: 'Always 1; the labels say what runs.',
    labelNames: Object.keys(release),
    registers: [],
  });
  info.set(release, 1);
  return info;
}

/** Every instance shows the whole fleet. */
function fleetMetrics(counts: () => FleetCounts | undefined): readonly NumberSource[] {
  const by = (numbers: { readonly [name: string]: number } | undefined) => new Map(Object.entries(numbers ?? {}));
  return [
    {
      type: 'gauge',
      name: 'svc_nodes',
      help: 'Nodes, by status; the same on every instance.',
      label: 'status',
      read: () => {
        const nodes = counts()?.nodes;
        return by(nodes && { pending: nodes.pending, online: nodes.online, offline: nodes.offline });
      },
    },
    {
      type: 'gauge',
      name: 'svc_listeners',
      help: 'Listeners that are intended on online nodes, by the state that a report not older than the last apply gives.',
      label: 'state',
      read: () => counts()?.listenerStates ?? new Map(),
    },
    {
      type: 'gauge',
      name: 'svc_chains',
      help: 'L4 chains that are deployed and enabled, by health.',
      label: 'health',
      read: () => by(counts()?.chains),
    },
    {
      type: 'gauge',
      name: 'svc_upstreams',
      help: 'Enabled upstreams: unhealthy when an online node that dials it reports so, unknown when none reports it.',
      label: 'health',
      read: () => by(counts()?.upstreams),
    },
    {
      type: 'gauge',
      name: 'svc_rollouts',
      help: 'Rollouts that have not ended, by state; the same on every instance.',
      label: 'state',
      read: () => counts()?.rollouts ?? new Map(),
    },
  ];
}

function restMetrics({
  sockets,
  answers,
  waitingDeploys,
  eventStreams,
  requests,
}: MeasuredService['rest']): readonly MetricSource[] {
  return [
    requests.seconds,
    requests.refused,
    { type: 'gauge', name: 'svc_rest_connections', help: 'Open REST connections.', read: () => sockets.open },
    {
      type: 'gauge',
      name: 'svc_rest_waiting_answer_bytes',
      help: 'Bytes of answers that REST clients have not read yet.',
      read: answers.waitingBytes,
    },
    {
      type: 'gauge',
      name: 'svc_rest_waiting_deploys',
      help: 'Deploys that wait for their nodes.',
      read: () => waitingDeploys.taken,
    },
    {
      type: 'gauge',
      name: 'svc_rest_event_streams',
      help: 'Open streams of the event feed, and pages that wait for their first event.',
      read: () => eventStreams.taken,
    },
  ];
}

/** Metrics of the followers of the log; the agent transport adds its own. */
export function followerMetrics(
  committed: Pick<CommittedFleet, 'fleet' | 'state'>,
  delivery: Pick<DeliveryService, 'stats'>,
  projections: Pick<Projections, 'status'>,
  logChain: Pick<LogChain, 'broken'>,
): readonly NumberSource[] {
  return [
    {
      type: 'gauge',
      name: 'svc_log_broken',
      help: '1 when this instance met a command that breaks the log chain, or a log that is otherwise damaged.',
      read: () => {
        const stopped = committed.state().kind === 'broken_log' || projections.status().brokenLog !== null;
        return logChain.broken() !== undefined || stopped ? 1 : 0;
      },
    },
    {
      type: 'gauge',
      name: 'svc_projection_position',
      help: 'Log position that every read model holds.',
      read: () => projections.status().position,
    },
    {
      type: 'gauge',
      name: 'svc_projection_parked',
      help: 'Entities taken out of a read model because an event could not be applied.',
      read: () => projections.status().parked.length,
    },
    {
      type: 'gauge',
      name: 'svc_delivery_revision',
      help: 'Revision of svc-fleet that configurations are compiled from.',
      read: () => committed.fleet().revision.value,
    },
    {
      type: 'gauge',
      name: 'svc_delivery_rejecting_nodes',
      help: 'Nodes with a session here that rejected their newest configuration and run an older one.',
      read: () => delivery.stats().rejectingNodes,
    },
    {
      type: 'gauge',
      name: 'svc_delivery_waiting_nodes',
      help: 'Changed nodes with a session that were not offered their newest snapshot yet.',
      read: () => delivery.stats().waitingNodes,
    },
    {
      type: 'counter',
      name: 'svc_delivery_offered_total',
      help: 'Snapshots offered to sessions.',
      read: () => delivery.stats().offered,
    },
    {
      type: 'counter',
      name: 'svc_delivery_reports_total',
      help: 'Apply reports of agents; ignored: on neither the newest nor the last-good snapshot, or of a superseded session.',
      label: 'outcome',
      read: () => delivery.stats().reports,
    },
  ];
}

/** Metrics of the standing facts that this instance renews. */
export function standingFactMetrics(
  standing: Pick<StandingFacts, 'written' | 'oldestSeconds'>,
): readonly NumberSource[] {
  return [
    {
      type: 'counter',
      name: 'svc_standing_facts_total',
      help: 'Nodes whose facts were renewed before they expire.',
      read: standing.written,
    },
    {
      type: 'gauge',
      name: 'svc_standing_facts_oldest_seconds',
      help: 'Age of the oldest facts that nodes depend on; the log keeps facts for 90 days.',
      read: standing.oldestSeconds,
    },
  ];
}

/** Metrics of facts, by outcome. */
function factMetrics(facts: Pick<FactRecorder, 'stats'>): readonly NumberSource[] {
  return [
    {
      type: 'counter',
      name: 'svc_facts_total',
      help: 'Facts of agents and sign-ins, by outcome.',
      label: 'outcome',
      read: () => facts.stats().outcomes,
    },
    {
      type: 'gauge',
      name: 'svc_facts_held',
      help: 'Facts held back because their node has used up its budget for the log.',
      read: () => facts.stats().held,
    },
  ];
}
