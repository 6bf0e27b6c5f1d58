/**
 * Each rule of docs/alerts.yml fires in its condition, and none in a healthy fleet, by Prometheus's own `promtool`. Not run
 * where that is not installed.
 */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { parse, stringify } from 'yaml';

const run = promisify(execFile);
const rules = fileURLToPath(new URL('../../docs/alerts.yml', import.meta.url));
const installed = await run('promtool', ['--version']).then(
  () => true,
  () => false,
);

/** A minute apart, for eighty minutes: a constant, or so much more every minute. */
const constant = (value: number): string => `${value}x80`;
const rising = (by: number): string => `0+${by}x80`;

/** By series; in a condition these replace or join the healthy ones. */
type Series = Readonly<Record<string, string>>;
const of = (instance: string): string => `instance="${instance}"`;

/** All of `seconds` took that long: the bucket below has none of them. */
const slow = (name: string, labels: string, below: number): Series => ({
  [`${name}_bucket{${labels},le="${below}"}`]: rising(0),
  [`${name}_bucket{${labels},le="+Inf"}`]: rising(60),
});

/** The target of an instance, by the name of the job in docs/how-to/monitor.md. */
const target = (instance: string): string => `up{job="gateway-control",${of(instance)}}`;

const healthy: Series = {
  [target('a')]: constant(1),
  [target('b')]: constant(1),
  [`svc_ready{${of('a')}}`]: constant(1),
  [`svc_ready{${of('b')}}`]: constant(1),
  [`svc_delivery_revision{${of('a')}}`]: rising(10),
  [`svc_delivery_revision{${of('b')}}`]: rising(10),
  [`svc_projection_position{${of('a')}}`]: rising(10),
  [`svc_projection_position{${of('b')}}`]: rising(10),
  [`svc_nodes{${of('a')},status="online"}`]: constant(12),
  [`svc_nodes{${of('a')},status="offline"}`]: constant(0),
  [`svc_nodes{${of('a')},status="pending"}`]: constant(5),
  [`svc_listeners{${of('a')},state="running"}`]: constant(40),
  [`svc_listeners{${of('a')},state="missing"}`]: constant(0),
  [`svc_chains{${of('a')},health="ok"}`]: constant(9),
  [`svc_chains{${of('a')},health="down"}`]: constant(0),
  [`svc_upstreams{${of('a')},health="healthy"}`]: constant(7),
  [`svc_upstreams{${of('a')},health="unhealthy"}`]: constant(0),
  [`svc_rollouts{${of('a')},state="halted"}`]: constant(0),
  [`svc_rest_request_seconds_count{${of('a')},route="/api/nodes",status="2xx"}`]: rising(600),
  [`svc_rest_request_seconds_count{${of('a')},route="/api/nodes",status="5xx"}`]: rising(1),
  [`svc_append_seconds_count{${of('a')},outcome="conflict"}`]: rising(5),
  [`svc_agent_handshakes_total{${of('a')},outcome="ok"}`]: rising(600),
  [`svc_agent_connections_closed_total{${of('a')},reason="idle"}`]: rising(60),
  [`svc_store_clock_difference_seconds{${of('a')},store="read store"}`]: constant(-2),
  [`svc_credentials{${of('a')},which="all"}`]: constant(9),
  [`svc_webhooks{${of('a')},state="ok"}`]: constant(3),
  [`svc_webhooks{${of('a')},state="stopped"}`]: constant(0),
  [`svc_webhook_lag_seconds{${of('a')}}`]: constant(4),
  [`svc_backup_last_success_timestamp_seconds{${of('a')}}`]: constant(0),
};

