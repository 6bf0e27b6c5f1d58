/**
 * What needs somebody: from what is not well in a fleet to matters, worst first, grouped by cause. A matter is what a person
 * mends in one place: twelve chains that are down because one upstream is unhealthy are one. Pure; whoever asks has gathered
 * the facts, and says which of them are true. Implements `docs/contract/rest.md#dashboard`, `matters`.
 */
import { compareText } from '../../kernel/compare-text.js';
import { unreachable } from '../../kernel/errors.js';
import { limits } from '../../kernel/limits.js';
import type { Cause } from '../chain/health.js';
import { sentenceOf } from './sentences.js';

export const severities = ['down', 'degraded', 'soon'] as const;
export type Severity = (typeof severities)[number];

/** Kinds of matters with their severity, the worst first. */
const severityOf = {
  chain_down: 'down',
  certificate_ended: 'down',
  chain_degraded: 'degraded',
  chain_unknown: 'degraded',
  node_offline: 'degraded',
  node_rejected: 'degraded',
  listener_missing: 'degraded',
  upstream_unhealthy: 'degraded',
  webhook_stopped: 'degraded',
  certificate_ending: 'soon',
  chain_modified: 'soon',
  unexpected_listener: 'soon',
} as const satisfies { readonly [kind: string]: Severity };

export type MatterKind = keyof typeof severityOf;
export const matterKinds = Object.keys(severityOf) as readonly MatterKind[];

export type ConcernedType = 'node' | 'l4_chain' | 'l4_upstream' | 'credential' | 'webhook';

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
  /** Of chains that are down or degraded, else null. */
  readonly cause: Cause['kind'] | null;
  /** What the chains have in common; null for the rest of a kind and cause, of several resources. */
  readonly causedBy: Cause | null;
  /** Chains, or else resources. */
  readonly count: number;
  readonly sentence: string;
  /** The first by name. */
  readonly resources: readonly Concerned[];
}

type Named = Pick<Concerned, 'id' | 'name'>;
type Reasoned = Named & Pick<Concerned, 'reason'>;

