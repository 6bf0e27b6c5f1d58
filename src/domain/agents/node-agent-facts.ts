/**
 * What is known of a node's agent: a fold of the facts of `svc-agents-*`. Not presence and not telemetry, which are not in
 * the log. Implements `docs/contract/rest.md#nodes`: `apply`, `duplicate_agent`, `version_conflict_at`.
 */
import { unreachable } from '../../kernel/errors.js';
import type { AgentEvent, ApplyError } from './facts.js';

/** Times are RFC 3339. */
export interface NodeAgentFacts {
  /** False until the first session; the node's status is `pending` until then. */
  readonly connected_once: boolean;
  readonly agent_version: string | null;
  readonly detected_addresses: readonly string[];
  readonly reported_multiplex: boolean | null;
  readonly reported_multiplex_port: number | null;
  readonly applied: { readonly generation: number; readonly checksum: string; readonly at: string } | null;
  /** The last reject, until an apply of its generation or of a later one. */
  readonly rejected: {
    readonly generation: number;
    readonly checksum: string;
    readonly at: string;
    readonly errors: readonly ApplyError[];
  } | null;
  readonly duplicate_until: string | null;
  readonly version_conflict_at: string | null;
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
  switch (event.type) {
    case 'AgentSessionOpened': {
      const { agent_version, detected_addresses, multiplex, multiplex_port } = event.data;
      return {
        ...facts,
        connected_once: true,
        agent_version,
        detected_addresses,
        reported_multiplex: multiplex,
        // 0 means none on the wire.
        reported_multiplex_port: multiplex_port === 0 ? null : multiplex_port,
      };
    }
    case 'AgentConfigApplied': {
      const { generation, checksum } = event.data;
      const outlived = facts.rejected !== null && facts.rejected.generation <= generation;
      return {
        ...facts,
        applied: { generation, checksum, at },
        rejected: outlived ? null : facts.rejected,
        version_conflict_at: null,
      };
    }
    case 'AgentConfigRejected': {
      const { generation, checksum, errors } = event.data;
      return { ...facts, rejected: { generation, checksum, at, errors } };
    }
    case 'AgentVersionConflict':
      return { ...facts, version_conflict_at: at };
    case 'AgentDuplicateSeen':
      return { ...facts, duplicate_until: event.data.until };
    default:
      return unreachable(event);
  }
}
