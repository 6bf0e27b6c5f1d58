/**
 * The history of a node, a chain or an upstream: its traffic for each five minutes of a day, or each hour of 30 days. Joins the
 * points of the nodes that reported it. Implements decisions 360 and 363.
 */
import { z } from 'zod';
import { liveDefinition, nodesOf } from '../../../domain/chain/chain.js';
import { timestamp } from '../../../kernel/clock.js';
import { ServiceError } from '../../../kernel/errors.js';
import { hourMs, hoursKeptMs, slotMs, slotsKeptMs, type Point, type Points } from '../../../reports/history/points.js';
import { answers, ok } from '../answers/envelope.js';
import { idParams, orNotFound, pathId } from '../checks/path-id.js';
import { expected } from '../schemas/validation.js';
import type { RestApp, RestDeps } from '../deps.js';
import { documented, sample } from '../schemas/documented.js';
import { readHeaders } from '../schemas/headers.js';
import { instant, query } from '../schemas/query.js';
import { timeOf } from '../schemas/shared-schemas.js';
import { diallersOf } from '../../../reports/status.js';

const steps = {
  '5m': { ms: slotMs, keptMs: slotsKeptMs },
  '1h': { ms: hourMs, keptMs: hoursKeptMs },
} as const;

const historyQuery = query({
  from: instant.optional().meta({
    description: 'Earliest time; by default everything that is kept: 24 hours of `5m`, 30 days of `1h`',
    examples: [sample.time],
  }),
  to: instant.optional().meta({ description: 'Latest time, exclusive; by default now', examples: [sample.later] }),
  step: z
    .enum(['5m', '1h'], { error: expected('5m or 1h') })
    .optional()
    .meta({ description: 'Time span of a point', default: '5m' }),
});
type HistoryQuery = z.output<typeof historyQuery>;

const counter = (what: string, example: number) => documented(z.int(), what, example);
const point = z
  .object({
    at: timeOf('Start of its time span'),
    bytes_in: counter('Bytes from clients', 91_000),
    bytes_out: counter('Bytes to clients', 1_240_000),
    sessions: counter('New sessions; for an upstream, connections or requests', 41),
    errors: counter('Those that failed', 0),
    rtt_ms: documented(
      z.number().nullable(),
      "Mean round trip in milliseconds: a node's slowest link, the sum over a chain's links, an upstream's slowest node; null where nothing was measured",
      12.5,
    ),
    online: documented(
      z.number(),
      'Share of the time, 0 to 1, that the node was online; for a chain the lowest of its nodes, for an upstream the highest of those that dial it',
      1,
    ),
  })
  .meta({ id: 'HistoryPoint', description: 'Traffic in one time span' });
type HistoryPoint = z.output<typeof point>;

const historySchema = z
  .object({
    recorded: documented(z.boolean(), 'False where history is off: `SVC_HISTORY=off`', true),
    step: documented(z.enum(['5m', '1h']), 'Time span of a point', '5m'),
    points: documented(z.array(point), 'By time; time spans without a report are left out'),
  })
  .meta({ id: 'History', description: 'Traffic of a node, a chain or an upstream over time' });

/** How the points of several nodes become one. */
interface Joined {
  readonly rtt: 'sum' | 'highest';
  readonly online: 'lowest' | 'highest';
}

const schemaOf = <const T extends string>(operationId: T, whose: string, tag: string) =>
  ({
    operationId,
    summary: `Get the traffic of ${whose} over time`,
    description:
      'Counted from the reports of agents; restarts of agents and of the service lose nothing. The newest point still grows, and points that another instance counts show up to six minutes later.',
    tags: [tag],
    params: idParams,
    querystring: historyQuery,
    headers: readHeaders,
    response: answers(historySchema),
  }) as const;

export function nodeHistoryRoutes(app: RestApp, deps: RestDeps): void {
  app.route({
    method: 'GET',
    url: '/api/nodes/:id/history',
    config: { access: 'anyone', takes: 'none', readsStored: true },
    schema: schemaOf('getNodeHistory', 'a node', 'nodes'),
    handler: async (request) => {
      const node = orNotFound(deps.fleet.node(pathId(request.params, 'node')), 'node');
      return ok(await historyOf(deps, node, [node.id], { rtt: 'highest', online: 'highest' }, request.query));
    },
  });
}

