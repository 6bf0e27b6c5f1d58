/**
 * The history of a node, a chain, an upstream or the fleet: its traffic for each minute of an hour, each five minutes of a day, or
 * each hour of 30 days. Joins the points of the nodes that reported it. Implements `docs/contract/rest.md#what-pages-need-extension`, and
 * decisions 360 and 363.
 */
import { z } from 'zod';
import { liveDefinition, nodesOf } from '../../../domain/chain/chain.js';
import { createTurns } from '../../../kernel/background.js';
import { timestamp } from '../../../kernel/clock.js';
import { ServiceError } from '../../../kernel/errors.js';
import type { HistoryStep } from '../../../reports/history/history.js';
import {
  fleetSeries,
  hourMs,
  hoursKeptMs,
  minuteMs,
  minutesKeptMs,
  slotMs,
  slotsKeptMs,
  type Point,
  type Points,
} from '../../../reports/history/points.js';
import { answers, ok } from '../answers/envelope.js';
import { idParams, orNotFound, pathId } from '../checks/path-id.js';
import { expected } from '../schemas/validation.js';
import type { RestApp, RestDeps } from '../deps.js';
import { component, documented, sample } from '../schemas/documented.js';
import { readHeaders } from '../schemas/headers.js';
import { instant, query } from '../schemas/query.js';
import { time, timeOf } from '../schemas/shared-schemas.js';
import { diallersOf } from '../../../reports/status.js';
import { tuning } from '../tuning.js';

/** The finest first. */
const steps = {
  '1m': { ms: minuteMs, keptMs: minutesKeptMs },
  '5m': { ms: slotMs, keptMs: slotsKeptMs },
  '1h': { ms: hourMs, keptMs: hoursKeptMs },
} as const;
const stepNames = ['1m', '5m', '1h'] as const;

const historyQuery = query({
  from: instant.optional().meta({
    description:
      'Earliest time; by default everything that is kept: an hour of `1m`, 24 hours of `5m`, 30 days of `1h`',
    examples: [sample.time],
  }),
  to: instant.optional().meta({ description: 'Latest time, exclusive; by default now', examples: [sample.later] }),
  step: z
    .enum(stepNames, { error: expected('1m, 5m or 1h') })
    .optional()
    .meta({ description: 'Time span of a point; by default the finest that reaches back to `from`, without it `5m`' }),
});
type HistoryQuery = z.output<typeof historyQuery>;

const counter = (what: string, example: number) => documented(z.int(), what, example);
const point = component('HistoryPoint', 'Traffic in one time span', {
  at: timeOf('Start of its time span'),
  bytes_in: counter('Bytes from clients', 91_000),
  bytes_out: counter('Bytes to clients', 1_240_000),
  sessions: counter('New sessions; for an upstream, connections or requests', 41),
  errors: counter('Those that failed', 0),
  rtt_ms: documented(
    z.number().nullable(),
    "Mean round trip in milliseconds: a node's slowest link, the sum over a chain's links, an upstream's slowest node, of the fleet the mean of its nodes; of `1m` the last one; null where nothing was measured",
    12.5,
  ),
  online: documented(
    z.number(),
    'Share of the time, 0 to 1, that the node was online; for a chain the lowest of its nodes, for an upstream the highest of those that dial it, for the fleet the mean of the nodes that it has now',
    1,
  ),
});
type HistoryPoint = z.output<typeof point>;

const historySchema = component('History', 'Traffic of a node, a chain, an upstream or the fleet over time', {
  recorded: documented(z.boolean(), 'False where history is off: `SVC_HISTORY=off`', true),
  recorded_since: documented(
    time.nullable(),
    'When this instance began to record points of `1m`, which are in memory; null for the other steps',
    null,
  ),
  step: documented(z.enum(stepNames), 'Time span of a point', '5m'),
  points: documented(z.array(point), 'By time; time spans without a report are left out'),
});

type HistoryView = z.output<typeof historySchema>;

/** How the points of several nodes become one. */
interface Joined {
  readonly rtt: 'sum' | 'highest';
  readonly online: 'lowest' | 'highest';
}

