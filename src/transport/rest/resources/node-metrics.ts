/**
 * Metrics that agents report: those of a node, and the health of an upstream as the nodes that dial it see it. Implements
 * `docs/contract/rest.md#nodes` and `docs/contract/rest.md#l4-upstreams`.
 */
import { z } from 'zod';
import { sortKey } from '../../../domain/resource/meta.js';
import { sortedBy } from '../../../kernel/compare-text.js';
import type { MetricsFacts } from '../../../reports/port.js';
import { answers, ok } from '../answers/envelope.js';
import { listInPieces, sendPieces } from '../answers/streamed-json.js';
import { orNotFound, pathId } from '../checks/path-id.js';
import type { RestApp, RestDeps } from '../deps.js';
import { diallersOf, nameOfNode } from '../../../reports/status.js';
import { component, documented, sample } from '../schemas/documented.js';
import { nodeId, time } from '../schemas/shared-schemas.js';

const counter = (what: string, example: number) => documented(z.int(), what, example);
const measured = (what: string, example: number) => documented(z.number(), what, example);

const connections = component('ConnectionMetrics', 'Connections of the agent', {
  active: counter('Open at the time of the report', 12),
  accepted: counter('Accepted since the agent started', 4_071),
  closed: counter('Closed since', 4_059),
  failed: counter('Failed since', 3),
  handshake_failures: counter('Handshakes that failed since', 1),
});

const bandwidth = component('BandwidthMetrics', 'Bytes that the agent moved', {
  bytes_in: counter('Bytes from clients since the agent started', 91_000_000),
  bytes_out: counter('Bytes to clients since', 1_240_000_000),
  bits_in_per_second: measured('Over the interval of the report', 120_000),
  bits_out_per_second: measured('Over the interval of the report', 1_800_000),
  listeners: documented(
    z.array(
      component('ListenerBandwidth', 'Bytes of a listener', {
        transport: documented(z.string(), 'tcp or udp', 'tcp'),
        listen_addr: documented(z.string(), 'Where it listens', '0.0.0.0'),
        listen_port: documented(z.int(), 'Its port', 443),
        bytes_in: counter('Bytes from clients', 91_000_000),
        bytes_out: counter('Bytes to clients', 1_240_000_000),
      }),
    ),
    'By listener',
  ),
});

const upstream = {
  requests: counter('Connections or requests to it', 4_071),
  errors: counter('Those that failed', 3),
  latency_p99_ms: measured('Of the interval of the report, in milliseconds', 18.4),
};

const gateway = component('GatewayMetrics', 'Requests through the agent', {
  requests: counter('Requests since the agent started', 4_071),
  errors: counter('Those that failed', 3),
  worker_restarts: counter('Restarts of its workers', 0),
  latency_p50_ms: measured('Of the interval of the report, in milliseconds', 2.1),
  latency_p99_ms: measured('Of the interval of the report, in milliseconds', 18.4),
  upstreams: documented(
    z.array(
      component('UpstreamMetrics', 'An upstream, as the agent sees it', {
        cluster: documented(z.string(), 'Name of the cluster in the configuration', sample.upstream),
        upstream_id: documented(z.string().nullable(), "The upstream; null for a route's cluster", sample.upstream),
        upstream_name: documented(z.string().nullable(), 'Its name', 'web'),
        healthy: documented(z.boolean(), 'Whether the agent reaches it', true),
        ...upstream,
      }),
    ),
    'By upstream',
  ),
});

const nodeMetrics = component('NodeMetrics', 'The last metrics of an agent; fields that it has not reported are null', {
  reported_at: documented(time.nullable(), 'When the report came; null before one', sample.later),
  connections: documented(connections.nullable(), 'Its connections'),
  bandwidth: documented(bandwidth.nullable(), 'Bytes that it moved'),
  gateway: documented(gateway.nullable(), 'Its requests and upstreams'),
});

