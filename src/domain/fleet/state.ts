/** The tables, values and indexes that the fleet is made of. Not what may be asked of them: that is `view.ts`. */
import type { IdempotencyTable } from '../aggregate/idempotency.js';
import type { Cell, Index, Journal, Table } from '../aggregate/journal.js';
import type { ClaimIndex } from '../listeners/claims.js';
import type { ResourceType, SingletonState, SingletonType, StateOf } from './resources.js';

export interface FleetState {
  readonly journal: Journal;
  /** Revision of `svc-fleet` that this fold has reached; -1 when it is empty. */
  readonly revision: Cell<number>;
  /** Log position of the revision. */
  readonly position: Cell<number>;

  readonly tables: { readonly [T in ResourceType]: Table<StateOf<T>> };
  readonly singles: { readonly [T in SingletonType]: Cell<SingletonState<T>> };
  /** Per node: revision of the last event of the last command that touched its configuration. */
  readonly touched: Table<number>;
  readonly idempotency: IdempotencyTable;

  // Indexes: derived from the above, rebuilt when a checkpoint is restored.
  /** `<resource type>/<name key>` → id. */
  readonly names: Table<string>;
  /** Owner → owners whose current or deployed definition refers to it. */
  readonly references: Index;
  /** Node id → owners that may have rules in its snapshot. */
  readonly contributors: Index;
  readonly claims: ClaimIndex;
}
