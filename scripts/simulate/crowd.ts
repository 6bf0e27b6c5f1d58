/** All simulated agents together, spread over processes, some of them with special behaviour. */
import type { HostPort } from '../../src/kernel/host-port.js';
import { forkChild, type Child } from '../stack/child.js';
import type { FleetCounts, LightCredentials } from './light/fleet.js';
import type { AppliedEvent, ProcessState, StartFleets } from './process.js';
import type { Scenario } from './scenario.js';

export interface CrowdState {
  readonly connected: number;
  readonly counts: FleetCounts;
  readonly cpuSeconds: number;
}

export interface Crowd {
  /** Agents that read and accept everything. */
  readonly regular: ReadonlySet<string>;
  readonly rejecting: number;
  readonly slow: number;
  state(): Promise<CrowdState>;
  /** Cuts connections, spread over the processes. @returns how many */
  cut(count: number): Promise<number>;
  /** From now on all agents read and accept. */
  relent(): Promise<void>;
  close(): Promise<void>;
}

/** Longer than the agents of one process need for their keys. */
const startWithinMs = 120_000;

/** Starts the processes and their agents, which connect at once. */
export async function startCrowd(
  scenario: Scenario,
  endpoint: HostPort,
  agents: readonly LightCredentials[],
  onApplied: (events: readonly AppliedEvent[]) => void,
): Promise<Crowd> {
  const children: Child[] = [];
  const regular = new Set<string>();
  const [rejecting, slow] = [wholeShare(scenario.rejecting, agents), wholeShare(scenario.slow, agents)];
  for (const { nodeId } of agents.slice(rejecting, agents.length - slow)) regular.add(nodeId);
  const close = async (): Promise<void> => {
    await Promise.all(
      children.map(async (child) => {
        await child.ask('stop').catch(() => undefined);
        await child.close();
      }),
    );
  };
  try {
    await Promise.all(
      Array.from({ length: scenario.processes }, async (_, index) => {
        const child = forkChild(new URL('./process', import.meta.url));
        children.push(child);
        child.onEvents((events) => onApplied(events as readonly AppliedEvent[]));
        const every = (part: readonly LightCredentials[]): readonly LightCredentials[] =>
          part.filter((_agent, position) => position % scenario.processes === index);
        const parts = [
          { agents: every(agents.slice(0, rejecting)), rejecting: true, slow: false },
          { agents: every(agents.slice(rejecting, agents.length - slow)), rejecting: false, slow: false },
          { agents: every(agents.slice(agents.length - slow)), rejecting: false, slow: true },
        ];
        await child.ask(
          'start',
          parts.flatMap((part) => fleetsOf(scenario, endpoint, part)),
          startWithinMs,
        );
      }),
    );
  } catch (error) {
    await close();
    throw error;
  }
  return {
    regular,
    rejecting,
    slow,
    async state() {
      const states = await Promise.all(children.map((child) => child.ask<ProcessState>('state')));
      return {
        connected: states.reduce((sum, { connected }) => sum + connected, 0),
        counts: states.flatMap(({ counts }) => counts).reduce(addedCounts),
        cpuSeconds: states.reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0),
      };
    },
    async cut(count) {
      const shares = children.map((_, index) => Math.floor((count + index) / children.length));
      const done = await Promise.all(children.map((child, index) => child.ask<number>('cut', shares[index])));
      return done.reduce((sum, each) => sum + each, 0);
    },
    relent: async () => void (await Promise.all(children.map((child) => child.ask('relent')))),
    close,
  };
}

const wholeShare = (share: number, all: readonly unknown[]): number => Math.round(share * all.length);

/** One fleet of agents whose tables change, and one whose tables stay the same. */
function fleetsOf(
  { changing, table, heartbeatSeconds }: Scenario,
  endpoint: HostPort,
  part: { readonly agents: readonly LightCredentials[]; readonly rejecting: boolean; readonly slow: boolean },
): StartFleets {
  const changes = wholeShare(changing, part.agents);
  const everyMs = heartbeatSeconds === undefined ? {} : { everyMs: heartbeatSeconds * 1_000 };
  return [
    { agents: part.agents.slice(0, changes), changing: true },
    { agents: part.agents.slice(changes), changing: false },
  ]
    .filter(({ agents }) => agents.length > 0)
    .map(({ agents, changing: tableChanges }) => ({
      endpoint,
      agents,
      heartbeats: { ...(table === undefined ? {} : { table: { ...table, changing: tableChanges } }), ...everyMs },
      rejecting: part.rejecting ? agents.length : 0,
      slow: part.slow ? agents.length : 0,
    }));
}

/** The sums of two fleets. */
export function addedCounts(one: FleetCounts, other: FleetCounts): FleetCounts {
  const both = (a: Readonly<Record<string, number>>, b: Readonly<Record<string, number>>): Record<string, number> => {
    const sum = { ...a };
    for (const [name, count] of Object.entries(b)) sum[name] = (sum[name] ?? 0) + count;
    return sum;
  };
  return {
    connects: one.connects + other.connects,
    losses: one.losses + other.losses,
    failedDials: one.failedDials + other.failedDials,
    refusals: both(one.refusals, other.refusals),
    closes: both(one.closes, other.closes),
    applies: one.applies + other.applies,
    rejects: one.rejects + other.rejects,
    heartbeats: one.heartbeats + other.heartbeats,
    answers: one.answers + other.answers,
    rekeys: one.rekeys + other.rekeys,
  };
}
