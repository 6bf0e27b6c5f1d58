/**
 * The facts about agents in the streams `svc-agents-*`. Facts are recorded, not decided; telemetry is never in the log.
 * Implements `docs/contract/domain.md#one-consistency-boundary-the-fleet`.
 */
import { eventOf, streams, type RecordedEvent } from '../../kernel/event.js';
import type { EventSchemas } from '../resource/declaration.js';

export interface ApplyError {
  readonly resource_type: string;
  readonly resource_id: string;
  readonly path: string;
  readonly message: string;
}

interface AgentFact {
  readonly node_id: string;
  /** When the fact was written again before it expired, otherwise unchanged, RFC 3339. It supersedes no session. */
  readonly again_at?: string;
}

export type AgentEvent =
  | {
      readonly type: 'AgentSessionOpened';
      readonly data: AgentFact & {
        /** Lower-case hex. */
        readonly session_id: string;
        readonly instance_id: string;
        readonly agent_version: string;
        readonly public_ipv4: string;
        readonly public_ipv6: string;
        readonly detected_addresses: readonly string[];
        readonly multiplex: boolean;
        readonly multiplex_port: number;
        /** Sorted, each once; absent in the facts of releases that did not record them. */
        readonly features?: readonly string[];
      };
    }
  | {
      readonly type: 'AgentConfigApplied';
      readonly data: AgentFact & {
        readonly generation: number;
        /** Lower-case hex. */
        readonly checksum: string;
        readonly duration_ms: number;
        /**
         * The later generation that the node had applied before it fell back to this one: its process lost what it ran, and
         * only the lower one could be served. Without it, a lower generation counts as late.
         */
        readonly falls_from?: number;
      };
    }
  | {
      readonly type: 'AgentConfigRejected';
      readonly data: AgentFact & {
        readonly generation: number;
        readonly checksum: string;
        readonly errors: readonly ApplyError[];
      };
    }
  /** The service has confirmed a generation for which the node needed it. */
  | { readonly type: 'AgentConfigConfirmed'; readonly data: AgentFact & { readonly generation: number } }
  /** The agent reported a version out of bounds: shown as `version_conflict_at` until the next confirmed apply. */
  | { readonly type: 'AgentVersionConflict'; readonly data: AgentFact & { readonly reported: string } }
  /** Two agents share the node's PSK: shown as `duplicate_agent` until `until` (RFC 3339). */
  | { readonly type: 'AgentDuplicateSeen'; readonly data: AgentFact & { readonly until: string } };

/**
 * A fact is durable, replaced by a newer one of its kind, dropped with its superseded session, or refused by the log for
 * good.
 */
export type FactOutcome = 'recorded' | 'coalesced' | 'superseded' | 'refused';

/** Records a fact from an agent's session. @throws ServiceError `unavailable` */
export type RecordFact = (nodeId: string, event: AgentEvent, sessionId: string) => Promise<FactOutcome>;

export const agentEvents: EventSchemas<AgentEvent> = {
  AgentSessionOpened: {},
  AgentConfigApplied: {},
  AgentConfigRejected: {},
  AgentConfigConfirmed: {},
  AgentVersionConflict: {},
  AgentDuplicateSeen: {},
};

/** A recorded event as a fact about an agent. */
export const agentEvent = (event: RecordedEvent): AgentEvent => eventOf(streams.agentsPrefix, event);