const schemaOf = <const T extends string>(operationId: T, whose: string) =>
  ({
    operationId,
    summary: `Get the traffic of ${whose} over time`,
    description:
      'Counted from the reports of agents; restarts of agents and of the service lose nothing but the points of `1m`. The newest point still grows, and points of `5m` that another instance counts show up to six minutes later. Large counts of `1m` are rounded to seven digits.',
    querystring: historyQuery,
    headers: readHeaders,
    response: answers(historySchema),
  }) as const;

export function nodeHistoryRoutes(app: RestApp, deps: RestDeps): void {
  app.get('/api/nodes/:id/history', {
    config: { access: 'anyone', takes: 'none', readsStored: true },
    schema: { ...schemaOf('getNodeHistory', 'a node'), params: idParams },
    handler: async (request) => {
      const node = orNotFound(deps.fleet.node(pathId(request.params, 'node')), 'node');
      return ok(await historyOf(deps, node, [node.id], { rtt: 'highest', online: 'highest' }, request.query));
    },
  });
}

export function chainHistoryRoutes(app: RestApp, deps: RestDeps): void {
  app.get('/api/l4-chains/:id/history', {
    config: { access: 'anyone', takes: 'none', readsStored: true },
    schema: { ...schemaOf('getL4ChainHistory', 'an L4 chain'), params: idParams },
    handler: async (request) => {
      const chain = orNotFound(deps.fleet.chain(pathId(request.params, 'L4 chain')), 'L4 chain');
      const nodes = nodesOf(liveDefinition(chain));
      return ok(await historyOf(deps, chain, nodes, { rtt: 'sum', online: 'lowest' }, request.query));
    },
  });
}

export function upstreamHistoryRoutes(app: RestApp, deps: RestDeps): void {
  app.get('/api/l4-upstreams/:id/history', {
    config: { access: 'anyone', takes: 'none', readsStored: true },
    schema: { ...schemaOf('getL4UpstreamHistory', 'an L4 upstream'), params: idParams },
    handler: async (request) => {
      const upstream = orNotFound(deps.fleet.upstream(pathId(request.params, 'L4 upstream')), 'L4 upstream');
      const nodes = [...diallersOf(deps.fleet, upstream.id)];
      return ok(await historyOf(deps, upstream, nodes, { rtt: 'highest', online: 'highest' }, request.query));
    },
  });
}

export function dashboardHistoryRoutes(app: RestApp, deps: RestDeps): void {
  app.get('/api/dashboard/history', {
    config: { access: 'anyone', takes: 'none', readsStored: true },
    schema: schemaOf('getDashboardHistory', 'the fleet'),
    handler: async (request) => {
      const asked = rangeOf(deps, request.query, 0);
      const reported = await deps.reports.history(fleetSeries, asked.name, asked.kept);
      const nodes = countsOfNodes(deps);
      return ok(
        await historyView(deps, asked, [...reported.values()], { rtt: 'highest' }, (number, ms) => {
          const online = [...reported.values()].reduce((sum, line) => sum + (line.get(number)?.online_ms ?? 0), 0);
          return online / Math.max(1, ms * nodes((number + 1) * asked.step.ms));
        }),
      );
    },
  });
}

/** How many of the nodes existed before a time. */
function countsOfNodes({ fleet }: RestDeps): (before: number) => number {
  const created = Array.from(fleet.nodeIds(), (id) => Date.parse(fleet.node(id)?.created_at ?? '')).sort(
    (a, b) => a - b,
  );
  let counted = 0;
  return (before) => {
    while (counted < created.length && (created[counted] ?? before) < before) counted += 1;
    return counted;
  };
}

interface Range {
  readonly name: HistoryStep;
  readonly step: (typeof steps)[HistoryStep];
  /** Milliseconds since the epoch: points are shown from `kept` on, and before `to`. */
  readonly kept: number;
  readonly to: number;
}

