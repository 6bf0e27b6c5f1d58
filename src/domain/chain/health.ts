/**
 * The health of a chain's deployed definition: one state with reasons and causes, from the reports of agents. Pure.
 * Implements `docs/contract/domain.md#health-of-a-chain`.
 */
import type { ChainState } from './chain.js';

/** The states of a chain with a fault, worst first. */
const faultStates = ['down', 'degraded', 'unknown'] as const;
type FaultState = (typeof faultStates)[number];

export const healthStates = ['ok', ...faultStates] as const;

export interface ChainHealth {
  readonly state: (typeof healthStates)[number];
  /** Sentences, worst state first; none when all is well. */
  readonly reasons: readonly string[];
}

/** Causes of chains that are down or degraded. Of several, the first counts. */
export const healthCauses = [
  'node_offline',
  'node_rejected',
  'listener_missing',
  'target_unusable',
  'upstream_unhealthy',
  'upstream_disabled',
  'link_loss',
  'apply_behind',
] as const;

interface Named {
  readonly id: string;
  readonly name: string;
}

/** What is wrong, and where to fix it. */
export interface Cause {
  readonly kind: (typeof healthCauses)[number];
  readonly type: 'node' | 'l4_upstream';
  readonly resource: Named;
  /** The listener on that node, or the name of the node to which the link leads. */
  readonly detail?: string;
}

export interface Fault {
  readonly state: FaultState;
  /** A sentence without its full stop. */
  readonly reason: string;
  /** Null for an unknown state. */
  readonly cause: Cause | null;
  /** When an unknown state began, RFC 3339. */
  readonly since?: string;
}

/** A deployed hop, with the status of its node and the report of its agent. */
export interface HopReport {
  readonly node: Named;
  readonly status: 'pending' | 'online' | 'offline';
  /** In the form of sentences: `tcp 0.0.0.0:443`. */
  readonly listener: string;
  /** The agent's word for the listener, `missing` if it reports only others; null before a report covers it. */
  readonly state: string | null;
  /** The agent's word for the hop's route there, if the route has a state of its own. */
  readonly route: string | null;
  /** When reports should begin to cover the listener, RFC 3339. */
  readonly since: string;
  /** Whether the node has applied its newest generation. */
  readonly apply: 'applied' | 'rejected' | 'behind' | 'held';
  /** The loss of the link to the next hop, 0 to 1; null if it is not measured, and for the last hop. */
  readonly loss: number | null;
}

/** The upstream of a deployed definition, as the agent of the last hop sees it. */
export interface DeployedUpstream extends Named {
  readonly enabled: boolean;
  readonly seen: 'healthy' | 'unhealthy' | 'awaited' | 'unnamed';
  /** When the agent should begin to report it, RFC 3339. */
  readonly since: string;
}

/** A link that loses more is reported as degraded. */
export const tolerableLoss = 0.2;

/** The health of a chain that no node runs. */
export function healthWithoutDeploy({ enabled }: Pick<ChainState, 'enabled'>): ChainHealth {
  return { state: 'unknown', reasons: [enabled ? 'the chain was never deployed' : 'the chain is disabled'] };
}

/** @param faults the worst first */
export function healthOfFaults(faults: readonly Fault[]): ChainHealth {
  return { state: faults[0]?.state ?? 'ok', reasons: faults.map(({ reason }) => reason) };
}

/**
 * The faults of a chain that is deployed and enabled, worst first.
 * @param hops of the deployed definition, in order
 * @param upstream the end of the deployed definition; undefined for a literal endpoint
 */
export function chainFaults(hops: readonly HopReport[], upstream: DeployedUpstream | undefined): readonly Fault[] {
  const faults = hops.flatMap((hop, index) => [...faultsOfHop(hop), ...faultsOfLink(hop, hops[index + 1])]);
  if (upstream !== undefined) faults.push(...faultsOfUpstream(upstream, hops.at(-1)));
  if (faults.length < 2) return faults;
  return faultStates.flatMap((state) => faults.filter((fault) => fault.state === state));
}

