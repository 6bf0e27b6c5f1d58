/** The dashboard: figures about the whole fleet. Implements `docs/contract/rest.md#dashboard`. */
import { z } from 'zod';
import { healthCauses } from '../../../domain/chain/health.js';
import { mattersOf, type UnwellLists } from '../../../domain/matters/matters.js';
import { matterKinds, severities } from '../../../domain/matters/kinds.js';
import { yieldToEventLoop } from '../../../kernel/background.js';
import { timestamp } from '../../../kernel/clock.js';
import { limits } from '../../../kernel/limits.js';
import { withPauses } from '../../../kernel/pieces.js';
import { answers, ok } from '../answers/envelope.js';
import { callerOf } from '../checks/consistency.js';
import type { RestApp, RestDeps } from '../deps.js';
import { component, documented, sample } from '../schemas/documented.js';
import { listOf } from '../fleet/matter-lists.js';
import { idOf, timeOf } from '../schemas/shared-schemas.js';
import { entrySchema, shownEntry } from './audit.js';

const count = (what: string, example: number) => documented(z.int().min(0), what, example);

const nodeCounts = component('NodeCounts', 'Number of nodes, by state', {
  total: count('All nodes', 12),
  online: count('Nodes with a live session', 10),
  offline: count('Nodes that had a session before, but have none now', 1),
  pending: count('Nodes whose agent never connected', 1),
  converged: count(
    'Nodes that have applied their newest generation and not rejected it since, whatever their status',
    10,
  ),
  rejected: count('Nodes that rejected their newest generation', 0),
  held: count('Nodes that a rollout holds back', 0),
});

const chainCounts = component('ChainCounts', 'Number of chains, by state', {
  total: count('All chains', 8),
  enabled: count('Enabled chains', 7),
  deployed: count('Chains with the status `deployed`', 5),
  modified: count('Chains with the status `modified`', 1),
  health: documented(
    component('ChainHealthCounts', 'Number of chains, by health', {
      ok: count('Chains that work', 5),
      degraded: count('Chains that work with faults', 0),
      down: count('Chains that do not work', 1),
      unknown: count('Chains without reports', 0),
    }),
    'Health of deployed and enabled chains',
  ),
});

const enabledCounts = component('EnabledCounts', 'Number of resources, and of enabled ones', {
  total: count('All', 4),
  enabled: count('Enabled ones', 3),
});

const upstreamCounts = component('UpstreamCounts', 'Number of upstreams, by health', {
  total: count('All upstreams', 4),
  enabled: count('Enabled ones', 3),
  healthy: count('Enabled ones that a node reports as healthy, and none as unhealthy', 2),
  unhealthy: count('Enabled ones that an online node reports as unhealthy', 1),
  unknown: count('Enabled ones without a report', 0),
});

const credentialCounts = component('CredentialCounts', 'Number of credentials, and of those that expire', {
  total: count('All credentials', 6),
  expiring_30d: count('Valid certificates that expire within 30 days', 1),
  expired: count('Expired certificates', 0),
});

const listenerCounts = component('ListenerCounts', 'Number of intended and of reported listeners', {
  intended: count('Listeners of deployed chains, enabled routes and enabled L3 networks', 20),
  running: count('Intended listeners that an online node reports as running', 18),
  missing: count(
    'Intended listeners that are not running or not reported since the last apply, and all those of nodes that are not online',
    2,
  ),
  unexpected: count('Listeners that an online node reports, but that are not intended', 0),
});

const trafficSums = component(
  'TrafficSums',
  'Sums over the listeners of all nodes and the processes of their agents; they never decrease',
  {
    bytes_in: count('Bytes from clients', 1_048_576),
    bytes_out: count('Bytes to clients', 524_288),
    active_sessions: count('Open sessions of online nodes', 17),
    total_sessions: count('All sessions, summed over agent processes', 5_210),
    error_sessions: count('Sessions that failed', 3),
    last_5m: documented(
      component('RecentTraffic', 'Increase of the sums', {
        bytes_in: count('Bytes from clients', 65_536),
        bytes_out: count('Bytes to clients', 32_768),
        total_sessions: count('Sessions', 120),
        error_sessions: count('Sessions that failed', 1),
      }),
      'Increase in the last five minutes, as seen by the running instances',
    ),
  },
);

