/**
 * What is known of a node's agent: a fold of the facts of `svc-agents-*`. Not presence and not telemetry, which are not in
 * the log. Implements `docs/contract/rest.md#nodes`: `apply`, `duplicate_agent`, `version_conflict_at`.
 *
 * Facts may arrive late: an instance that was cut off from the log writes them when it reaches it again. So a session that
 * is older than the recorded one tells nothing, and lower generations count as late. Facts of releases that did not know
 * this are folded as those releases did.
 */
import { unreachable } from '../../kernel/errors.js';
import type { AgentEvent, ApplyError } from './facts.js';

/** Times are RFC 3339. The optional fields are missing where an earlier release folded the facts. */
export interface NodeAgentFacts {
  /** False until the first session; the node's status is `pending` until then. */
  readonly connected_once: boolean;
  readonly agent_version: string | null;
  readonly detected_addresses: readonly string[];
  readonly reported_multiplex: boolean | null;
  readonly reported_multiplex_port: number | null;
  /** The session that told the fields above. */
  readonly session?: {
    readonly id: string;
    readonly instance_id: string;
    readonly public_ipv4: string;
    readonly public_ipv6: string;
    readonly at: string;
  };
  readonly applied: {
    readonly generation: number;
    readonly checksum: string;
    readonly at: string;
    readonly duration_ms?: number;
  } | null;
  /** The last reject of the highest generation, until an apply of it or of a later one. */
  readonly rejected: {
    readonly generation: number;
    readonly checksum: string;
    readonly at: string;
    readonly errors: readonly ApplyError[];
  } | null;
  readonly duplicate_until: string | null;
  readonly version_conflict_at: string | null;
  /** The version that was reported then. */
  readonly version_conflict?: string;
  /** No fact that the fields above stand for was written into the log before this time. */
  readonly written_since?: string;
}

/** The facts of a node whose agent has never connected. */
export const neverConnected: NodeAgentFacts = {
  connected_once: false,
  agent_version: null,
  detected_addresses: [],
  reported_multiplex: null,
  reported_multiplex_port: null,
  applied: null,
  rejected: null,
  duplicate_until: null,
  version_conflict_at: null,
};

/** @param at when the event happened, RFC 3339 */
export function evolveAgentFacts(facts: NodeAgentFacts, event: AgentEvent, at: string): NodeAgentFacts {
  const next = evolve(facts, event, at);
  if (next === facts) return facts;
  // All facts of a node are written again together, so none of them is older afterwards.
  const written_since = event.data.again_at ?? (hasFacts(facts) ? facts.written_since : at);
  return written_since === undefined ? next : { ...next, written_since };
}

/** Whether there is anything that a rebuild could lose. */
function hasFacts(facts: NodeAgentFacts): boolean {
  const { connected_once, applied, rejected, duplicate_until, version_conflict_at } = facts;
  return (
    connected_once || applied !== null || rejected !== null || duplicate_until !== null || version_conflict_at !== null
  );
}

function evolve(facts: NodeAgentFacts, event: AgentEvent, at: string): NodeAgentFacts {
  switch (event.type) {
    case 'AgentSessionOpened': {
      const { agent_version, detected_addresses, multiplex, multiplex_port } = event.data;
      const { session_id: id, instance_id, public_ipv4, public_ipv6 } = event.data;
      if (event.data.ordered === true && facts.session !== undefined && at < facts.session.at) return facts;
      return {
        ...facts,
        connected_once: true,
        agent_version,
        detected_addresses,
        reported_multiplex: multiplex,
        // 0 means none on the wire.
        reported_multiplex_port: multiplex_port === 0 ? null : multiplex_port,
        session: { id, instance_id, public_ipv4, public_ipv6, at },
      };
    }
    case 'AgentConfigApplied': {
      const { generation, checksum, duration_ms, falls_from, ordered } = event.data;
      const before = facts.applied?.generation ?? 0;
      if (ordered === true && generation < before && falls_from !== before) return facts;
      const outlived = facts.rejected !== null && facts.rejected.generation <= generation;
      const { version_conflict: _, ...rest } = facts;
      return {
        ...rest,
        applied: { generation, checksum, at, duration_ms },
        rejected: outlived ? null : facts.rejected,
        version_conflict_at: null,
      };
    }
    case 'AgentConfigRejected': {
      const { generation, checksum, errors, ordered } = event.data;
      const highest = Math.max(facts.applied?.generation ?? 0, facts.rejected?.generation ?? 0);
      if (ordered === true && generation < highest) return facts;
      return { ...facts, rejected: { generation, checksum, at, errors } };
    }
    case 'AgentVersionConflict':
      return { ...facts, version_conflict_at: at, version_conflict: event.data.reported };
    case 'AgentDuplicateSeen':
      return { ...facts, duplicate_until: event.data.until };
    default:
      return unreachable(event);
  }
}
