/** The two aggregates: how a gateway drafts the state of a stream, decides its commands and folds them. */
import type { AccountCommand } from '../domain/accounts/declaration.js';
import { applyAccounts, decideAccounts, type Accounts } from '../domain/accounts/accounts.js';
import { draftOf, type Cell, type Draft } from '../domain/aggregate/containers.js';
import type { IdempotencyTable } from '../domain/aggregate/idempotency.js';
import { applyInPieces } from '../domain/fleet/apply.js';
import { oversizedInPieces } from '../domain/compile/size.js';
import { decideApply, type ApplyDocument } from '../domain/fleet-file/apply.js';
import { decideRelease, type ReleaseSet } from '../domain/fleet-file/release.js';
import { decideRevertOf } from '../domain/fleet-file/revert.js';
import { unlessConfirming } from '../domain/fleet/confirmations.js';
import { decideFleet } from '../domain/fleet/decide.js';
import type { FleetCommand, FleetEvent } from '../domain/fleet/resources.js';
import { draftFleet, type Fleet } from '../domain/fleet/fleet.js';
import { decideLogHeads, type RecordLogHeads } from '../domain/log-chain/heads.js';
import type { ChainHead } from '../domain/log-chain/links.js';
import { decideBulk } from '../domain/node/bulk.js';
import type { Decision, Refusal } from '../domain/resource/refusal.js';
import type { Revert } from '../domain/revert/decide.js';
import { decideWithRollout, type WithRollout } from '../domain/rollout-start/start.js';
import { streams, type RecordedCommand } from '../kernel/event.js';
import { atOnce } from '../kernel/pieces.js';

export interface DecidingState {
  readonly revision: Cell<number>;
  /** Position of the last event. */
  readonly position: Cell<number>;
  readonly logChain: Cell<ChainHead>;
  readonly idempotency: IdempotencyTable;
}

export interface Aggregate<State extends DecidingState, Command> {
  readonly stream: string;
  draft(state: State): Draft<State>;
  /** Yields between two pieces, as does `apply`: a command may be about hundreds of resources, and touch all nodes. */
  decide(state: State, command: Command): Generator<void, Decision<{ readonly type: string; readonly data: object }>>;
  apply(state: State, command: RecordedCommand): Generator<void, Applied>;
}

export interface Applied {
  /** Ids of the nodes that the command deletes or whose configuration it changes. */
  readonly touched: ReadonlySet<string>;
  /** Why it must not be written, as only the fold can show; undefined if it may. */
  readonly refusal: Refusal | undefined;
}

const touchesNone: Applied = { touched: new Set(), refusal: undefined };

/** Commands of the fleet that may be rolled out. */
export type RolledOut = FleetCommand | Revert | ApplyDocument | ReleaseSet;
export type DecidedOnFleet = RolledOut | WithRollout<RolledOut> | RecordLogHeads;

type OnFleet = Decision<{ readonly type: string; readonly data: object }>;

export const fleetAggregate: Aggregate<Fleet, DecidedOnFleet> = {
  stream: streams.fleet,
  draft: draftFleet,
  *decide(fleet, command): Generator<void, OnFleet> {
    switch (command.type) {
      case 'RecordLogHeads':
        return decideLogHeads(fleet.logChain.value, command);
      case 'WithRollout':
        return yield* decideWithRollout(fleet, command, decideAlone);
      default:
        return yield* decideAlone(fleet, command);
    }
  },
  *apply(fleet, command) {
    const touched = yield* applyInPieces(fleet, command);
    return { touched, refusal: yield* oversizedInPieces(fleet, touched) };
  },
};

/** Decides a command without its rollout. Refuses a change of what waits for a confirmation. */
function* decideAlone(fleet: Fleet, command: RolledOut): Generator<void, Decision<FleetEvent>> {
  const reverted = 'entry' in command ? command.entry.events[0].metadata.command.id : undefined;
  return unlessConfirming(fleet, yield* decideByType(fleet, command), reverted);
}

/** Yields between two pieces. */
function* decideByType(fleet: Fleet, command: RolledOut): Generator<void, Decision<FleetEvent>> {
  switch (command.type) {
    case 'ReleaseSet':
      return yield* decideRelease(fleet, command);
    case 'LabelNodes':
    case 'QueueNodeCommands':
      return yield* decideBulk(fleet, command);
    case 'ApplyDocument':
      return yield* decideApply(fleet, command);
    case 'Revert':
    case 'UpdateConnectivity': {
      // It may look at all nodes, and so may its fold.
      const decision = command.type === 'Revert' ? yield* decideRevertOf(fleet, command) : decideFleet(fleet, command);
      yield;
      return decision;
    }
    default:
      return decideFleet(fleet, command);
  }
}

export const accountsAggregate: Aggregate<Accounts, AccountCommand | RecordLogHeads> = {
  stream: streams.accounts,
  draft: draftOf,
  decide: (accounts, command) =>
    atOnce(
      command.type === 'RecordLogHeads'
        ? decideLogHeads(accounts.logChain.value, command)
        : decideAccounts(accounts, command),
    ),
  apply(accounts, command) {
    applyAccounts(accounts, command);
    return atOnce(touchesNone);
  },
};
