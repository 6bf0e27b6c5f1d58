/**
 * A gateway node as operators describe it: state, events, commands. Not its telemetry and not what its agent did
 * (streams `svc-agents-*`). Implements `docs/contract/rest.md#nodes` and `docs/contract/domain.md#generation`.
 */
import type { Changes, FieldChange } from '../resource/change.js';
import type { ResourceMeta } from '../resource/meta.js';
import type { SealedSecret } from '../resource/sealed.js';

export type Labels = { readonly [key: string]: string };

export interface NodeState extends ResourceMeta {
  readonly name: string;
  readonly description: string | null;
  /** Host or IP that other nodes dial; falls back to what the agent reported. */
  readonly address: string | null;
  readonly labels: Labels;
  readonly psk: NodePsk | null;
  /** As the agent's hello last reported them. */
  readonly public_ipv4: string | null;
  readonly public_ipv6: string | null;
  /** Added to the node's revision to give its generation; above 0 only after a store was restored. */
  readonly generation_offset: number;
  /** For the agent, oldest first: what was queued lately, claimed or not. Expired ones go when the next is queued. */
  readonly commands: readonly AgentCommand[];
}

export type AgentCommandName = 'RELOAD_CONFIG' | 'RESTART_PINGORA' | 'RUN_DIAGNOSTICS';

/** One command to the agent. Delivered at most once: a claim in the read store settles who sends it. */
export interface AgentCommand {
  /** That of the command which queued it, and so of its audit entry. */
  readonly id: string;
  readonly command: AgentCommandName;
  /** RFC 3339. */
  readonly queued_at: string;
  readonly expires_at: string;
}

export interface NodePsk {
  readonly fingerprint: string;
  readonly issued_at: string;
  /** JSON of {node_static_public, psk}, sealed with stream, node id and field `psk_verifier` as associated data. */
  readonly verifier: SealedSecret;
}

/** A per-node override of the connectivity settings, deleted and restored with its node. */
export interface MultiplexOverride {
  readonly multiplex: boolean;
  readonly multiplex_port: number | null;
}

export type NodeEvent =
  | {
      readonly type: 'NodeCreated';
      readonly data: {
        readonly node_id: string;
        readonly name: string;
        readonly description: string | null;
        readonly address: string | null;
        readonly labels: Labels;
      };
    }
  | { readonly type: 'NodeUpdated'; readonly data: { readonly node_id: string; readonly changes: Changes } }
  | {
      readonly type: 'NodeDeleted';
      readonly data: {
        readonly node_id: string;
        readonly name: string;
        readonly description: string | null;
        readonly address: string | null;
        readonly labels: Labels;
        /** Goes with the node and comes back with it. */
        readonly override: MultiplexOverride | null;
        /** Without it a node that comes back could take a generation that its agent has seen before. */
        readonly generation_offset: number;
      };
    }
  | {
      readonly type: 'NodePskIssued';
      readonly data: { readonly node_id: string; readonly fingerprint: string; readonly verifier: SealedSecret };
    }
  | { readonly type: 'NodeConfigRefreshed'; readonly data: { readonly node_id: string } }
  | {
      readonly type: 'NodeReportedAddressChanged';
      readonly data: {
        readonly node_id: string;
        readonly public_ipv4: FieldChange<string | null>;
        readonly public_ipv6: FieldChange<string | null>;
      };
    }
  | {
      readonly type: 'NodeGenerationRaised';
      readonly data: { readonly node_id: string; readonly offset: FieldChange<number> };
    }
  | { readonly type: 'NodeCommandQueued'; readonly data: { readonly node_id: string } & QueuedData };

interface QueuedData {
  readonly command: AgentCommandName;
  readonly queued_at: string;
  readonly expires_at: string;
}

export type NodeCommand =
  | {
      readonly type: 'CreateNode';
      readonly id: string;
      readonly name: string;
      readonly description: string | null;
      readonly address: string | null;
      readonly labels: Labels;
      readonly psk: { readonly fingerprint: string; readonly verifier: SealedSecret } | null;
    }
  | {
      readonly type: 'UpdateNode';
      readonly id: string;
      readonly ifMatch: IfMatch;
      readonly name?: string | undefined;
      readonly description?: string | null | undefined;
      readonly address?: string | null | undefined;
      readonly labels?: Labels | undefined;
    }
  | { readonly type: 'DeleteNode'; readonly id: string; readonly ifMatch: IfMatch }
  | {
      readonly type: 'IssueNodePsk';
      readonly id: string;
      readonly fingerprint: string;
      readonly verifier: SealedSecret;
    }
  | { readonly type: 'RefreshNodeConfig'; readonly id: string }
  | {
      readonly type: 'ReportNodeAddress';
      readonly id: string;
      readonly public_ipv4: string | null;
      readonly public_ipv6: string | null;
    }
  | {
      readonly type: 'RaiseNodeGeneration';
      readonly id: string;
      /** The version that the agent says it runs; the node's next generation will be above it. */
      readonly reported: number;
    }
  | ({ readonly type: 'QueueNodeCommand'; readonly id: string } & QueuedData);

/** `If-Match`: undefined when it was not sent, `*` for any existing version, else the versions that match. */
export type IfMatch = undefined | '*' | readonly number[];
