/**
 * The health of a chain's deployed definition: what agents report of it as one state, with the reasons. Pure; whoever asks
 * has gathered the reports. Implements `docs/contract/domain.md#health-of-a-chain`.
 */
import type { ChainState } from './chain.js';

/** States of a chain by fault, the worst first. */
const faultStates = ['down', 'degraded', 'unknown'] as const;
type FaultState = (typeof faultStates)[number];

export const healthStates = ['ok', ...faultStates] as const;

export interface ChainHealth {
  readonly state: (typeof healthStates)[number];
  /** Sentences, the worst state first; none when all is well. */
  readonly reasons: readonly string[];
}

/** A deployed hop, as its node is and as its agent reports it. */
export interface HopReport {
  readonly nodeName: string;
  readonly status: 'pending' | 'online' | 'offline';
  /** As sentences name it: `tcp 0.0.0.0:443`. */
  readonly listener: string;
  /** The agent's word for the listener, `missing` if it reports others only; null while nothing is known of it. */
  readonly state: string | null;
  /** How far the node is with its newest generation. */
  readonly apply: 'applied' | 'rejected' | 'behind';
  /** The share that the link to the next hop loses, 0 to 1; null if it is not measured, and for the last hop. */
  readonly loss: number | null;
}

/** The upstream of a deployed definition. */
interface DeployedUpstream {
  readonly name: string;
  readonly enabled: boolean;
  /** Whether the agent that dials it reports so; false before a report. */
  readonly unhealthy: boolean;
}

/** A link that loses more is reported as degraded. */
export const tolerableLoss = 0.2;

interface Fault {
  readonly state: FaultState;
  readonly reason: string;
}

/**
 * @param hops of the deployed definition, in their order
 * @param upstream that the deployed definition ends in, undefined for a literal endpoint
 */
export function chainHealth(
  chain: Pick<ChainState, 'enabled' | 'deployed'>,
  hops: readonly HopReport[],
  upstream: DeployedUpstream | undefined,
): ChainHealth {
  if (!chain.enabled) return { state: 'unknown', reasons: ['the chain is disabled'] };
  if (chain.deployed === null) return { state: 'unknown', reasons: ['the chain was never deployed'] };
  const faults = hops.flatMap((hop, index) => [...faultsOfHop(hop), ...faultsOfLink(hop, hops[index + 1])]);
  if (upstream?.enabled === false) faults.push({ state: 'down', reason: `upstream "${upstream.name}" is disabled` });
  else if (upstream?.unhealthy === true) {
    faults.push({
      state: 'down',
      reason: `upstream "${upstream.name}" is unhealthy, as "${hops.at(-1)?.nodeName}" reports`,
    });
  }
  const sorted = faultStates.flatMap((state) => faults.filter((fault) => fault.state === state));
  return { state: sorted[0]?.state ?? 'ok', reasons: sorted.map(({ reason }) => reason) };
}

function faultsOfHop({ nodeName, status, listener, state, apply }: HopReport): readonly Fault[] {
  const node = `node "${nodeName}"`;
  if (status === 'offline') return [{ state: 'down', reason: `${node} is offline` }];
  if (status === 'pending') return [{ state: 'unknown', reason: `the agent of ${node} has never connected` }];
  const faults: Fault[] = [];
  if (state === null) faults.push({ state: 'unknown', reason: `no heartbeat of ${node} tells of ${listener} yet` });
  else if (state !== 'running') faults.push({ state: 'down', reason: `listener ${listener} of ${node} is ${state}` });
  if (apply === 'rejected') {
    faults.push({ state: 'degraded', reason: `${node} has rejected its newest configuration` });
  }
  // Before the first heartbeat of a session nobody can tell whether the agent has yet to apply or to say that it has.
  if (apply === 'behind' && state !== null) {
    faults.push({ state: 'degraded', reason: `${node} has not applied its newest configuration yet` });
  }
  return faults;
}

function faultsOfLink({ nodeName, loss }: HopReport, next: HopReport | undefined): readonly Fault[] {
  if (loss === null || loss <= tolerableLoss || next === undefined) return [];
  const percent = Math.round(loss * 100);
  return [{ state: 'degraded', reason: `the link from "${nodeName}" to "${next.nodeName}" loses ${percent} %` }];
}