const health = component('UpstreamHealth', 'An upstream, as one of the nodes that dial it reports it', {
  node_id: nodeId,
  node_name: documented(z.string(), 'Its name', 'exit-1'),
  healthy: documented(z.boolean().nullable(), 'Whether it reaches the upstream; null before a report', true),
  since: documented(time.nullable(), 'Since when; null before a report', sample.later),
  requests: documented(z.int().nullable(), 'Connections or requests to it', 4_071),
  errors: documented(z.int().nullable(), 'Those that failed', 3),
  latency_p99_ms: documented(z.number().nullable(), 'Of the interval of the report, in milliseconds', 18.4),
});

export function nodeMetricsRoutes(app: RestApp, deps: RestDeps): void {
  app.get('/api/nodes/:id/metrics', {
    config: { access: 'anyone', takes: 'none' },
    schema: {
      operationId: 'getNodeMetrics',
      summary: 'Get the last metrics that the agent reported',
      description: 'Counters start at 0 with each process of the agent.',
      response: answers(nodeMetrics),
    },
    handler: async (request) => {
      const { id } = orNotFound(deps.fleet.node(pathId(request.params, 'node')), 'node');
      const reported = deps.reports.reportedMetrics(id);
      if (reported === undefined) return ok({ reported_at: null, connections: null, bandwidth: null, gateway: null });
      const { connections, bandwidth, gateway } = reported.report;
      return ok({
        reported_at: reported.reported_at,
        connections,
        bandwidth,
        gateway: gateway && withUpstreams(deps, gateway),
      });
    },
  });
}

export function upstreamHealthRoutes(app: RestApp, deps: RestDeps): void {
  app.get('/api/l4-upstreams/:id/health', {
    config: { access: 'anyone', takes: 'none' },
    schema: {
      operationId: 'getL4UpstreamHealth',
      summary: 'Get the health of an L4 upstream as the nodes that dial it report it',
      description: 'One item for each node with the last hop of a chain that is deployed to it, by name.',
      response: answers(
        component('UpstreamHealths', 'The health of an upstream, by node', {
          items: documented(z.array(health), 'The nodes, by name'),
        }),
      ),
    },
    handler: async (request, reply) => {
      const { id } = orNotFound(deps.fleet.upstream(pathId(request.params, 'L4 upstream')), 'L4 upstream');
      return sendPieces(reply, healthPieces(deps, id));
    },
  });
}

async function* healthPieces(deps: RestDeps, upstreamId: string): AsyncGenerator<string, void> {
  const diallers = [...diallersOf(deps.fleet, upstreamId)].map((id) => ({ id, name: nameOfNode(deps, id) }));
  const nodes = sortedBy(diallers, ({ name }) => sortKey(name));
  yield '{"items":';
  yield* listInPieces(nodes, (slice) => slice.map(({ id, name }) => healthSeenBy(deps, id, name, upstreamId)));
  yield '}';
}

function healthSeenBy({ reports }: RestDeps, node_id: string, node_name: string, upstreamId: string) {
  const reported = reports.reportedMetrics(node_id);
  const seen = reported?.report.gateway?.upstreams.find(({ cluster }) => cluster === upstreamId);
  return {
    node_id,
    node_name,
    healthy: seen?.healthy ?? null,
    since: seen === undefined ? null : (reported?.health_since[upstreamId] ?? null),
    requests: seen?.requests ?? null,
    errors: seen?.errors ?? null,
    latency_p99_ms: seen?.latency_p99_ms ?? null,
  } satisfies z.output<typeof health>;
}

type Gateway = NonNullable<MetricsFacts['gateway']>;

function withUpstreams({ fleet }: RestDeps, gateway: Gateway) {
  return {
    ...gateway,
    upstreams: gateway.upstreams.map((reported) => {
      const known = fleet.upstream(reported.cluster);
      return { ...reported, upstream_id: known?.id ?? null, upstream_name: known?.name ?? null };
    }),
  };
}