/** A chain that is deployed and enabled, and not ok. */
export interface UnwellChain extends Reasoned {
  readonly state: 'down' | 'degraded' | 'unknown';
  readonly cause: Cause | null;
  /** Of an unknown one: since when, milliseconds since the epoch. */
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

/** What is not well in a fleet. */
export interface Unwell {
  readonly chains: readonly UnwellChain[];
  readonly offlineNodes: readonly Reasoned[];
  /** Of those that are not offline. */
  readonly rejectingNodes: readonly Reasoned[];
  /** Deployed, and not running. */
  readonly missingListeners: readonly ListenerOfNode[];
  /** Reported, and not deployed. */
  readonly unexpectedListeners: readonly ListenerOfNode[];
  /** Of those that are enabled. */
  readonly unhealthyUpstreams: readonly Reasoned[];
  /** Certificates that something uses. */
  readonly endedCertificates: readonly Reasoned[];
  readonly endingCertificates: readonly Reasoned[];
  readonly modifiedChains: readonly Reasoned[];
  readonly stoppedWebhooks: readonly Reasoned[];
}

/** Lists that whoever gathers the facts fills. */
export type UnwellLists = { -readonly [K in keyof Unwell]: Unwell[K][number][] };

export const nothingUnwell = (): UnwellLists => ({
  chains: [],
  offlineNodes: [],
  rejectingNodes: [],
  missingListeners: [],
  unexpectedListeners: [],
  unhealthyUpstreams: [],
  endedCertificates: [],
  endingCertificates: [],
  modifiedChains: [],
  stoppedWebhooks: [],
});

/** How long nothing may be known of a chain before that is a matter: a deploy and a reconnect take a moment. @internal exported for tests */
export const unknownForMs = 60_000;

/**
 * Of one kind and cause, so many resources have a matter of their own, those with the most chains; the rest is one matter, so
 * that an answer stays short while half a fleet is away.
 */
const causesInFull = 10;

/** @param now milliseconds since the epoch */
export function mattersOf(unwell: Unwell, now: number): readonly Matter[] {
  const matters = chainMatters(unwell.chains, now);
  const causes = new Set(unwell.chains.flatMap(({ cause }) => (cause === null ? [] : [keyOf(cause)])));
  const isCause = (kind: Cause['kind'], resource: Named, detail?: string): boolean =>
    causes.has(keyOf({ kind, resource, ...(detail === undefined ? {} : { detail }) }));
  const of = (kind: MatterKind, type: ConcernedType, some: readonly Reasoned[]): void => {
    if (some.length > 0)
      matters.push(
        matterOf(
          kind,
          null,
          some.length,
          some.map((one) => ({ ...one, type })),
        ),
      );
  };
  const offline = unwell.offlineNodes.filter((node) => !isCause('node_offline', node));
  const rejecting = unwell.rejectingNodes.filter((node) => !isCause('node_rejected', node));
  // Where a chain is down because its node has rejected it, the listener is missing for the same reason.
  const missing = unwell.missingListeners.filter(
    ({ node, listener }) => !isCause('listener_missing', node, listener) && !isCause('node_rejected', node),
  );
  of('certificate_ended', 'credential', unwell.endedCertificates);
  of('node_offline', 'node', offline);
  of('node_rejected', 'node', rejecting);
  of(
    'listener_missing',
    'node',
    byNode(missing, ({ listener, state }) => `${listener} is ${state}`),
  );
  const unhealthy = unwell.unhealthyUpstreams.filter((upstream) => !isCause('upstream_unhealthy', upstream));
  of('upstream_unhealthy', 'l4_upstream', unhealthy);
  of('webhook_stopped', 'webhook', unwell.stoppedWebhooks);
  of('certificate_ending', 'credential', unwell.endingCertificates);
  of('chain_modified', 'l4_chain', unwell.modifiedChains);
  const unexpected = byNode(unwell.unexpectedListeners, ({ listener }) => `${listener} is not deployed`);
  of('unexpected_listener', 'node', unexpected);
  return matters.sort(worstFirst);
}

/** The worst kind first, and of one kind the one that concerns most. */
function worstFirst(a: Matter, b: Matter): number {
  return (
    severities.indexOf(a.severity) - severities.indexOf(b.severity) ||
    matterKinds.indexOf(a.kind) - matterKinds.indexOf(b.kind) ||
    b.count - a.count ||
    compareText(a.sentence, b.sentence)
  );
}

/** Names a cause. The detail of a link is where it leads, of a listener which one it is. */
const keyOf = ({ kind, resource, detail = '' }: Pick<Cause, 'kind' | 'resource' | 'detail'>): string =>
  `${kind}/${resource.id}/${detail}`;

function kindOf({ state, since }: UnwellChain, now: number): MatterKind | undefined {
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
  readonly kind: MatterKind;
  readonly cause: Cause | null;
  readonly chains: UnwellChain[];
}

/** Chains of one kind, one cause and one resource are one matter. */
function chainMatters(chains: readonly UnwellChain[], now: number): Matter[] {
  const groups = new Map<string, Group>();
  for (const chain of chains) {
    const kind = kindOf(chain, now);
    if (kind === undefined) continue;
    const cause = kind === 'chain_unknown' ? null : chain.cause;
    const key = `${kind}/${cause === null ? '' : keyOf(cause)}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { kind, cause, chains: [chain] });
    else group.chains.push(chain);
  }
  const byKindAndCause = new Map<string, Group[]>();
  for (const group of groups.values()) {
    const key = `${group.kind}/${group.cause?.kind ?? ''}`;
    const alike = byKindAndCause.get(key);
    if (alike === undefined) byKindAndCause.set(key, [group]);
    else alike.push(group);
  }
  return [...byKindAndCause.values()].flatMap(inFullOrTogether);
}

function inFullOrTogether(groups: readonly Group[]): readonly Matter[] {
  const matter = ({ kind, cause, chains }: Group, others = 0): Matter =>
    matterOf(
      kind,
      cause,
      chains.length,
      chains.map(({ id, name, reason }) => ({ type: 'l4_chain' as const, id, name, reason })),
      others,
    );
  if (groups.length <= causesInFull + 1) return groups.map((group) => matter(group));
  const largest = firstOf(
    groups,
    causesInFull,
    (a, b) =>
      b.chains.length - a.chains.length || compareText(a.cause?.resource.name ?? '', b.cause?.resource.name ?? ''),
  );
  const shown = new Set(largest);
  const rest = groups.filter((group) => !shown.has(group));
  const [{ kind, cause } = { kind: groups[0]?.kind ?? 'chain_down', cause: null }] = rest;
  const together = { kind, cause, chains: rest.flatMap(({ chains }) => chains) };
  return [...largest.map((group) => matter(group)), matter(together, rest.length)];
}

/** @param others more than 0 for a matter that several resources have caused */
function matterOf(kind: MatterKind, cause: Cause | null, count: number, all: readonly Concerned[], others = 0): Matter {
  const resources = firstOf(all, limits.rest.matterResources, byName).map(({ type, id, name, reason }) => ({
    type,
    id,
    name,
    reason,
  }));
  return {
    severity: severityOf[kind],
    kind,
    cause: cause?.kind ?? null,
    causedBy: others > 0 ? null : cause,
    count,
    sentence: sentenceOf({
      kind,
      cause,
      count,
      first: resources[0]?.name ?? '',
      reason: resources[0]?.reason ?? '',
      others,
    }),
    resources,
  };
}

const byName = (a: Named, b: Named): number => compareText(a.name, b.name) || compareText(a.id, b.id);

/** The first ones in an order, without sorting all of them. */
function firstOf<T>(all: readonly T[], count: number, order: (a: T, b: T) => number): readonly T[] {
  const first: T[] = [];
  for (const one of all) {
    const last = first.at(-1);
    if (first.length === count && last !== undefined && order(one, last) >= 0) continue;
    const place = first.findIndex((other) => order(one, other) < 0);
    first.splice(place === -1 ? first.length : place, 0, one);
    if (first.length > count) first.pop();
  }
  return first;
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
