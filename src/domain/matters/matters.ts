/**
 * Matters: the faults of a fleet that need attention, worst first, grouped by cause. One matter is fixed in one place: twelve
 * chains that are down because one upstream is unhealthy are one matter. Pure.
 * Implements `docs/contract/rest.md#dashboard`, `matters`.
 */
import { compareText, firstOf } from '../../kernel/compare-text.js';
import { nameOrder, sortKey } from '../resource/meta.js';
import { unreachable } from '../../kernel/errors.js';
import { limits } from '../../kernel/limits.js';
import { getOrMake } from '../../kernel/maps.js';
import type { Cause } from '../chain/health.js';
import {
  matterKinds,
  severities,
  severityOf,
  type LateBackup,
  type MatterKind,
  type ResourceMatter,
  type Severity,
} from './kinds.js';
import { lateBackupSentence, sentenceOf } from './sentences.js';

export type ConcernedType = 'node' | 'l4_chain' | 'l4_upstream' | 'credential' | 'webhook' | 'rollout';

/** A resource that a matter concerns. */
export interface Concerned {
  readonly type: ConcernedType;
  readonly id: string;
  readonly name: string;
  /** A sentence without its full stop. */
  readonly reason: string;
}

export interface Matter {
  readonly severity: Severity;
  readonly kind: MatterKind;
  /** Null unless it is about chains that are down or degraded. */
  readonly cause: Cause['kind'] | null;
  /** The common cause of the chains; null when several resources have caused it. */
  readonly causedBy: Cause | null;
  /** How many chains or other resources it is about. */
  readonly count: number;
  readonly sentence: string;
  /** The first ones by name. */
  readonly resources: readonly Concerned[];
}

type Named = Pick<Concerned, 'id' | 'name'>;
type Reasoned = Named & Pick<Concerned, 'reason'>;

/** A chain that is deployed and enabled, and not ok. */
export interface UnwellChain extends Reasoned {
  readonly state: 'down' | 'degraded' | 'unknown';
  readonly cause: Cause | null;
  /** When an unknown state began, milliseconds since the epoch. */
  readonly since: number;
}

/** A listener of an online node. */
export interface ListenerOfNode {
  readonly node: Named;
  /** `tcp 0.0.0.0:443`. */
  readonly listener: string;
  /** The agent's word, or `missing`. */
  readonly state: string;
}

/** The faults of a fleet. */
export interface Unwell {
  readonly chains: readonly UnwellChain[];
  readonly offlineNodes: readonly Reasoned[];
  /** Without offline nodes. */
  readonly rejectingNodes: readonly Reasoned[];
  /** Deployed but not running. */
  readonly missingListeners: readonly ListenerOfNode[];
  /** Reported but not deployed. */
  readonly unexpectedListeners: readonly ListenerOfNode[];
  /** Without disabled upstreams. */
  readonly unhealthyUpstreams: readonly Reasoned[];
  /** Named after what they change. */
  readonly haltedRollouts: readonly Reasoned[];
  /** Only certificates in use. */
  readonly endedCertificates: readonly Reasoned[];
  readonly endingCertificates: readonly Reasoned[];
  readonly modifiedChains: readonly Reasoned[];
  readonly stoppedWebhooks: readonly Reasoned[];
  /** Nodes whose agent cannot run all that is deployed on them. */
  readonly unableNodes: readonly Reasoned[];
  /** At most one. */
  readonly lateBackups: readonly LateBackup[];
}

export type UnwellLists = { -readonly [K in keyof Unwell]: Unwell[K][number][] };

export const nothingUnwell = (): UnwellLists => ({
  chains: [],
  offlineNodes: [],
  rejectingNodes: [],
  missingListeners: [],
  unexpectedListeners: [],
  unhealthyUpstreams: [],
  haltedRollouts: [],
  endedCertificates: [],
  endingCertificates: [],
  modifiedChains: [],
  stoppedWebhooks: [],
  unableNodes: [],
  lateBackups: [],
});

/**
 * How long a chain may be unknown before that is a matter: a deploy and a reconnect take a moment. @internal exported for
 * tests
 */
export const unknownForMs = 60_000;

/**
 * How many resources of one kind and cause get a matter of their own, those with the most chains. The rest form one
 * matter, so that an answer stays short while half a fleet is away.
 */
const causesInFull = 10;