const matterSchema = component('Matter', 'A matter that needs attention', {
  severity: documented(z.enum(severities), 'How bad it is; `soon` is not yet a fault', 'down'),
  kind: documented(z.enum(matterKinds), 'Kind of the matter', 'chain_down'),
  cause: documented(
    z.enum(healthCauses).nullable(),
    'Why chains are down or degraded: the first cause that applies; null for other kinds',
    'upstream_unhealthy',
  ),
  count: count('Number of chains or other resources that it concerns', 12),
  sentence: documented(z.string(), 'For people', '12 chains are down because upstream "web" is unhealthy'),
  resources: documented(
    z.array(
      component('ConcernedResource', 'A resource that a matter concerns', {
        type: documented(z.string(), 'Type', 'l4_chain'),
        id: idOf('Its id, a UUID', sample.chain),
        name: documented(z.string(), 'Name', 'front'),
        reason: documented(z.string(), 'Why it is here', 'upstream "web" is unhealthy, as "exit-1" reports'),
      }),
    ),
    `The first by name, at most ${limits.rest.matterResources}`,
  ),
  filter: documented(
    z.string().nullable(),
    'Path and query of the list that shows them; null without one',
    '/api/l4-chains?health=down',
  ),
});

const controlFigures = component('ControlFigures', 'The control plane itself', {
  sessions: count('Agent sessions on all instances', 10),
  heartbeats_per_minute: count('Heartbeats that all instances took in the last minute', 60),
  last_event_position: count('Position in the log that the read models have reached', 90_112),
});

const statsSchema = component('DashboardStats', 'Figures about the whole fleet', {
  nodes: documented(nodeCounts, 'Nodes'),
  l4_chains: documented(chainCounts, 'Chains'),
  l4_upstreams: documented(upstreamCounts, 'Upstreams'),
  routes: documented(enabledCounts, 'Legacy routes'),
  l3_networks: documented(enabledCounts, 'L3 networks'),
  credentials: documented(credentialCounts, 'Credentials'),
  listeners: documented(listenerCounts, 'Listeners on all nodes'),
  traffic: documented(trafficSums, 'Traffic through all nodes'),
  matters: documented(
    z.array(matterSchema),
    'Matters that need attention, worst first, grouped by cause; smaller causes of one kind are summed up after the largest ones',
  ),
  control: documented(controlFigures, 'The control plane'),
  recent_audit: documented(z.array(entrySchema), 'The newest ten entries that the caller may see, without sign-ins'),
  generated_at: timeOf('When the answer was made'),
});

export function dashboardRoutes(app: RestApp, deps: RestDeps): void {
  app.get('/api/dashboard/stats', {
    config: { access: 'anyone', takes: 'none' },
    schema: {
      operationId: 'getDashboardStats',
      summary: 'Get figures about the whole fleet, and what needs attention',
      description:
        'Changes by commands and by reports of agents show at once. The fleet is well when no matter is `down` or `degraded` and the answer has no `x-telemetry-stale`.',
      response: answers(statsSchema),
    },
    handler: async (request) => {
      const admin = callerOf(request).role === 'admin';
      const [fleet, resources, audit] = await Promise.all([
        deps.counts.now(),
        deps.fleet.resourceCounts(),
        deps.recent.of({ admin }),
      ]);
      // With everything down, the sums take a turn.
      await yieldToEventLoop();
      const webhooks = admin ? stoppedWebhooks(deps) : [];
      const late = deps.backups.late();
      const beside = { stoppedWebhooks: webhooks, lateBackups: late === undefined ? [] : [late] };
      const now = deps.clock.now();
      const matters = await withPauses(mattersOf({ ...fleet.unwell, ...beside }, now));
      const activity = deps.activity();
      return ok({
        nodes: fleet.nodes,
        ...resources,
        l4_chains: { ...resources.l4_chains, health: fleet.chains },
        l4_upstreams: { ...resources.l4_upstreams, ...fleet.upstreams },
        listeners: fleet.listeners,
        traffic: { ...fleet.traffic, last_5m: activity.last_5m },
        // The schema leaves out their causes, which the sentence and the filter tell.
        matters: matters.map((matter) => ({ ...matter, filter: listOf(matter, timestamp(now)) })),
        control: {
          sessions: fleet.nodes.online,
          heartbeats_per_minute: activity.heartbeats_per_minute,
          last_event_position: deps.projections.status().position,
        },
        recent_audit: audit.map((entry) => shownEntry(deps, entry)),
        generated_at: fleet.at,
      });
    },
  });
}

/** Webhooks that have given up; only admins see them. */
function stoppedWebhooks({ fleet }: RestDeps): UnwellLists['stoppedWebhooks'] {
  const { items } = fleet.resources.webhook.list({ page: 1, pageSize: limits.webhooks.inAll, sort: 'name' });
  return items.flatMap(({ id, name, enabled, stopped }) =>
    enabled && stopped !== null ? [{ id, name, reason: stopped }] : [],
  );
}
