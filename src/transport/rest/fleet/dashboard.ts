/**
 * The dashboard: figures about the whole fleet, at a cost that does not grow with how often they are asked for.
 * Implements `docs/contract/rest.md#dashboard`.
 */
import { ServiceError } from '../../../kernel/errors.js';
import { z } from 'zod';
import { createShared } from '../../../kernel/shared.js';
import type { AuditEntry } from '../../../projections/port.js';
import { entrySchema } from '../resources/audit.js';
import { callerOf } from '../checks/consistency.js';
import type { RestApp, RestDeps } from '../deps.js';
import { answers, ok } from '../answers/envelope.js';
import { createFleetReports } from './fleet-reports.js';
import { createFleetTally } from './fleet-tally.js';
import { readHeaders } from '../schemas/headers.js';
import { noQuery } from '../schemas/query.js';
import { described } from '../openapi/openapi-text.js';
import { timeOf } from '../schemas/shared-schemas.js';
import { tuning } from '../tuning.js';

const count = (what: string, example: number) => described(z.int().min(0), what, example);
const sum = (what: string, example: number) => described(z.number().min(0), what, example);

const nodeCounts = z
  .object({
    total: count('All nodes', 12),
    online: count('Nodes with a live session', 10),
    offline: count('Nodes without one that had one before', 1),
    pending: count('Nodes whose agent never connected', 1),
    converged: count(
      'Nodes that have applied their newest generation and not rejected it since, whatever their status',
      10,
    ),
    rejected: count('Nodes that rejected their newest generation', 0),
  })
  .meta({ id: 'NodeCounts', description: 'How many nodes, and in which state' });

const chainCounts = z
  .object({
    total: count('All chains', 8),
    enabled: count('Enabled chains', 7),
    deployed: count('Chains with the status `deployed`', 5),
    modified: count('Chains with the status `modified`', 1),
  })
  .meta({ id: 'ChainCounts', description: 'How many chains, and in which state' });

const enabledCounts = z
  .object({ total: count('All of them', 4), enabled: count('Those that are enabled', 3) })
  .meta({ id: 'EnabledCounts', description: 'How many, and how many of them are enabled' });

const credentialCounts = z
  .object({
    total: count('All credentials', 6),
    expiring_30d: count('Certificates that are valid and end within 30 days', 1),
    expired: count('Certificates that have ended', 0),
  })
  .meta({ id: 'CredentialCounts', description: 'How many credentials, and how long they last' });

const listenerCounts = z
  .object({
    intended: count('Listeners of deployed chains, enabled routes and enabled L3 networks', 20),
    running: count('Intended, and running as the agent of an online node reports it', 18),
    missing: count('Intended, but not running; all listeners of nodes that are not online', 2),
    unexpected: count('Reported by an online node, but not intended', 0),
  })
  .meta({ id: 'ListenerCounts', description: 'What should listen beside what agents report' });

const trafficSums = z
  .object({
    bytes_in: sum('Bytes from clients', 1_048_576),
    bytes_out: sum('Bytes to clients', 524_288),
    active_sessions: sum('Open sessions of online nodes', 17),
    total_sessions: sum('Sessions since the agents started', 5_210),
    error_sessions: sum('Sessions that failed', 3),
  })
  .meta({ id: 'TrafficSums', description: 'Sums over the listeners that agents reported last' });

const controlFigures = z
  .object({
    sessions: count('Agent sessions on all instances', 10),
    heartbeats_per_minute: count('Heartbeats that all instances took in the last minute', 60),
    last_event_position: count('Position in the log that the read models have reached', 90_112),
  })
  .meta({ id: 'ControlFigures', description: 'The control plane itself' });

const statsSchema = z
  .object({
    nodes: described(nodeCounts, 'Nodes'),
    l4_chains: described(chainCounts, 'Chains'),
    l4_upstreams: described(enabledCounts, 'Upstreams'),
    routes: described(enabledCounts, 'Legacy routes'),
    l3_networks: described(enabledCounts, 'L3 networks'),
    credentials: described(credentialCounts, 'Credentials'),
    listeners: described(listenerCounts, 'Listeners on all nodes'),
    traffic: described(trafficSums, 'Traffic through all nodes'),
    control: described(controlFigures, 'The control plane'),
    recent_audit: described(z.array(entrySchema), 'The newest ten entries that the role of the caller may see'),
    generated_at: timeOf('Nothing in the answer is older'),
  })
  .meta({ id: 'DashboardStats', description: 'Figures about the whole fleet' });

export function dashboardRoutes(app: RestApp, deps: RestDeps): void {
  const tallied = createFleetTally(deps, createFleetReports(deps, { reuseMs: tuning.dashboard.reuseMs, links: false }));
  const recent = { admin: recentEntries(deps, true), others: recentEntries(deps, false) };

  app.route({
    method: 'GET',
    url: '/api/dashboard/stats',
    config: { access: 'anyone', takes: 'none', readsStored: true },
    schema: {
      operationId: 'getDashboardStats',
      summary: 'Figures about the whole fleet',
      description:
        'Counts of resources follow every command at once. What agents report is read at most once a second, and more seldom in a fleet of thousands of nodes.',
      tags: ['dashboard'],
      querystring: noQuery,
      headers: readHeaders,
      response: answers(statsSchema),
    },
    handler: async (request) => {
      const [{ nodes, listeners, traffic, reports }, resources, heartbeats, audit] = await Promise.all([
        tallied(),
        deps.fleet.resourceCounts(),
        deps.heartbeatsPerMinute().catch(whileAway(0)),
        callerOf(request).role === 'admin' ? recent.admin() : recent.others(),
      ]);
      return ok({
        nodes,
        ...resources,
        listeners,
        traffic,
        control: {
          sessions: reports.online.size,
          heartbeats_per_minute: heartbeats,
          last_event_position: deps.projections.status().position,
        },
        recent_audit: [...audit],
        generated_at: reports.at,
      });
    },
  });
}

/** The newest entries, listed again when the read models have moved on: in a long log that takes some milliseconds. */
function recentEntries(
  { projections, clock, readStoreAway }: RestDeps,
  includeAccounts: boolean,
): () => Promise<readonly AuditEntry[]> {
  const { auditEntries: pageSize, reuseMs } = tuning.dashboard;
  const position = (): number => projections.status().position;
  let known: readonly AuditEntry[] = [];
  const newest = createShared(
    async () => (await projections.audit.list({ page: 1, pageSize, includeAccounts })).items,
    {
      stamp: position,
      isFresh: ({ stamp, begunAt }) => stamp === position() && clock.monotonic() - begunAt < reuseMs,
      now: clock.monotonic,
    },
  );
  return async () => {
    if (!readStoreAway()) known = await newest().catch(whileAway(known));
    return known;
  };
}

/** Gives a value in place of one that the read store does not give now. */
const whileAway =
  <T>(instead: T) =>
  (error: unknown): T => {
    if (error instanceof ServiceError && error.code === 'unavailable') return instead;
    throw error;
  };