const conditions: Readonly<Record<string, Series>> = {
  InstanceNotReady: { [`svc_ready{${of('b')}}`]: constant(0) },
  StoreOutOfReach: { svc_store_problems: constant(1) },
  StoreSlow: slow('svc_store_ping_seconds', 'store="event store"', 1),
  AppendsSlow: slow('svc_append_seconds', 'log="fleet"', 2.5),
  AppendsFail: { 'svc_append_seconds_count{outcome="unavailable"}': rising(1) },
  CommandsFail: { 'svc_commands_total{outcome="unavailable"}': rising(1) },
  RequestsFail: { [`svc_rest_request_seconds_count{${of('a')},route="/api/nodes",status="5xx"}`]: rising(30) },
  RequestsSlow: slow('svc_rest_request_seconds', 'method="GET",route="/api/nodes"', 2.5),
  ClocksApart: { 'svc_store_clock_difference_seconds{store="event store"}': constant(-20) },
  LogBroken: { svc_log_broken: constant(1) },
  ForeignEvents: { 'svc_log_foreign_events_total{stream="svc-signins"}': rising(1) },
  ConfigurationRejected: { svc_delivery_rejecting_nodes: constant(1) },
  ReadModelParked: { svc_projection_parked: constant(1) },
  InstanceBehindOthers: { [`svc_delivery_revision{${of('b')}}`]: constant(10) },
  ReadModelsBehind: { [`svc_projection_position{${of('b')}}`]: constant(10) },
  ReadModelsLag: { svc_projection_lag_seconds: constant(30) },
  CommandsSlow: slow('svc_command_seconds', 'kind="any"', 2.5),
  EventStoreNodeCutOff: { svc_event_store_starved_total: rising(1) },
  PushesWait: { svc_delivery_waiting_nodes: constant(1) },
  AppliedLate: slow('svc_delivery_time_to_applied_seconds', 'kind="any"', 120),
  // Half of the fleet is gone, for hours.
  AgentsLost: {
    [`svc_nodes{${of('a')},status="online"}`]: constant(6),
    [`svc_nodes{${of('a')},status="offline"}`]: constant(6),
  },
  // One of twelve.
  NodeOffline: {
    [`svc_nodes{${of('a')},status="online"}`]: constant(11),
    [`svc_nodes{${of('a')},status="offline"}`]: constant(1),
  },
  ListenersFail: { [`svc_listeners{${of('a')},state="failed"}`]: constant(1) },
  ChainDown: { [`svc_chains{${of('a')},health="down"}`]: constant(1) },
  ChainDegraded: { [`svc_chains{${of('a')},health="degraded"}`]: constant(1) },
  RolloutHalted: { [`svc_rollouts{${of('a')},state="halted"}`]: constant(1) },
  UpstreamUnhealthy: { [`svc_upstreams{${of('a')},health="unhealthy"}`]: constant(1) },
  WebhookStopped: { 'svc_webhooks{state="stopped"}': constant(1) },
  // Time begins at 0 here.
  BackupLate: { [`svc_backup_last_success_timestamp_seconds{${of('a')}}`]: constant(-200_000) },
  WebhookLate: { svc_webhook_lag_seconds: constant(1000) },
  DuplicateAgents: { 'svc_agent_session_ends_total{cause="superseded"}': rising(2) },
  HandshakesRefused: { 'svc_agent_handshakes_total{outcome="unauthenticated"}': rising(120) },
  AgentListenerFull: { 'svc_agent_connections_closed_total{reason="refused"}': rising(1) },
  RealityTargetUnusable: { 'svc_agent_reality_total{outcome="no_target"}': rising(1) },
  BalancerWithoutHeader: { 'svc_agent_connections_closed_total{reason="no_proxy_header"}': rising(1) },
  SlowAgents: { svc_agent_slow_streams: constant(1) },
  LogLinesLeftOut: { svc_log_left_out_total: rising(1) },
  EventLoopLate: { nodejs_eventloop_lag_p99_seconds: constant(0.5) },
  CertificatesEnd: { [`svc_credentials{${of('a')},which="expiring_30d"}`]: constant(1) },
  AgentsThrottled: { svc_agent_throttled_sessions: constant(1) },
  FactsRefused: { 'svc_facts_total{outcome="refused"}': rising(1) },
  FactsHeld: { svc_facts_held: constant(1) },
  StandingFactsOld: { svc_standing_facts_oldest_seconds: constant(5_300_000) },
  RestNearlyFull: { svc_rest_waiting_deploys: constant(120) },
  RealityTargetConnections: { svc_agent_reality_target_connections: constant(3_500) },
  ExceptionsSurvived: { svc_survived_exceptions_total: rising(1) },
};

/** One of several instances does not answer: it has no series at all. */
const dead: Series = { [`svc_ready{${of('b')}}`]: '_x80', [target('b')]: constant(0) };

/** What happens once, in a series that begins with it: nothing rises. */
const once = '_x70 1x10';
const rare: Readonly<Record<string, Series>> = {
  AppendsFail: { 'svc_append_seconds_count{outcome="unavailable"}': once },
  ForeignEvents: { 'svc_log_foreign_events_total{stream="svc-signins"}': once },
  FactsRefused: { 'svc_facts_total{outcome="refused"}': once },
};

test('every alert has a condition here', async () => {
  const { groups } = parse(await readFile(rules, 'utf8')) as { groups: { rules: { alert: string }[] }[] };
  const alerts = groups.flatMap((group) => group.rules.map(({ alert }) => alert));
  expect(Object.keys(conditions).toSorted()).toEqual(alerts.toSorted());
});

test.skipIf(!installed)('promtool finds no mistake in the rules', async () => {
  expect((await run('promtool', ['check', 'rules', rules])).stdout).toContain('SUCCESS');
});

test.skipIf(!installed)(
  'every alert fires in its condition, and none in a healthy fleet',
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'svc-alerts-'));
    try {
      const testOf = (name: string, over: Series, alert: string, count: number) => ({
        name,
        interval: '1m',
        input_series: Object.entries({ ...healthy, ...over }).map(([series, values]) => ({ series, values })),
        promql_expr_test: [
          {
            expr: `count(max by (alertname) (ALERTS{alertname=~"${alert}",alertstate="firing"}))`,
            eval_time: '75m',
            exp_samples: count === 0 ? [] : [{ labels: '{}', value: count }],
          },
        ],
      });
      const tests = [...Object.entries(conditions), ...Object.entries(rare), ['InstanceNotReady', dead] as const].map(
        ([alert, series]) => testOf(alert, series, alert, 1),
      );
      const file = join(folder, 'test.yml');
      const suite = { rule_files: [rules], tests: [testOf('healthy', {}, '.*', 0), ...tests] };
      await writeFile(file, stringify(suite, { lineWidth: 0 }));
      const answer = await run('promtool', ['test', 'rules', file]).catch(
        (error: { stdout: string; stderr: string }) => error,
      );
      expect(answer.stdout + answer.stderr).not.toContain('FAILED');
      expect(answer.stdout).toContain('SUCCESS');
    } finally {
      await rm(folder, { recursive: true });
    }
  },
  60_000,
);