/** @param created when the resource was, milliseconds since the epoch @throws ServiceError `invalid_request` */
function rangeOf({ clock }: RestDeps, asked: HistoryQuery, created: number): Range {
  const now = clock.now();
  const to = asked.to === undefined ? now + 1 : Date.parse(asked.to);
  const since = asked.from === undefined ? undefined : Date.parse(asked.from);
  if (since !== undefined && since > to) {
    throw new ServiceError('invalid_request', `from: expected a time before "to", ${timestamp(to)}`);
  }
  const finest = stepNames.find((one) => since !== undefined && since >= now - steps[one].keptMs);
  const name = asked.step ?? (since === undefined ? '5m' : (finest ?? '1h'));
  const step = steps[name];
  const from = since ?? Math.min(to, now) - step.keptMs;
  return { name, step, kept: Math.max(from, now - step.keptMs, created), to };
}

/** @param nodeIds nodes that carry the resource now. @throws ServiceError `invalid_request`, `unavailable` */
async function historyOf(
  deps: RestDeps,
  { id: resourceId, created_at }: { readonly id: string; readonly created_at: string },
  nodeIds: readonly string[],
  joined: Joined,
  query: HistoryQuery,
): Promise<HistoryView> {
  const asked = rangeOf(deps, query, Date.parse(created_at));
  const { reports } = deps;
  const reported = await reports.history(resourceId, asked.name, asked.kept);
  const ownOf = async (nodeId: string): Promise<Points> => {
    const own = nodeId === resourceId ? reported : await reports.history(nodeId, asked.name, asked.kept);
    return own.get(nodeId) ?? new Map();
  };
  const online = await onlineMs(nodeIds, ownOf, joined.online);
  const share = (number: number, ms: number): number => (online.get(number) ?? 0) / ms;
  return historyView(deps, asked, [...reported.values()], joined, share, online.keys());
}

/**
 * How long the nodes were online in each point, in milliseconds. One after the other, because there may be thousands.
 */
async function onlineMs(
  nodeIds: readonly string[],
  ownOf: (nodeId: string) => Promise<Points>,
  which: Joined['online'],
): Promise<ReadonlyMap<number, number>> {
  const turn = createTurns(tuning.turnMs);
  const online = new Map<number, number>();
  for (const [index, nodeId] of nodeIds.entries()) {
    const own = await ownOf(nodeId);
    for (const number of new Set([...online.keys(), ...own.keys()])) {
      const ms = own.get(number)?.online_ms ?? 0;
      const others = index === 0 ? ms : (online.get(number) ?? 0);
      online.set(number, which === 'lowest' ? Math.min(ms, others) : Math.max(ms, others));
    }
    await turn();
  }
  return online;
}

/**
 * @param online the online share of point `number`, of whose time `ms` milliseconds are over and recorded
 * @param others further points whose times are shown
 */
async function historyView(
  { reports, clock }: RestDeps,
  { name, step, kept, to }: Range,
  lines: readonly Points[],
  joined: Pick<Joined, 'rtt'>,
  online: (number: number, ms: number) => number,
  others: Iterable<number> = [],
): Promise<HistoryView> {
  const { historySince } = reports;
  const countedSince = name === '1m' ? (historySince ?? 0) : 0;
  const spanOf = (number: number): number => {
    const end = Math.min((number + 1) * step.ms, clock.now());
    return Math.max(1, end - Math.max(number * step.ms, countedSince));
  };
  const within = (number: number): boolean => (number + 1) * step.ms > kept && number * step.ms < to;
  const turn = createTurns(tuning.turnMs);
  const numbers = new Set(others);
  for (const line of lines) {
    for (const number of line.keys()) numbers.add(number);
    await turn();
  }
  const points: HistoryPoint[] = [];
  for (const number of [...numbers].filter(within).sort((a, b) => a - b)) {
    points.push({
      at: timestamp(number * step.ms),
      ...pointOf(
        lines.map((line) => line.get(number)),
        joined,
      ),
      online: rounded(online(number, spanOf(number))),
    });
    await turn();
  }
  const isRecorded = historySince !== undefined;
  const recorded_since = isRecorded && name === '1m' ? timestamp(historySince) : null;
  return { recorded: isRecorded, recorded_since, step: name, points };
}

const rounded = (share: number): number => Math.round(Math.min(1, Math.max(0, share)) * 10_000) / 10_000;

function pointOf(
  points: readonly (Point | undefined)[],
  { rtt }: Pick<Joined, 'rtt'>,
): Omit<HistoryPoint, 'at' | 'online'> {
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
