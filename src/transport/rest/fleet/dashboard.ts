/**
 * The dashboard: figures about the whole fleet. Callers share one reading of the agents' reports.
 * Implements `docs/contract/rest.md#dashboard`.
 */
import { ServiceError } from '../../../kernel/errors.js';
import { z } from 'zod';
import { yieldToEventLoop } from '../../../kernel/background.js';
import type { AuditEntry } from '../../../projections/port.js';
import { auditReader, entrySchema } from '../resources/audit.js';
import type { RestApp, RestDeps } from '../deps.js';
import { answers, ok } from '../answers/envelope.js';
import { addTraffic, createFleetReports, noTraffic } from './fleet-reports.js';
import type { FleetReports, NodeReport, Traffic } from './fleet-reports.js';
import { applyState } from './apply-state.js';
import { countRunning } from './listener-states.js';
import { readHeaders } from '../schemas/headers.js';
import { noQuery } from '../schemas/query.js';
import { documented } from '../openapi/openapi-text.js';
import { timeOf } from '../schemas/shared-schemas.js';
import { tuning } from '../tuning.js';

const count = (what: string, example: number) => documented(z.int().min(0), what, example);

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
    bytes_in: count('Bytes from clients', 1_048_576),
    bytes_out: count('Bytes to clients', 524_288),
    active_sessions: count('Open sessions of online nodes', 17),
    total_sessions: count('Sessions, over all processes of the agents', 5_210),
    error_sessions: count('Sessions that failed', 3),
  })
  .meta({
    id: 'TrafficSums',
    description: 'Sums over the listeners of all nodes and the processes of their agents; they never fall',
  });

const controlFigures = z
  .object({
    sessions: count('Agent sessions on all instances', 10),
    heartbeats_per_minute: count('Heartbeats that all instances took in the last minute', 60),
    last_event_position: count('Position in the log that the read models have reached', 90_112),
  })
  .meta({ id: 'ControlFigures', description: 'The control plane itself' });

const statsSchema = z
  .object({
    nodes: documented(nodeCounts, 'Nodes'),
    l4_chains: documented(chainCounts, 'Chains'),
    l4_upstreams: documented(enabledCounts, 'Upstreams'),
    routes: documented(enabledCounts, 'Legacy routes'),
    l3_networks: documented(enabledCounts, 'L3 networks'),
    credentials: documented(credentialCounts, 'Credentials'),
    listeners: documented(listenerCounts, 'Listeners on all nodes'),
    traffic: documented(trafficSums, 'Traffic through all nodes'),
    control: documented(controlFigures, 'The control plane'),
    recent_audit: documented(z.array(entrySchema), 'The newest ten entries that the role of the caller may see'),
    generated_at: timeOf('Nothing in the answer is older'),
  })
  .meta({ id: 'DashboardStats', description: 'Figures about the whole fleet' });

export function dashboardRoutes(app: RestApp, deps: RestDeps): void {
  const fleetReports = createFleetReports(deps, { reuseMs: tuning.fleetReports.reuseMs, links: false });

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
      const [reports, resources, heartbeats, audit] = await Promise.all([
        fleetReports(),
        deps.fleet.resourceCounts(),
        deps.heartbeatsPerMinute().catch(whileAway(0)),
        recentEntries(deps, auditReader(request)),
      ]);
      return ok({
        ...(await tally(deps, reports)),
        ...resources,
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

/** The newest entries; none while the read store is away. */
async function recentEntries(
  { projections, readStoreAway }: RestDeps,
  reader: ReturnType<typeof auditReader>,
): Promise<readonly AuditEntry[]> {
  if (readStoreAway()) return [];
  const { auditEntries: pageSize } = tuning.dashboard;
  return projections.audit.list({ page: 1, pageSize, ...reader }).then(({ items }) => items, whileAway([]));
}

type NodeCounts = z.output<typeof nodeCounts>;
type ListenerCounts = z.output<typeof listenerCounts>;

/** Counts nodes, their listeners and their traffic: the wanted state of each node beside its agent's reports. */
async function tally(
  { fleet }: RestDeps,
  reports: FleetReports,
): Promise<{ readonly nodes: NodeCounts; readonly listeners: ListenerCounts; readonly traffic: Traffic }> {
  const nodes: NodeCounts = { total: 0, online: 0, offline: 0, pending: 0, converged: 0, rejected: 0 };
  const listeners: ListenerCounts = { intended: 0, running: 0, missing: 0, unexpected: 0 };
  let traffic = noTraffic;
  const ids = [...fleet.nodeIds()];
  for (const [index, id] of ids.entries()) {
    const report = reports.nodes.get(id);
    const isOnline = reports.online.has(id);
    countNode(nodes, fleet.generation(id), isOnline, report?.agent);
    countListeners(listeners, fleet.liveListeners(id), isOnline ? report : undefined);
    // Bytes of a silent node still count; its sessions have ended, or nobody knows.
    const own = report?.traffic ?? noTraffic;
    traffic = addTraffic(traffic, isOnline ? own : { ...own, active_sessions: 0 });
    if (index % tuning.dashboard.nodesPerTurn === 0) await yieldToEventLoop();
  }
  return { nodes, listeners, traffic };
}

function countNode(
  nodes: NodeCounts,
  generation: number | undefined,
  isOnline: boolean,
  agent: NodeReport['agent'],
): void {
  nodes.total += 1;
  if (isOnline) nodes.online += 1;
  else if (agent?.connected_once === true) nodes.offline += 1;
  else nodes.pending += 1;
  if (generation === undefined || agent === undefined) return;
  // A reject does not depend on what was pushed.
  const { state } = applyState(generation, agent, undefined);
  if (state === 'rejected') nodes.rejected += 1;
  else if (agent.applied?.generation === generation) nodes.converged += 1;
}

/** @param report undefined for a silent node, whose last report says nothing about now */
function countListeners(
  listeners: ListenerCounts,
  intended: ReadonlySet<string>,
  report: NodeReport | undefined,
): void {
  listeners.intended += intended.size;
  const states = report?.listeners;
  const running = states === undefined ? 0 : countRunning(states, intended);
  listeners.running += running;
  listeners.missing += intended.size - running;
  if (states === undefined) return;
  listeners.unexpected += states.running.size - running;
  for (const key of states.notRunning.keys()) if (!intended.has(key)) listeners.unexpected += 1;
}

/** Gives a value in place of one that the read store does not give now. */
const whileAway =
  <T>(instead: T) =>
  (error: unknown): T => {
    if (error instanceof ServiceError && error.code === 'unavailable') return instead;
    throw error;
  };
