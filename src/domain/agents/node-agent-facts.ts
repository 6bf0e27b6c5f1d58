/**
 * The state of a node's agent: a fold of the facts of `svc-agents-*`. Presence and telemetry are not in the log. Implements
 * `docs/contract/rest.md#nodes`: `apply`, `duplicate_agent`, `version_conflict_at`.
 *
 * The later of an apply and a reject in the log counts. But an instance that was cut off from the log writes its facts
 * late, so older sessions, reports from before the recorded session, and generations below the applied one are ignored.
 * Times are those of the clock that all instances share (`src/instance/store-clocks.ts`).
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
  /** The features that the agent names, sorted. */
  readonly features: readonly string[];
  /** The session that reported the fields above; absent before the first. */
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
    readonly duration_ms: number;
  } | null;
  /** The last reject of the highest generation, until an apply of it or of a later one. */
  readonly rejected: {
    readonly generation: number;
    readonly checksum: string;
    readonly at: string;
    readonly errors: readonly ApplyError[];
    /** Set when the apply above, of a lower generation, came after this reject. */
    readonly applied_since?: true;
  } | null;
  /** The highest generation that the service has confirmed; absent before the first. */
  readonly confirmed?: { readonly generation: number; readonly at: string };
  readonly duplicate_until: string | null;
  readonly version_conflict_at: string | null;
  /** The version that was reported then; absent without a conflict. */
  readonly version_conflict?: string;
  /** The log holds no fact about the fields above from before this time; absent before the first fact. */
  readonly written_since?: string;
}

/** The facts of a node whose agent has never connected. */
export const neverConnected: NodeAgentFacts = {
  connected_once: false,
  agent_version: null,
  detected_addresses: [],
  reported_multiplex: null,
  reported_multiplex_port: null,
  features: [],
  applied: null,
  rejected: null,
  duplicate_until: null,
  version_conflict_at: null,
};

/**
 * Whether a report reflects what its node has applied. Compared by generation, not by time: a report that follows an apply on
 * its session may be stored before the apply.
 * Implements `docs/contract/domain.md#health-of-a-chain`, "a heartbeat counts for a listener only if".
 * @param runs the generation that the process ran when it reported; null when unknown
 */
export function tellsOfApplied(runs: number | null, facts: Pick<NodeAgentFacts, 'applied'> | undefined): boolean {
  const applied = facts?.applied ?? null;
  return applied === null || (runs !== null && runs >= applied.generation);
}

/**
 * @param at when the event happened, RFC 3339
 * @param sessionId the session that reported it: the event's `request_id`
 */
export function evolveAgentFacts(
  facts: NodeAgentFacts,
  event: AgentEvent,
  at: string,
  sessionId: string,
): NodeAgentFacts {
  const next = isOfSupersededSession(facts, event, at, sessionId) ? facts : evolve(facts, event, at);
  if (next === facts) return facts;
  // A node's facts are written again together, so afterwards none is older.
  return { ...next, written_since: event.data.again_at ?? facts.written_since ?? at };
}

/** By how much a fact may be late. One that seems to be older was recorded after a clock that was ahead was set right. */
const lateMostMs = 3_600_000;

/** Whether a fact is from before a time, although the log has it after what happened at that time. */
const isLate = (at: string, than: string): boolean => at < than && Date.parse(than) - Date.parse(at) < lateMostMs;

/** An apply or a reject that was reported before the recorded session was opened, and written after it. */
function isOfSupersededSession(
  { session }: NodeAgentFacts,
  { type, data }: AgentEvent,
  at: string,
  sessionId: string,
): boolean {
  if (type !== 'AgentConfigApplied' && type !== 'AgentConfigRejected') return false;
  // A fact that is written again keeps its first time.
  if (data.again_at !== undefined || session === undefined) return false;
  return session.id !== sessionId && isLate(at, session.at);
}

function evolve(facts: NodeAgentFacts, event: AgentEvent, at: string): NodeAgentFacts {
  switch (event.type) {
    case 'AgentSessionOpened': {
      const { agent_version, detected_addresses, multiplex, multiplex_port, features = [] } = event.data;
      const { session_id: id, instance_id, public_ipv4, public_ipv6 } = event.data;
      // A session that is written again may be of any age.
      const { again_at } = event.data;
      if (
        facts.session !== undefined &&
        (again_at === undefined ? isLate(at, facts.session.at) : at < facts.session.at)
      )
        return facts;
      return {
        ...facts,
        connected_once: true,
        agent_version,
        detected_addresses,
        reported_multiplex: multiplex,
        // 0 means none on the wire.
        reported_multiplex_port: multiplex_port === 0 ? null : multiplex_port,
        features,
        session: { id, instance_id, public_ipv4, public_ipv6, at },
      };
    }
    case 'AgentConfigApplied': {
      const { generation, checksum, duration_ms, falls_from } = event.data;
      const before = facts.applied?.generation ?? 0;
      if (generation < before && falls_from !== before) return facts;
      const { version_conflict: _, rejected, ...rest } = facts;
      return {
        ...rest,
        applied: { generation, checksum, at, duration_ms },
        rejected: rejected === null || rejected.generation <= generation ? null : { ...rejected, applied_since: true },
        version_conflict_at: null,
      };
    }
    case 'AgentConfigRejected': {
      const { generation, checksum, errors } = event.data;
      if (generation < (facts.applied?.generation ?? 0)) return facts;
      if (facts.rejected !== null && generation < facts.rejected.generation) {
        if (facts.rejected.applied_since === undefined) return facts;
        const { applied_since: _, ...higher } = facts.rejected;
        return { ...facts, rejected: higher };
      }
      return { ...facts, rejected: { generation, checksum, at, errors } };
    }
    case 'AgentConfigConfirmed': {
      const { generation } = event.data;
      return generation <= (facts.confirmed?.generation ?? 0) ? facts : { ...facts, confirmed: { generation, at } };
    }
    case 'AgentVersionConflict':
      return { ...facts, version_conflict_at: at, version_conflict: event.data.reported };
    case 'AgentDuplicateSeen':
      return { ...facts, duplicate_until: event.data.until };
    default:
      return unreachable(event);
  }
}
