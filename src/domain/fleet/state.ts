/** The tables, singletons and indexes of the fleet. The questions that resources may ask are in `view.ts`. */
import type { IdempotencyTable } from '../aggregate/idempotency.js';
import type { Cell, Index, Table } from '../aggregate/containers.js';
import type { RevertTable } from '../aggregate/reverts.js';
import type { Claim, ClaimEntries } from '../listeners/claims.js';
import type { ChainHead } from '../log-chain/links.js';
import type { ResourceType, SingletonState, SingletonType, StateOf } from './resources.js';

export interface FleetState {
  /** The revision of `svc-fleet` that the fold has reached; -1 when the fleet is empty. */
  readonly revision: Cell<number>;
  /** The log position of that revision. */
  readonly position: Cell<number>;
  /** Where the log chain stands at that revision. The fold of the log's commands checks it and moves it on. */
  readonly logChain: Cell<ChainHead>;

  readonly tables: { readonly [T in ResourceType]: Table<StateOf<T>> };
  readonly singletons: { readonly [T in SingletonType]: Cell<SingletonState<T>> };
  /** Node id → the revision of the last event of the last command that touched the node. */
  readonly touched: Table<number>;
  readonly idempotency: IdempotencyTable;
  readonly reverts: RevertTable;

  // Indexes. A checkpoint does not hold them; they are derived again.
  /** `nameIndexKey` → id. */
  readonly names: Table<string>;
  /** Owner → owners whose current or deployed definition refers to it. */
  readonly references: Index;
  /** Node id → owners that may have rules in its snapshot. */
  readonly contributors: Index;
  readonly claimEntries: ClaimEntries;
  /** Owner → what `claimEntries` hold of it. */
  readonly claimsOf: Table<readonly Claim[]>;
}
