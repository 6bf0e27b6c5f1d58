/**
 * Everything that `/metrics` shows of this service, in one list. The parts provide the numbers.
 * `docs/reference/metrics.md` is generated from it, and `docs/alerts.yml` watches some of it.
 */
import { Gauge } from 'prom-client';
import type { FactRecorder } from '../commands/port.js';
import type { StandingFacts } from '../commands/standing-facts.js';
import { gauge, counter, type MetricSource, type NumberSource } from '../instance/metrics.js';
import type { DeliveryService } from '../delivery/delivery.js';
import type { CommittedFleet } from '../projections/fleet/committed-fleet.js';
import type { Projections } from '../projections/port.js';
import type { LogChain } from '../security/log-chain/log-chain.js';
import type { Counts } from '../reports/counts.js';
import type { FleetCounts } from '../reports/sums.js';
import type { AnswersUnderWay, RequestCounts, RestSockets, WaitingPlaces } from '../transport/rest/deps.js';
import type { Core } from './core.js';
import { release } from '../kernel/version.js';

/** A part with its own metrics. */
export interface Measured {
  metrics(): readonly MetricSource[];
}

interface MeasuredParts {
  ready(): boolean;
  readonly counts: Pick<Counts, 'soFar'>;
  readonly rest: {
    readonly sockets: RestSockets;
    readonly answers: AnswersUnderWay;
    readonly waitingDeploys: WaitingPlaces;
    readonly eventStreams: WaitingPlaces;
    readonly requests: RequestCounts;
  };
  readonly lag: Measured;
  readonly others: readonly Measured[];
}

/** @param parts what is measured besides the core */
export function serviceMetrics(core: Core, parts: MeasuredParts): readonly MetricSource[] {
  const { clocks, committed, delivery, eventStore, health, projections, logChain } = core;
  const logs = { requests: core.requestLog, sessions: core.sessionLog };
  return [
    buildInfo(),
    gauge('svc_ready', '1 when this instance should get traffic.', () => (parts.ready() ? 1 : 0)),
    counter(
      'svc_event_store_starved_total',
      'Subscriptions to the log that were replaced because they delivered nothing while the log grew.',
      () => eventStore.starved(),
    ),
    counter(
      'svc_log_foreign_events_total',
      'Events of somebody else in the streams of this service.',
      core.foreignEvents,
      'stream',
    ),
    gauge(
      'svc_store_clock_difference_seconds',
      "How far this instance's clock is ahead of a store's; negative when it is behind.",
      clocks.differences,
      'store',
    ),
    gauge('svc_store_problems', 'Stores that do not answer.', () => health.problems().length),
    delivery.timeToApplied,
    ...factMetrics(core.facts),
    ...fleetMetrics(parts.counts.soFar),
    ...restMetrics(parts.rest),
    counter('svc_refusals_total', 'Refused actions of strangers, by reason.', core.refusals.counts, 'reason'),
    counter(
      'svc_log_left_out_total',
      'Lines about requests and sessions that were not written because there were more than a log can take.',
      () => new Map(Object.entries(logs).map(([what, log]) => [what, log.leftOut()])),
      'lines',
    ),
    ...[health, core.appends, core.commandMetrics, parts.lag].flatMap((part) => part.metrics()),
    ...followerMetrics(committed, delivery, projections, logChain),
    ...parts.others.flatMap((part) => part.metrics()),
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
    gauge(
      'svc_nodes',
      'Nodes, by status; the same on every instance.',
      () => {
        const nodes = counts()?.nodes;
        return by(nodes && { pending: nodes.pending, online: nodes.online, offline: nodes.offline });
      },
      'status',
    ),
    gauge(
      'svc_listeners',
      'Listeners that are intended on online nodes, by the state that a report not older than the last apply gives.',
      () => counts()?.listenerStates ?? new Map(),
      'state',
    ),
    gauge('svc_chains', 'L4 chains that are deployed and enabled, by health.', () => by(counts()?.chains), 'health'),
    gauge(
      'svc_upstreams',
      'Enabled upstreams: unhealthy when an online node that dials it reports so, unknown when none reports it.',
      () => by(counts()?.upstreams),
      'health',
    ),
    gauge(
      'svc_rollouts',
      'Rollouts that have not ended, by state; the same on every instance.',
      () => counts()?.rollouts ?? new Map(),
      'state',
    ),
  ];
}