export function chainHistoryRoutes(app: RestApp, deps: RestDeps): void {
  app.route({
    method: 'GET',
    url: '/api/l4-chains/:id/history',
    config: { access: 'anyone', takes: 'none', readsStored: true },
    schema: schemaOf('getL4ChainHistory', 'an L4 chain', 'l4-chains'),
    handler: async (request) => {
      const chain = orNotFound(deps.fleet.chain(pathId(request.params, 'L4 chain')), 'L4 chain');
      const nodes = nodesOf(liveDefinition(chain));
      return ok(await historyOf(deps, chain, nodes, { rtt: 'sum', online: 'lowest' }, request.query));
    },
  });
}

export function upstreamHistoryRoutes(app: RestApp, deps: RestDeps): void {
  app.route({
    method: 'GET',
    url: '/api/l4-upstreams/:id/history',
    config: { access: 'anyone', takes: 'none', readsStored: true },
    schema: schemaOf('getL4UpstreamHistory', 'an L4 upstream', 'l4-upstreams'),
    handler: async (request) => {
      const upstream = orNotFound(deps.fleet.upstream(pathId(request.params, 'L4 upstream')), 'L4 upstream');
      const nodes = [...diallersOf(deps.fleet, upstream.id)];
      return ok(await historyOf(deps, upstream, nodes, { rtt: 'highest', online: 'highest' }, request.query));
    },
  });
}

/** @param nodeIds nodes that carry the resource now. @throws ServiceError `invalid_request`, `unavailable` */
async function historyOf(
  { reports: history, clock }: RestDeps,
  { id: resourceId, created_at }: { readonly id: string; readonly created_at: string },
  nodeIds: readonly string[],
  joined: Joined,
  asked: HistoryQuery,
): Promise<z.output<typeof historySchema>> {
  const name = asked.step ?? '5m';
  const step = steps[name];
  const now = clock.now();
  const to = asked.to === undefined ? now + 1 : Date.parse(asked.to);
  const from = asked.from === undefined ? Math.min(to, now) - step.keptMs : Date.parse(asked.from);
  if (from > to) throw new ServiceError('invalid_request', `from: expected a time before "to", ${timestamp(to)}`);
  const kept = Math.max(from, now - step.keptMs, Date.parse(created_at));
  const within = (number: number): boolean => (number + 1) * step.ms > kept && number * step.ms < to;

  const reported = await history.history(resourceId, name, kept);
  const ownOf = async (nodeId: string): Promise<Points | undefined> => {
    const own = nodeId === resourceId ? reported : await history.history(nodeId, name, kept);
    return own.get(nodeId);
  };
  const presence = await Promise.all(nodeIds.map(ownOf));
  const lines = [...reported.values()];
  const numbers = new Set([...lines, ...presence].flatMap((points) => [...(points?.keys() ?? [])]).filter(within));
  const points = [...numbers]
    .toSorted((a, b) => a - b)
    .map((number) => ({
      at: timestamp(number * step.ms),
      ...pointOf(
        lines.map((line) => line.get(number)),
        joined,
      ),
      online: onlineIn(
        presence.map(
          (line) => (line?.get(number)?.online_ms ?? 0) / Math.min(step.ms, Math.max(1, now - number * step.ms)),
        ),
        joined.online,
      ),
    }));
  return { recorded: history.recordsHistory, step: name, points };
}

function pointOf(points: readonly (Point | undefined)[], { rtt }: Joined): Omit<HistoryPoint, 'at' | 'online'> {
  const sum = (of: (point: Point) => number): number =>
    points.reduce((total, one) => Math.min(total + (one === undefined ? 0 : of(one)), Number.MAX_SAFE_INTEGER), 0);
  const trips = points.flatMap((one) => (one === undefined || one.rtts === 0 ? [] : [one.rtt_us / one.rtts / 1000]));
  const trip = rtt === 'sum' ? trips.reduce((total, ms) => total + ms, 0) : Math.max(0, ...trips);
  return {
    bytes_in: sum(({ bytes_in }) => bytes_in),
    bytes_out: sum(({ bytes_out }) => bytes_out),
    sessions: sum(({ sessions }) => sessions),
    errors: sum(({ errors }) => errors),
    rtt_ms: trips.length === 0 ? null : Math.round(trip * 1000) / 1000,
  };
}

function onlineIn(shares: readonly number[], which: Joined['online']): number {
  if (shares.length === 0) return 0;
  const share = which === 'lowest' ? Math.min(...shares) : Math.max(...shares);
  return Math.round(Math.min(1, Math.max(0, share)) * 10_000) / 10_000;
}
