/**
 * What agents did: the facts of the streams `svc-agents-*` and of `svc-signins`. Facts are recorded, never decided.
 * Implements `docs/contract/domain.md#one-consistency-boundary-the-fleet`.
 */
import type { RecordedEvent } from '../../kernel/event.js';
import { streams } from '../../kernel/event.js';

export interface ApplyError {
  readonly resource_type: string;
  readonly resource_id: string;
  readonly path: string;
  readonly message: string;
}

export type AgentEvent =
  | {
      readonly type: 'AgentSessionOpened';
      readonly data: {
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
      readonly data: {
        readonly node_id: string;
        readonly generation: number;
        /** Lower-case hex. */
        readonly checksum: string;
        readonly duration_ms: number;
      };
    }
  | {
      readonly type: 'AgentConfigRejected';
      readonly data: {
        readonly node_id: string;
        readonly generation: number;
        readonly checksum: string;
        readonly errors: readonly ApplyError[];
      };
    }
  /** An absurd version was reported: shown as `version_conflict_at` until an apply is next confirmed. */
  | { readonly type: 'AgentVersionConflict'; readonly data: { readonly node_id: string; readonly reported: string } }
  /** Two agents share the node's PSK: shown as `duplicate_agent` until `until` (RFC 3339). */
  | { readonly type: 'AgentDuplicateSeen'; readonly data: { readonly node_id: string; readonly until: string } };

export type SigninEvent =
  | {
      readonly type: 'SignedIn';
      readonly data: { readonly user_id: string; readonly username: string; readonly address: string };
    }
  /** Of an account that exists, or of none: what was typed is never stored. */
  | {
      readonly type: 'SignInRefused';
      readonly data: { readonly user_id: string | null; readonly username: string | null; readonly address: string };
    };

type Shapes<E extends { readonly type: string }> = { readonly [T in E['type']]: { readonly schemaVersion: number } };

/** Today's shapes. */
export const agentEvents: Shapes<AgentEvent> = {
  AgentSessionOpened: { schemaVersion: 1 },
  AgentConfigApplied: { schemaVersion: 1 },
  AgentConfigRejected: { schemaVersion: 1 },
  AgentVersionConflict: { schemaVersion: 1 },
  AgentDuplicateSeen: { schemaVersion: 1 },
};

export const signinEvents: Shapes<SigninEvent> = {
  SignedIn: { schemaVersion: 1 },
  SignInRefused: { schemaVersion: 1 },
};

/** A recorded event as what an agent did, after `log/upcast.ts` has vouched for its type and shape. */
export function agentEvent(event: RecordedEvent): AgentEvent {
  if (!event.stream.startsWith(streams.agentsPrefix)) {
    throw new Error(`${event.stream}@${event.revision} is no agent event`);
  }
  return event as unknown as AgentEvent;
}

/** A recorded event as a sign-in, after `log/upcast.ts` has vouched for its type and shape. */
export function signinEvent(event: RecordedEvent): SigninEvent {
  if (event.stream !== streams.signins) throw new Error(`${event.stream}@${event.revision} is no sign-in event`);
  return event as unknown as SigninEvent;
}
