/**
 * The facts about agents, in the streams `svc-agents-*`, and those that a node's state stands for, which are written again
 * before they expire: the events of then, with the times of then, so folding them once more changes nothing that is
 * shown. When they are written is in `src/commands/standing-facts.ts`. Facts are recorded, not decided. Telemetry is
 * never in the log. Implements `docs/contract/domain.md#one-consistency-boundary-the-fleet`, "what expires never changes
 * what is shown".
 */
import type { RecordedEvent } from '../../kernel/event.js';
import { eventOf, streams } from '../../kernel/event.js';
import type { EventSchemas } from '../resource/declaration.js';
import type { NodeAgentFacts } from './node-agent-facts.js';

export interface ApplyError {
  readonly resource_type: string;
  readonly resource_id: string;
  readonly path: string;
  readonly message: string;
}

/** Fields that the data of every fact may have. */
interface FactMarks {
  /**
   * Facts expire. One that still counts is written again, with its content and `occurred_at` unchanged; this is when,
   * RFC 3339. It tells nothing new and supersedes no session.
   */
  readonly again_at?: string;
}

export type AgentEvent =
  | {
      readonly type: 'AgentSessionOpened';
      readonly data: FactMarks & {
        readonly node_id: string;
        /** Lower-case hex. */
        readonly session_id: string;
        readonly instance_id: string;
        readonly agent_version: string;
        readonly public_ipv4: string;
        readonly public_ipv6: string;
        readonly detected_addresses: readonly string[];
        readonly multiplex: boolean;
        readonly multiplex_port: number;
      };
    }
  | {
      readonly type: 'AgentConfigApplied';
      readonly data: FactMarks & {
        readonly node_id: string;
        readonly generation: number;
        /** Lower-case hex. */
        readonly checksum: string;
        readonly duration_ms: number;
        /**
         * The node had applied this later generation and runs the lower one all the same: its process lost what it ran,
         * and only the lower one could be served. Without it a lower generation is one that arrives late.
         */
        readonly falls_from?: number;
      };
    }
  | {
      readonly type: 'AgentConfigRejected';
      readonly data: FactMarks & {
        readonly node_id: string;
        readonly generation: number;
        readonly checksum: string;
        readonly errors: readonly ApplyError[];
      };
    }
  /** The agent reported a version out of bounds: shown as `version_conflict_at` until the next confirmed apply. */
  | {
      readonly type: 'AgentVersionConflict';
      readonly data: FactMarks & { readonly node_id: string; readonly reported: string };
    }
  /** Two agents share the node's PSK: shown as `duplicate_agent` until `until` (RFC 3339). */
  | {
      readonly type: 'AgentDuplicateSeen';
      readonly data: FactMarks & { readonly node_id: string; readonly until: string };
    };

/**
 * The outcome of a fact: it is durable; a newer one of its kind is written in its place; its session was superseded
 * before it was written; or the log refuses it for good.
 */
export type FactOutcome = 'recorded' | 'coalesced' | 'superseded' | 'refused';

/** Records what an agent told on a session. @throws ServiceError `unavailable` */
export type RecordFact = (nodeId: string, event: AgentEvent, sessionId: string) => Promise<FactOutcome>;

export const agentEvents: EventSchemas<AgentEvent> = {
  AgentSessionOpened: { schemaVersion: 1 },
  AgentConfigApplied: { schemaVersion: 1 },
  AgentConfigRejected: { schemaVersion: 1 },
  AgentVersionConflict: { schemaVersion: 1 },
  AgentDuplicateSeen: { schemaVersion: 1 },
};

/** A recorded event as a fact about an agent. */
export const agentEvent = (event: RecordedEvent): AgentEvent => eventOf(streams.agentsPrefix, event);

export interface StandingFact {
  readonly event: AgentEvent;
  /** When it happened, RFC 3339. */
  readonly at: string;
}

/**
 * @param again_at the time now, RFC 3339
 * @returns in the order in which their fold gives `facts`; none for a node whose agent has never connected
 */
export function standingFacts(node_id: string, facts: NodeAgentFacts, again_at: string): readonly StandingFact[] {
  const standing: StandingFact[] = [];
  const { session, applied, rejected } = facts;
  if (session !== undefined) {
    standing.push({
      at: session.at,
      event: {
        type: 'AgentSessionOpened',
        data: {
          node_id,
          session_id: session.id,
          instance_id: session.instance_id,
          agent_version: facts.agent_version ?? '',
          public_ipv4: session.public_ipv4,
          public_ipv6: session.public_ipv6,
          detected_addresses: facts.detected_addresses,
          multiplex: facts.reported_multiplex ?? false,
          multiplex_port: facts.reported_multiplex_port ?? 0,
          again_at,
        },
      },
    });
  }
  const reports: StandingFact[] = [];
  if (applied !== null) {
    const { generation, checksum, duration_ms, at } = applied;
    const data = { node_id, generation, checksum, duration_ms, again_at };
    reports.push({ at, event: { type: 'AgentConfigApplied', data } });
  }
  if (rejected !== null) {
    const { generation, checksum, errors, at } = rejected;
    const data = { node_id, generation, checksum, errors, again_at };
    reports.push({ at, event: { type: 'AgentConfigRejected', data } });
  }
  standing.push(...(rejected?.applied_since === true ? reports.reverse() : reports));
  // After the apply, which ends a conflict.
  if (facts.version_conflict_at !== null) {
    const data = { node_id, reported: facts.version_conflict ?? '', again_at };
    standing.push({ at: facts.version_conflict_at, event: { type: 'AgentVersionConflict', data } });
  }
  if (facts.duplicate_until !== null) {
    const data = { node_id, until: facts.duplicate_until, again_at };
    standing.push({ at: facts.duplicate_until, event: { type: 'AgentDuplicateSeen', data } });
  }
  return standing;
}