function restMetrics({
  sockets,
  answers,
  waitingDeploys,
  eventStreams,
  requests,
}: MeasuredParts['rest']): readonly MetricSource[] {
  return [
    requests.seconds,
    requests.refused,
    gauge('svc_rest_connections', 'Open REST connections.', () => sockets.open),
    gauge(
      'svc_rest_waiting_answer_bytes',
      'Bytes of answers that REST clients have not read yet.',
      answers.waitingBytes,
    ),
    gauge('svc_rest_waiting_deploys', 'Deploys that wait for their nodes.', () => waitingDeploys.taken),
    gauge(
      'svc_rest_event_streams',
      'Open streams of the event feed, and pages that wait for their first event.',
      () => eventStreams.taken,
    ),
  ];
}

/** Metrics of the followers of the log; the agent transport adds its own. @internal exported for tests */
export function followerMetrics(
  committed: Pick<CommittedFleet, 'fleet' | 'state'>,
  delivery: Pick<DeliveryService, 'stats'>,
  projections: Pick<Projections, 'status'>,
  logChain: Pick<LogChain, 'broken'>,
): readonly NumberSource[] {
  return [
    gauge(
      'svc_log_broken',
      '1 when this instance met a command that breaks the log chain, or a log that is otherwise damaged.',
      () => {
        const stopped = committed.state().kind === 'broken_log' || projections.status().brokenLog !== null;
        return logChain.broken() !== undefined || stopped ? 1 : 0;
      },
    ),
    gauge('svc_projection_position', 'Log position that every read model holds.', () => projections.status().position),
    gauge(
      'svc_projection_parked',
      'Entities taken out of a read model because an event could not be applied.',
      () => projections.status().parked.length,
    ),
    gauge(
      'svc_delivery_revision',
      'Revision of svc-fleet that configurations are compiled from.',
      () => committed.fleet().revision.value,
    ),
    gauge(
      'svc_delivery_rejecting_nodes',
      'Nodes with a session here that rejected their newest configuration and run an older one.',
      () => delivery.stats().rejectingNodes,
    ),
    gauge(
      'svc_delivery_waiting_nodes',
      'Changed nodes with a session that were not offered their newest snapshot yet.',
      () => delivery.stats().waitingNodes,
    ),
    counter('svc_delivery_offered_total', 'Snapshots offered to sessions.', () => delivery.stats().offered),
    counter(
      'svc_delivery_reports_total',
      'Apply reports of agents; ignored: on neither the newest nor the last-good snapshot, or of a superseded session.',
      () => delivery.stats().reports,
      'outcome',
    ),
  ];
}

/** Metrics of the standing facts that this instance renews. */
export function standingFactMetrics(
  standing: Pick<StandingFacts, 'written' | 'oldestSeconds'>,
): readonly NumberSource[] {
  return [
    counter('svc_standing_facts_total', 'Nodes whose facts were renewed before they expire.', standing.written),
    gauge(
      'svc_standing_facts_oldest_seconds',
      'Age of the oldest facts that nodes depend on; the log keeps facts for 90 days.',
      standing.oldestSeconds,
    ),
  ];
}

/** Metrics of facts, by outcome. */
function factMetrics(facts: Pick<FactRecorder, 'stats'>): readonly NumberSource[] {
  return [
    counter('svc_facts_total', 'Facts of agents and sign-ins, by outcome.', () => facts.stats().outcomes, 'outcome'),
    gauge(
      'svc_facts_held',
      'Facts held back because their node has used up its budget for the log.',
      () => facts.stats().held,
    ),
  ];
}