/** The first cause in the order of `healthCauses`, whatever state it leads to. */
export function mainCause(faults: readonly Fault[]): Cause | null {
  const causes = faults.flatMap(({ cause }) => cause ?? []);
  const rank = ({ kind }: Cause): number => healthCauses.indexOf(kind);
  return causes.sort((a, b) => rank(a) - rank(b))[0] ?? null;
}

function faultsOfHop({ node, status, listener, state, route, since, apply }: HopReport): readonly Fault[] {
  const named = `node "${node.name}"`;
  const caused = (kind: Cause['kind'], detail?: string): Cause => ({
    kind,
    type: 'node',
    resource: node,
    ...(detail === undefined ? {} : { detail }),
  });
  if (status === 'offline') return [{ state: 'down', reason: `${named} is offline`, cause: caused('node_offline') }];
  if (status === 'pending') {
    return [{ state: 'unknown', reason: `the agent of ${named} has never connected`, cause: null, since }];
  }
  const faults: Fault[] = [];
  if (state === null) {
    faults.push({ state: 'unknown', reason: `no heartbeat of ${named} tells of ${listener} yet`, cause: null, since });
  } else if (apply === 'held' && state === 'missing') {
    const reason = `${named} waits for its wave of a rollout and does not run ${listener} yet`;
    faults.push({ state: 'unknown', reason, cause: null, since });
  } else if (state !== 'running') {
    const reason = `listener ${listener} of ${named} is ${state}`;
    faults.push({ state: 'down', reason, cause: caused('listener_missing', listener) });
  } else if (route !== null) {
    const reason = routeSentence(named, listener, route);
    faults.push({ state: 'down', reason, cause: caused('target_unusable', listener) });
  }
  if (apply === 'rejected') {
    const reason = `${named} has rejected its newest configuration`;
    faults.push({ state: 'degraded', reason, cause: caused('node_rejected') });
  }
  // Before the first heartbeat of a session, the agent may have applied it without having said so.
  if (apply === 'behind' && state !== null) {
    const reason = `${named} has not applied its newest configuration yet`;
    faults.push({ state: 'degraded', reason, cause: caused('apply_behind') });
  }
  return faults;
}

function routeSentence(node: string, listener: string, word: string): string {
  switch (word) {
    case 'target_unreachable':
      return `${node} cannot reach the REALITY target of ${listener} (${word})`;
    case 'target_unusable':
      return `${node} cannot imitate the REALITY target of ${listener} (${word})`;
    default:
      return `the route of the chain on listener ${listener} of ${node} is ${word}`;
  }
}

function faultsOfLink({ node, loss }: HopReport, next: HopReport | undefined): readonly Fault[] {
  if (loss === null || loss <= tolerableLoss || next === undefined) return [];
  // Only a link that lets nothing through loses 100 %.
  const percent = loss < 1 ? Math.min(99, Math.round(loss * 100)) : 100;
  const reason = `the link from "${node.name}" to "${next.node.name}" loses ${percent} %`;
  const cause: Cause = { kind: 'link_loss', type: 'node', resource: node, detail: next.node.name };
  return [{ state: loss < 1 ? 'degraded' : 'down', reason, cause }];
}

function faultsOfUpstream(upstream: DeployedUpstream, last: HopReport | undefined): readonly Fault[] {
  const { id, name, enabled, seen, since } = upstream;
  const caused = (kind: Cause['kind']): Cause => ({ kind, type: 'l4_upstream', resource: { id, name } });
  if (!enabled)
    return [{ state: 'down', reason: `upstream "${name}" is disabled`, cause: caused('upstream_disabled') }];
  // The last report of an offline agent means nothing, and its node is a fault already.
  if (last?.status !== 'online') return [];
  const by = last.node.name;
  if (seen === 'unhealthy') {
    const reason = `upstream "${name}" is unhealthy, as "${by}" reports`;
    return [{ state: 'down', reason, cause: caused('upstream_unhealthy') }];
  }
  if (seen !== 'awaited') return [];
  return [{ state: 'unknown', reason: `node "${by}" has not told of upstream "${name}" yet`, cause: null, since }];
}
