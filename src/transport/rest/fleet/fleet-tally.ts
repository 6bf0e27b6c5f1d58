/**
 * Counts nodes, their listeners and their traffic: what is wanted of each node, from the fold, beside what its agent told.
 * Implements `docs/contract/rest.md#dashboard`.
 */
import { yieldToEventLoop } from '../../../kernel/background.js';
import { createShared } from '../../../kernel/shared.js';
import { applyState } from './apply-state.js';
import type { RestDeps } from '../deps.js';
import type { FleetReports, NodeReport, Traffic } from './fleet-reports.js';
import { addTraffic, noTraffic } from './fleet-reports.js';
import { countRunning } from './listener-states.js';
import { tuning } from '../tuning.js';

export interface FleetTally {
  readonly nodes: {
    readonly total: number;
    readonly online: number;
    readonly offline: number;
    readonly pending: number;
    readonly converged: number;
    readonly rejected: number;
  };
  readonly listeners: {
    readonly intended: number;
    readonly running: number;
    readonly missing: number;
    readonly unexpected: number;
  };
  readonly traffic: Traffic;
  /** The reports that it was made from. */
  readonly reports: FleetReports;
}

/** @returns a function that gives a tally which holds all that the fold holds at the call; it throws as `reports` does */
export function createFleetTally(deps: RestDeps, reports: () => Promise<FleetReports>): () => Promise<FleetTally> {
  let newest: FleetReports | undefined;
  const shared = (from: FleetReports): (() => Promise<FleetTally>) =>
    createShared(() => tally(deps, from), {
      stamp: deps.fleet.revision,
      isFresh: ({ stamp }) => stamp === deps.fleet.revision(),
      now: deps.clock.monotonic,
    });
  let tallied: (() => Promise<FleetTally>) | undefined;
  return async () => {
    const current = await reports();
    // A tally is of the reports that it was made from.
    if (tallied === undefined || newest !== current) [newest, tallied] = [current, shared(current)];
    return tallied();
  };
}

type Counts<T> = { -readonly [K in keyof T]: number };

async function tally({ fleet }: RestDeps, reports: FleetReports): Promise<FleetTally> {
  const nodes: Counts<FleetTally['nodes']> = { total: 0, online: 0, offline: 0, pending: 0, converged: 0, rejected: 0 };
  const listeners: Counts<FleetTally['listeners']> = { intended: 0, running: 0, missing: 0, unexpected: 0 };
  let traffic = noTraffic;
  const ids = [...fleet.nodeIds()];
  for (const [index, id] of ids.entries()) {
    const report = reports.nodes.get(id);
    const isOnline = reports.online.has(id);
    countNode(nodes, fleet.generation(id), isOnline, report?.agent);
    countListeners(listeners, fleet.liveListeners(id), isOnline ? report : undefined);
    // Sessions end with the agent, or are unknown; what has passed through has passed through.
    const own = report?.traffic ?? noTraffic;
    traffic = addTraffic(traffic, isOnline ? own : { ...own, active_sessions: 0 });
    if (index % tuning.dashboard.nodesPerTally === 0) await yieldToEventLoop();
  }
  return { nodes, listeners, traffic, reports };
}

function countNode(
  nodes: Counts<FleetTally['nodes']>,
  generation: number | undefined,
  isOnline: boolean,
  agent: NodeReport['agent'],
): void {
  nodes.total += 1;
  if (isOnline) nodes.online += 1;
  else if (agent?.connected_once === true) nodes.offline += 1;
  else nodes.pending += 1;
  if (generation === undefined || agent === undefined) return;
  // What was pushed does not matter for a reject.
  const { state } = applyState(generation, agent, undefined);
  if (state === 'rejected') nodes.rejected += 1;
  else if (agent.applied?.generation === generation) nodes.converged += 1;
}

/** @param report undefined for a node that is silent: what it told last says nothing about now */
function countListeners(
  listeners: Counts<FleetTally['listeners']>,
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
