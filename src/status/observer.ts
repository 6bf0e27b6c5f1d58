/**
 * The fleet's statuses as the status writer sees them: what the reports say now and since when, and which changes have
 * to wait because an agent may come back. A node that falls silent is offline at once everywhere else; here its
 * silence, and what follows from it for chains and upstreams, counts only after its grace. Implements
 * `docs/contract/notices.md#status-changes-are-facts`.
 */
import { liveDefinition } from '../domain/chain/chain.js';
import { healthOfFaults, type Fault } from '../domain/chain/health.js';
import { offlineAfterSeconds } from '../domain/settings/settings.js';
import type { Observed } from '../domain/status/decide.js';
import { keyText, type StatusKey } from '../domain/status/status.js';
import { limits } from '../kernel/limits.js';
import { isOfFuture, type Clock } from '../kernel/clock.js';
import type { Counts } from '../reports/counts.js';
import { certificateLeft } from '../reports/certificates.js';
import type { Reports } from '../reports/port.js';
import {
  diallersOf,
  faultsOf,
  nameOfNode,
  statusOf,
  statusOfUpstream,
  unhealthyAt,
  type StatusDeps,
} from '../reports/status.js';
import type { StatusLedger } from './ledger.js';
import { tuning } from './tuning.js';

export interface ObserverDeps extends StatusDeps {
  readonly reports: StatusDeps['reports'] & Pick<Reports, 'vitals' | 'closedAt'>;
  /** Which statuses may have changed. */
  readonly counts: Pick<Counts, 'onStatus'>;
  readonly ledger: Pick<StatusLedger, 'last'>;
  /** The same on every instance. */
  readonly clock: Pick<Clock, 'now'>;
}

/** The state of a resource now, and since when, as far as is known. */
interface Now {
  readonly name: string;
  readonly status: string;
  readonly reason: string | null;
  /** Milliseconds since the epoch; undefined: since it was first seen in this state. */
  readonly since?: number | undefined;
  /** Nodes whose silence explains it, if anything does. */
  readonly silent?: readonly string[];
  /** Its state without the effects of silence. */
  readonly otherwise?: Pick<Now, 'status' | 'reason'>;
}

/** What the status writer knows of the fleet now; tests simulate it. */
export type StatusSource = ReturnType<typeof createObserver>;

export function createObserver(deps: ObserverDeps) {
  const { fleet, reports, agentFacts, clock, counts, ledger } = deps;
  /** When each resource was first seen in its current state. */
  const seen = new Map<string, { readonly status: string; readonly at: number }>();

  /** When the silence of a node counts, milliseconds since the epoch; 0 for a node that is not silent. */
  function graceEnds(nodeId: string, from: number): number {
    if (statusOf(deps, nodeId) !== 'offline' || ledger.last({ type: 'node', id: nodeId })?.status === 'offline')
      return 0;
    const offlineAfterMs = offlineAfterSeconds(fleet.settings()) * 1000;
    const closedAt = reports.closedAt(nodeId);
    if (closedAt > 0 && !isOfFuture(closedAt, clock.now()))
      return Math.max(closedAt, from) + Math.min(limits.status.closedMs, offlineAfterMs);
    return Math.max(lastSeen(deps, nodeId), from) + offlineAfterMs;
  }

  /** When a resource was first seen in its current state. */
  function seenSince(key: StatusKey, { status, since }: Now): number {
    const text = keyText(key);
    const before = seen.get(text);
    if (before?.status === status && !isOfFuture(before.at, clock.now())) return before.at;
    const at = Math.min(since ?? clock.now(), clock.now());
    seen.set(text, { status, at });
    return at;
  }

  return {
    /** Every resource that may have a status. */
    *keys(): Iterable<StatusKey> {
      for (const id of fleet.nodeIds()) yield { type: 'node', id };
      for (const { id } of fleet.chains()) yield { type: 'l4_chain', id };
      for (const { id } of fleet.upstreams()) yield { type: 'l4_upstream', id };
      for (const { id, certificate } of fleet.credentials()) if (certificate !== null) yield { type: 'credential', id };
    },
    /**
     * @param from since when the grace for agents that come back counts, milliseconds since the epoch
     * @returns undefined for a resource that is gone
     */
    observe(key: StatusKey, from: number): Observed | undefined {
      const now = nowOf(deps, key);
      if (now === undefined) {
        seen.delete(keyText(key));
        return undefined;
      }
      const since = seenSince(key, now);
      const { type, id } = key;
      const resource = { type, id, name: now.name };
      const shown = ({ status, reason }: Pick<Now, 'status' | 'reason'>, dueAt: number): Observed => ({
        resource,
        status,
        reason: reason?.slice(0, tuning.reasonChars) ?? null,
        since,
        dueAt,
      });
      const stood = (ms: number): number => since + ms;
      if (type === 'node' && now.status === 'offline') return shown(now, graceEnds(id, from));
      const graceAt = Math.max(0, ...(now.silent ?? []).map((nodeId) => graceEnds(nodeId, from)));
      if (graceAt > clock.now() && now.otherwise !== undefined) {
        return { ...shown(now.otherwise, stood(limits.status.standsMs)), againAt: graceAt };
      }
      return shown(now, stood(limits.status.standsMs));
    },
    /** Whether the resource had a status before anything was told: it is older than this log's `svc-status`. */
    isOlder: ({ type, id }: StatusKey): boolean => type !== 'node' || agentFacts.of(id).connected_once,
    /** Calls back with each resource whose status may have changed. @returns how to stop */
    onChange: (listener: (key: StatusKey) => void): (() => void) => counts.onStatus((keys) => keys.forEach(listener)),
  };
}

