/**
 * The fleet: all intent of one installation, as one consistency boundary. Tables and indexes, and what resources may ask of
 * them. Decides nothing. Implements `docs/contract/domain.md#one-consistency-boundary-the-fleet`.
 */
import type { Cell, Draft } from '../aggregate/containers.js';
import { createCell, createIndex, createTable, draftOf } from '../aggregate/containers.js';
import { createIdempotencyTable } from '../aggregate/idempotency.js';
import type { ClaimIndex } from '../listeners/claims.js';
import { createClaimEntries } from '../listeners/claims.js';
import { emptyChain } from '../log-chain/links.js';
import type { FleetView } from '../resource/fleet-view.js';
import type { AnyState } from './resources.js';
import { resourceTypes, singletons, singletonTypes } from './resources.js';
import type { FleetState } from './view.js';
import { viewOf } from './view.js';

export interface Fleet extends FleetState, FleetView {
  readonly state: FleetState;
  readonly revision: Cell<number>;
  readonly claims: ClaimIndex;
}

/** The fleet on given tables and indexes. @internal exported for tests */
export function fleetOn(state: FleetState): Fleet {
  return { ...viewOf(state), ...state, state };
}

export function emptyFleet(): Fleet {
  return fleetOn({
    revision: createCell(-1),
    position: createCell(0),
    logChain: createCell(emptyChain),
    tables: Object.fromEntries(
      resourceTypes.map((type) => [type, createTable<AnyState>()]),
    ) as unknown as FleetState['tables'],
    singletons: Object.fromEntries(
      singletonTypes.map((type) => [type, createCell<unknown>(singletons[type].initial)]),
    ) as unknown as FleetState['singletons'],
    touched: createTable(),
    idempotency: createIdempotencyTable(),
    reverts: createTable(),
    names: createTable(),
    references: createIndex(),
    contributors: createIndex(),
    claimEntries: createClaimEntries(),
    claimsOf: createTable(),
  });
}

/** A fleet to try commands on: the fleet that it is made of is unchanged until they are merged. */
export function draftFleet(fleet: Fleet): Draft<Fleet> {
  const draft = draftOf(fleet.state);
  return { ...draft, state: fleetOn(draft.state) };
}
