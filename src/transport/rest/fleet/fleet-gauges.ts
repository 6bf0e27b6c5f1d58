/**
 * How the fleet is, as metrics: nodes by status, listeners by state, chains and upstreams by health. Read in the background,
 * because a scrape must not wait for the reports of all agents. Every instance shows the whole fleet. Implements
 * `docs/contract/rest.md#dashboard` for those who watch by alerts.
 */
import { startLoop } from '../../../kernel/background.js';
import { errorText } from '../../../kernel/errors.js';
import { timestamp } from '../../../kernel/clock.js';
import type { RestDeps } from '../deps.js';
import { readReports } from './fleet-reports.js';
import { tallyFleet } from './fleet-tally.js';

type Counts = ReadonlyMap<string, number>;

export interface FleetCounts {
  /** By status. */
  readonly nodes: Counts;
  /** Of online nodes, by the agent's word. */
  readonly listeners: Counts;
  /** Of those that are deployed and enabled, by health. */
  readonly chains: Counts;
  /** Of those that are enabled, by health. */
  readonly upstreams: Counts;
}

export interface FleetGauges {
  /** Without any number before the first look. */
  counts(): FleetCounts;
  close(): Promise<void>;
}

type Deps = Pick<RestDeps, 'clock' | 'fleet' | 'agentFacts' | 'telemetry' | 'logger'>;

/** @param everyMs how often the reports are read */
export function startFleetGauges(deps: Deps, everyMs: number): FleetGauges {
  const none: Counts = new Map();
  let counts: FleetCounts = { nodes: none, listeners: none, chains: none, upstreams: none };
  const loop = startLoop(
    everyMs,
    async (signal) => {
      const fresh = await countFleet(deps, signal);
      if (!signal.aborted) counts = fresh;
    },
    (error) => deps.logger.warn({ error: errorText(error) }, 'the metrics of the fleet could not be read'),
  );
  return {
    counts: () => counts,
    close: () => loop.close(),
  };
}

async function countFleet(deps: Deps, signal: AbortSignal): Promise<FleetCounts> {
  const at = timestamp(deps.clock.now());
  const online = new Set((await deps.telemetry.online()).keys());
  const nodes = await readReports(deps, [...deps.fleet.nodeIds()], { links: true }, signal);
  const tally = await tallyFleet(deps, { at, online, nodes });
  const { pending, online: present, offline } = tally.nodes;
  return {
    nodes: new Map(Object.entries({ pending, online: present, offline })),
    listeners: tally.listenerStates,
    chains: new Map(Object.entries(tally.chains)),
    upstreams: new Map(Object.entries(tally.upstreams)),
  };
}
