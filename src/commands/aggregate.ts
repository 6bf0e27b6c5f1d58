/**
 * What the gateway needs to know of a consistency boundary: its stream, its fold, how it decides. Two exist: the fleet
 * and the accounts. The fold here is the deciding one: it may hold what is not durable yet, so nothing but the gateway
 * reads it.
 */
import type { AccountCommand } from '../domain/accounts/user.js';
import type { Accounts } from '../domain/accounts/accounts.js';
import { applyAccounts, decideAccounts, emptyAccounts } from '../domain/accounts/accounts.js';
import { applyCommand } from '../domain/fleet/apply.js';
import { oversizedSnapshot } from '../domain/compile/size.js';
import { decideFleet } from '../domain/fleet/decide.js';
import type { FleetCommand } from '../domain/fleet/events.js';
import type { Fleet } from '../domain/fleet/fleet.js';
import type { IdempotencyTable } from '../domain/aggregate/idempotency.js';
import type { Cell, Journal } from '../domain/aggregate/journal.js';
import type { Decision, Refusal } from '../domain/resource/refusal.js';
import type { RecordedCommand } from '../kernel/event.js';
import { streams } from '../kernel/event.js';

export interface DecidingState {
  readonly journal: Journal;
  readonly revision: Cell<number>;
  /** Of a fold that was handed over; unknown again after its own events, which are applied before they are placed. */
  readonly position: Cell<number>;
  readonly idempotency: IdempotencyTable;
}

export interface Aggregate<State extends DecidingState, Command> {
  readonly stream: string;
  readonly state: State;
  decide(state: State, command: Command): Decision<{ readonly type: string; readonly data: object }>;
  /** Folds a command and says why it may not stand after all, if so; the gateway then rolls it back. */
  apply(state: State, command: RecordedCommand): Refusal | undefined;
}

/** The fleet, from a fold that the caller has restored and hands over. */
export function fleetAggregate(state: Fleet): Aggregate<Fleet, FleetCommand> {
  return {
    stream: streams.fleet,
    state,
    decide: decideFleet,
    apply: (fleet, command) => oversizedSnapshot(fleet, applyCommand(fleet, command)),
  };
}

/** The accounts, from the start of their log: they are few. */
export function accountsAggregate(): Aggregate<Accounts, AccountCommand> {
  return {
    stream: streams.accounts,
    state: emptyAccounts(),
    decide: decideAccounts,
    apply(accounts, command) {
      applyAccounts(accounts, command);
      return undefined;
    },
  };
}
