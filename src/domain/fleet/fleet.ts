/**
 * The fleet: all intent of one installation as one consistency boundary, in tables that can be rolled back.
 * Holds state and indexes, decides nothing. Implements `docs/contract/domain.md`, "One consistency boundary" and "Generation".
 */
import type { ChainState } from '../chain/chain.js';
import type { Cell, Index, Journal, Table } from '../aggregate/journal.js';
import { createCell, createIndex, createJournal, createTable } from '../aggregate/journal.js';
import type { ClaimIndex } from '../listeners/claims.js';
import { createClaimIndex } from '../listeners/claims.js';
import type { NodeState } from '../node/node.js';
import type { SettingsState } from '../settings/settings.js';
import { defaultSettings } from '../settings/settings.js';
import type { UpstreamState } from '../upstream/upstream.js';
import type { IdempotencyTable } from '../aggregate/idempotency.js';
import { createIdempotencyTable } from '../aggregate/idempotency.js';

export interface Fleet {
  readonly journal: Journal;
  /** Revision of `svc-fleet` that this fold has reached; -1 when it is empty. */
  readonly revision: Cell<number>;
  /** Log position of that revision. */
  readonly position: Cell<number>;

  readonly nodes: Table<NodeState>;
  readonly upstreams: Table<UpstreamState>;
  readonly chains: Table<ChainState>;
  readonly settings: Cell<SettingsState>;
  readonly compilerVersion: Cell<number>;
  /** Per node: revision of the last event of the last command that touched its configuration. */
  readonly touched: Table<number>;
  readonly idempotency: IdempotencyTable;

  // Indexes: derived from the above, rebuilt when a checkpoint is restored.
  /** `<resource type>/<name key>` → id. */
  readonly names: Table<string>;
  /** `<type>/<id>` → owners (`l4_chain/<id>`) whose current or deployed definition refers to it. */
  readonly references: Index;
  /** Node id → chains whose deployed definition has a hop there. */
  readonly deployedOn: Index;
  readonly claims: ClaimIndex;
}

export function emptyFleet(): Fleet {
  const journal = createJournal();
  return {
    journal,
    revision: createCell(journal, -1),
    position: createCell(journal, 0),
    nodes: createTable(journal),
    upstreams: createTable(journal),
    chains: createTable(journal),
    settings: createCell(journal, defaultSettings),
    compilerVersion: createCell(journal, 0),
    touched: createTable(journal),
    idempotency: createIdempotencyTable(journal),
    names: createTable(journal),
    references: createIndex(journal),
    deployedOn: createIndex(journal),
    claims: createClaimIndex(journal),
  };
}

/**
 * A node's generation: 1 + the revision of the last event of the last command that touched it, plus its offset. No
 * counter is kept, so every instance and every rebuild computes the same. Undefined for an unknown node.
 */
export function generationOf(fleet: Fleet, nodeId: string): number | undefined {
  const node = fleet.nodes.get(nodeId);
  const revision = fleet.touched.get(nodeId);
  return node === undefined || revision === undefined ? undefined : 1 + revision + node.generation_offset;
}