/** Yields between two pieces. @param now milliseconds since the epoch */
export function* mattersOf(unwell: Unwell, now: number): Generator<void, readonly Matter[]> {
  const matters = yield* chainMatters(unwell.chains, now);
  const causes = new Set<string>();
  for (const { cause } of unwell.chains) if (cause !== null) causes.add(keyOf(cause));
  const isCause = (kind: Cause['kind'], resource: Named, detail?: string): boolean =>
    causes.has(keyOf({ kind, resource, ...(detail === undefined ? {} : { detail }) }));
  function* add(kind: ResourceMatter, type: ConcernedType, some: readonly Reasoned[]): Generator<void> {
    if (some.length === 0) return;
    yield;
    matters.push(matterOf(kind, null, type, some));
  }
  const without = (kind: Cause['kind'], some: readonly Reasoned[]): readonly Reasoned[] =>
    some.filter((one) => !isCause(kind, one));
  // A node that rejected its configuration misses its listeners for the same reason.
  const missing = unwell.missingListeners.filter(
    ({ node, listener }) => !isCause('listener_missing', node, listener) && !isCause('node_rejected', node),
  );
  const missingReason = ({ listener, state }: ListenerOfNode): string => `${listener} is ${state}`;
  const unexpectedReason = ({ listener }: ListenerOfNode): string => `${listener} is not deployed`;
  yield* add('certificate_ended', 'credential', unwell.endedCertificates);
  yield* add('node_offline', 'node', without('node_offline', unwell.offlineNodes));
  yield* add('node_rejected', 'node', without('node_rejected', unwell.rejectingNodes));
  yield* add('listener_missing', 'node', byNode(missing, missingReason));
  yield* add('upstream_unhealthy', 'l4_upstream', without('upstream_unhealthy', unwell.unhealthyUpstreams));
  yield* add('rollout_halted', 'rollout', unwell.haltedRollouts);
  yield* add('webhook_stopped', 'webhook', unwell.stoppedWebhooks);
  yield* add('certificate_ending', 'credential', unwell.endingCertificates);
  yield* add('chain_modified', 'l4_chain', unwell.modifiedChains);
  yield* add('agent_cannot_run', 'node', unwell.unableNodes);
  yield* add('unexpected_listener', 'node', byNode(unwell.unexpectedListeners, unexpectedReason));
  for (const late of unwell.lateBackups) {
    const sentence = lateBackupSentence(late);
    const rest = { cause: null, causedBy: null, count: 1, resources: [] };
    matters.push({ severity: severityOf.backup_late, kind: 'backup_late', sentence, ...rest });
  }
  return matters.sort(worstFirst);
}

/** The worst kind first, and within a kind the matter about most resources. */
function worstFirst(a: Matter, b: Matter): number {
  return (
    severities.indexOf(a.severity) - severities.indexOf(b.severity) ||
    matterKinds.indexOf(a.kind) - matterKinds.indexOf(b.kind) ||
    b.count - a.count ||
    compareText(a.sentence, b.sentence)
  );
}

/** Identifies a cause. */
const keyOf = ({ kind, resource, detail = '' }: Pick<Cause, 'kind' | 'resource' | 'detail'>): string =>
  `${kind}/${resource.id}/${detail}`;

function kindOf({ state, since }: UnwellChain, now: number): ResourceMatter | undefined {
  switch (state) {
    case 'down':
      return 'chain_down';
    case 'degraded':
      return 'chain_degraded';
    case 'unknown':
      return now - since >= unknownForMs ? 'chain_unknown' : undefined;
    default:
      return unreachable(state);
  }
}

interface Group {
  readonly kind: ResourceMatter;
  readonly cause: Cause | null;
  readonly chains: UnwellChain[];
}

/** One matter for the chains with the same kind and cause. */
function* chainMatters(chains: readonly UnwellChain[], now: number): Generator<void, Matter[]> {
  /** By kind and kind of cause, then by cause. */
  const groups = new Map<string, Map<string, Group>>();
  for (const chain of chains) {
    const kind = kindOf(chain, now);
    if (kind === undefined) continue;
    const cause = kind === 'chain_unknown' ? null : chain.cause;
    const alike = getOrMake(groups, `${kind}/${cause?.kind ?? ''}`, () => new Map());
    const key = cause === null ? '' : keyOf(cause);
    getOrMake(alike, key, () => ({ kind, cause, chains: [] })).chains.push(chain);
  }
  const matters: Matter[] = [];
  for (const alike of groups.values()) {
    yield;
    matters.push(...inFullOrTogether([...alike.values()]));
  }
  return matters;
}

function inFullOrTogether(groups: readonly Group[]): readonly Matter[] {
  const matter = ({ kind, cause, chains }: Group, others = 0): Matter =>
    matterOf(kind, cause, 'l4_chain', chains, others);
  if (groups.length <= causesInFull + 1) return groups.map((group) => matter(group));
  const keyOfCause = ({ cause }: Group): string => sortKey(cause?.resource.name ?? '');
  const largest = firstOf(groups, causesInFull, keyOfCause, (a, b) => b.chains.length - a.chains.length);
  const shown = new Set(largest);
  const rest = groups.filter((group) => !shown.has(group));
  const [{ kind, cause } = { kind: groups[0]?.kind ?? 'chain_down', cause: null }] = rest;
  const together = { kind, cause, chains: rest.flatMap(({ chains }) => chains) };
  return [...largest.map((group) => matter(group)), matter(together, rest.length)];
}

/** @param others more than 0 for a matter that several resources have caused */
function matterOf(
  kind: ResourceMatter,
  cause: Cause | null,
  type: ConcernedType,
  all: readonly Reasoned[],
  others = 0,
): Matter {
  const shown = firstOf(all, limits.rest.matterResources, nameOrder);
  const count = all.length;
  const { name: first = '', reason = '' } = shown[0] ?? {};
  return {
    severity: severityOf[kind],
    kind,
    cause: cause?.kind ?? null,
    causedBy: others > 0 ? null : cause,
    count,
    sentence: sentenceOf({ kind, cause, count, first, reason, others }),
    resources: shown.map(({ id, name, reason }) => ({ type, id, name, reason })),
  };
}

/** Each node once, with a reason that names its first listener. */
function byNode(listeners: readonly ListenerOfNode[], words: (one: ListenerOfNode) => string): readonly Reasoned[] {
  const nodes = new Map<string, { readonly first: ListenerOfNode; more: number }>();
  for (const one of listeners) {
    const known = nodes.get(one.node.id);
    if (known === undefined) nodes.set(one.node.id, { first: one, more: 0 });
    else known.more += 1;
  }
  return [...nodes.values()].map(({ first, more }) => ({
    ...first.node,
    reason: more === 0 ? words(first) : `${words(first)}, and ${more} more`,
  }));
}