/** Milliseconds since the epoch; 0 for a node that was never seen, or was seen by a clock that was ahead. */
function lastSeen(deps: Pick<ObserverDeps, 'reports' | 'clock'>, nodeId: string): number {
  const { last_seen_at } = deps.reports.vitals(nodeId);
  const at = last_seen_at === null ? 0 : Date.parse(last_seen_at);
  return isOfFuture(at, deps.clock.now()) ? 0 : at;
}

function nodeNow(deps: ObserverDeps, id: string): Now | undefined {
  const node = deps.fleet.node(id);
  if (node === undefined) return undefined;
  const status = statusOf(deps, id);
  const opened = deps.agentFacts.of(id).session?.at;
  const at = status === 'online' && opened !== undefined ? Date.parse(opened) : lastSeen(deps, id);
  // The log learns of a session a little later than the reports do: until then it has the one that ended.
  const told = deps.ledger.last({ type: 'node', id })?.since;
  const isOfNow = at > 0 && (status !== 'online' || told === undefined || at > Date.parse(told));
  return { name: node.name, status, reason: null, since: isOfNow ? at : undefined };
}

function chainNow(deps: ObserverDeps, id: string): Now | undefined {
  const chain = deps.fleet.chain(id);
  if (chain === undefined) return undefined;
  const live = liveDefinition(chain);
  if (live === null) return { name: chain.name, status: 'unknown', reason: null };
  const faults = faultsOf(deps, chain, live);
  const isSilence = ({ cause }: Fault): boolean => cause?.kind === 'node_offline';
  const silent = faults.flatMap((fault) => (isSilence(fault) && fault.cause ? [fault.cause.resource.id] : []));
  const otherwise = silent.length === 0 ? {} : { otherwise: healthNow(faults.filter((fault) => !isSilence(fault))) };
  return { name: chain.name, ...healthNow(faults), silent, ...otherwise };
}

function upstreamNow(deps: ObserverDeps, id: string): Now | undefined {
  const upstream = deps.fleet.upstream(id);
  if (upstream === undefined) return undefined;
  const status = statusOfUpstream(deps, id);
  const [first, ...others] = unhealthyAt(deps, id).map((nodeId) => nameOfNode(deps, nodeId));
  const more = others.length === 0 ? '' : ` and ${others.length} more`;
  const reason = first === undefined ? null : `node "${first}"${more} reports so`;
  // A node that said it was unhealthy and is silent now has not said otherwise.
  const silent = status === 'healthy' ? [...diallersOf(deps.fleet, id)] : [];
  return { name: upstream.name, status, reason, silent, otherwise: { status: 'unknown', reason: null } };
}

function certificateNow(deps: ObserverDeps, id: string): Now | undefined {
  const credential = deps.fleet.resources.credential.get(id);
  const ends = credential?.certificate?.not_after;
  if (credential === undefined || ends === undefined) return undefined;
  const { left, since } = certificateLeft(Date.parse(ends), deps.clock.now());
  const reason = left === 'ended' ? `it ended on ${ends}` : `it ends on ${ends}`;
  return { name: credential.name, status: left, reason, since };
}

/** The current state of a resource; undefined if it is gone. */
function nowOf(deps: ObserverDeps, { type, id }: StatusKey): Now | undefined {
  switch (type) {
    case 'node':
      return nodeNow(deps, id);
    case 'l4_chain':
      return chainNow(deps, id);
    case 'l4_upstream':
      return upstreamNow(deps, id);
    case 'credential':
      return certificateNow(deps, id);
  }
}

const healthNow = (faults: readonly Fault[]): Pick<Now, 'status' | 'reason'> => {
  const { state, reasons } = healthOfFaults(faults);
  return { status: state, reason: reasons[0] ?? null };
};
