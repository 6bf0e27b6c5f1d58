/**
 * The fleet: all intent of one installation, as one consistency boundary. Tables and indexes that can be rolled back, and
 * what resources may ask of them. Decides nothing. Implements `docs/contract/domain.md#one-consistency-boundary-the-fleet`.
 */
import { createIdempotencyTable } from '../aggregate/idempotency.js';
import type { Cell } from '../aggregate/journal.js';
import { createCell, createIndex, createJournal, createTable } from '../aggregate/journal.js';
import type { ClaimIndex } from '../listeners/claims.js';
import { createClaimIndex } from '../listeners/claims.js';
import { emptyChain } from '../log-chain/links.js';
import type { FleetView } from '../resource/fleet-view.js';
import type { AnyState } from './resources.js';
import { resourceTypes, singletons, singletonTypes } from './resources.js';
import type { FleetState } from './state.js';
import { viewOf } from './view.js';

export interface Fleet extends FleetState, FleetView {
  readonly revision: Cell<number>;
  readonly claims: ClaimIndex;
}

/** The fleet on given tables and indexes. @internal exported for tests */
export function fleetOn(state: FleetState): Fleet {
  return { ...viewOf(state), ...state };
}

export function emptyFleet(): Fleet {
  const journal = createJournal();
  return fleetOn({
    journal,
    revision: createCell(journal, -1),
    position: createCell(journal, 0),
    logChain: createCell(journal, emptyChain),
    tables: Object.fromEntries(
      resourceTypes.map((type) => [type, createTable<AnyState>(journal)]),
    ) as unknown as FleetState['tables'],
    singletons: Object.fromEntries(
      singletonTypes.map((type) => [type, createCell<unknown>(journal, singletons[type].initial)]),
    ) as unknown as FleetState['singletons'],
    touched: createTable(journal),
    idempotency: createIdempotencyTable(journal),
    reverts: createTable(journal),
    names: createTable(journal),
    references: createIndex(journal),
    contributors: createIndex(journal),
    claims: createClaimIndex(journal),
    claimsOf: createTable(journal),
  });
}
