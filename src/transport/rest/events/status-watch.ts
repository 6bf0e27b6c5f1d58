/**
 * Notices what changes without a command: whether a node is there, the health of chains and upstreams, the time that certificates
 * have left. It compares what answers would show every few seconds, once for all streams of the instance, and only while one of
 * them listens. Implements `docs/contract/automation.md#event-feed`, `status`.
 */
import { sleep, startLoop, yieldToEventLoop } from '../../../kernel/background.js';
import type { Loop } from '../../../kernel/background.js';
import { errorText, unreachable } from '../../../kernel/errors.js';
import type { RestDeps } from '../deps.js';
import { readReports } from '../fleet/fleet-reports.js';
import { statusOf } from '../fleet/node-status.js';
import { healthOf, statusesOfUpstreams } from '../fleet/fleet-health.js';
import { tuning } from '../tuning.js';
import type { EventStreams } from './event-streams.js';
import type { StatusChange, StatusType } from './event-text.js';

interface Named {
  readonly id: string;
  readonly name: string;
  /** Grows with each command about the resource. */
  readonly version: number;
}

interface Status extends Pick<Named, 'id' | 'version'> {
  readonly type: StatusType;
  readonly status: string;
}

/** By type and id. */
type Statuses = ReadonlyMap<string, Status>;

export function watchStatuses(deps: RestDeps, streams: Pick<EventStreams, 'wantStatus' | 'tellStatus'>): Loop {
  let before: Statuses | undefined;
  return startLoop(
    tuning.statuses.everyMs,
    async (signal) => {
      if (!streams.wantStatus()) {
        before = undefined;
        return;
      }
      const began = performance.now();
      const now = await readStatuses(deps);
      const changes = before === undefined ? [] : changesBetween(deps, before, now);
      before = now;
      if (changes.length > 0 && !signal.aborted) streams.tellStatus(changes);
      const rest = (performance.now() - began) / tuning.statuses.busyShare - tuning.statuses.everyMs;
      if (rest > 0) await sleep(rest, signal);
    },
    (error) => deps.logger.warn({ error: errorText(error) }, 'changes of status could not be looked for'),
  );
}

/**
 * A command may change a status as well: a disabled chain is unknown, a renewed certificate valid. Its own entry tells of
 * that, so it is no change here.
 */
function changesBetween(deps: RestDeps, before: Statuses, now: Statuses): readonly StatusChange[] {
  const changes: StatusChange[] = [];
  for (const key of new Set([...before.keys(), ...now.keys()])) {
    const [was, is] = [before.get(key), now.get(key)];
    const known = is ?? was;
    if (known === undefined || was?.status === is?.status) continue;
    const { type, id } = known;
    // New, or gone.
    const resource = resourceOf(deps, type, id);
    if (resource === undefined || (was === undefined && !mayBeUnknown.has(type))) continue;
    const status = is?.status ?? unknown;
    const byCommand = was?.version !== resource.version && (status === unknown || type === 'credential');
    if (!byCommand) changes.push({ resource: { type, id, name: resource.name }, was: was?.status ?? unknown, status });
  }
  return changes;
}

const unknown = 'unknown';
/** Of these, only those with another status are noted. */
const mayBeUnknown: ReadonlySet<StatusType> = new Set(['l4_chain', 'l4_upstream']);

function resourceOf({ fleet }: RestDeps, type: StatusType, id: string): Named | undefined {
  switch (type) {
    case 'node':
      return fleet.node(id);
    case 'l4_chain':
      return fleet.chain(id);
    case 'l4_upstream':
      return fleet.upstream(id);
    case 'credential':
      return fleet.resources.credential.get(id);
    default:
      return unreachable(type);
  }
}

async function readStatuses(deps: RestDeps): Promise<Statuses> {
  const { fleet, telemetry, clock } = deps;
  const [online, nodes] = await Promise.all([
    telemetry.online(),
    readReports(deps, [...fleet.nodeIds()], { links: true }),
  ]);
  const statuses = new Map<string, Status>();
  const add = (type: StatusType, { id, version }: Pick<Named, 'id' | 'version'>, status: string): void => {
    if (status !== unknown) statuses.set(`${type}/${id}`, { type, id, version, status });
  };
  for (const [id, { agent }] of nodes) {
    const node = fleet.node(id);
    if (node !== undefined) add('node', node, statusOf(online.has(id), agent));
  }
  let looked = 0;
  for (const chain of fleet.chains()) {
    if ((looked += 1) % tuning.chainsPerTurn === 0) await yieldToEventLoop();
    if (chain.enabled && chain.deployed !== null)
      add('l4_chain', chain, healthOf(deps, chain, { online, nodes }).state);
  }
  for (const [id, health] of await statusesOfUpstreams(deps, { online, nodes })) {
    const upstream = fleet.upstream(id);
    if (upstream !== undefined) add('l4_upstream', upstream, health);
  }
  for (const credential of fleet.credentials()) {
    const { certificate } = credential;
    if (certificate !== null) add('credential', credential, timeLeft(Date.parse(certificate.not_after) - clock.now()));
  }
  return statuses;
}

const dayMs = 24 * 3600 * 1000;

function timeLeft(ms: number): 'valid' | '30_days' | '7_days' | '1_day' | 'ended' {
  if (ms <= 0) return 'ended';
  if (ms <= dayMs) return '1_day';
  if (ms <= 7 * dayMs) return '7_days';
  return ms <= 30 * dayMs ? '30_days' : 'valid';
}
