/**
 * What the gateway needs to know of a consistency boundary: its stream, its fold, its decisions. There are two, the
 * fleet and the accounts. The fold is the deciding one: it may hold events that are not durable yet, so only the
 * gateway reads it.
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
import type { EnsureLogChain } from '../domain/log-chain/decide.js';
import { decideLogChain } from '../domain/log-chain/decide.js';
import type { ChainHead } from '../domain/log-chain/links.js';
import type { Decision, Refusal } from '../domain/resource/refusal.js';
import type { Revert } from '../domain/revert/decide.js';
import { decideRevert } from '../domain/revert/decide.js';
import type { RecordedCommand } from '../kernel/event.js';
import { streams } from '../kernel/event.js';

export interface DecidingState {
  readonly journal: Journal;
  readonly revision: Cell<number>;
  /**
   * Position of the last event, as far as it was read from the log: events of the gateway are folded before they have
   * one.
   */
  readonly position: Cell<number>;
  readonly logChain: Cell<ChainHead>;
  readonly idempotency: IdempotencyTable;
}

export interface Aggregate<State extends DecidingState, Command> {
  readonly stream: string;
  readonly state: State;
  decide(state: State, command: Command): Decision<{ readonly type: string; readonly data: object }>;
  /** Folds a command. @returns why it must not be written after all, in which case the gateway rolls it back */
  apply(state: State, command: RecordedCommand): Refusal | undefined;
}

/** The fleet. @param state a fold that the caller hands over */
export function fleetAggregate(state: Fleet): Aggregate<Fleet, FleetCommand | Revert | EnsureLogChain> {
  return {
    stream: streams.fleet,
    state,
    decide(fleet, command) {
      switch (command.type) {
        case 'EnsureLogChain':
          return decideLogChain(fleet.logChain.value, command);
        case 'Revert':
          return decideRevert(fleet, command);
        default:
          return decideFleet(fleet, command);
      }
    },
    apply: (fleet, command) => oversizedSnapshot(fleet, applyCommand(fleet, command)),
  };
}

/** The accounts. Their log is short, so the gateway reads it from its start. */
export function accountsAggregate(): Aggregate<Accounts, AccountCommand | EnsureLogChain> {
  return {
    stream: streams.accounts,
    state: emptyAccounts(),
    decide: (accounts, command) =>
      command.type === 'EnsureLogChain'
        ? decideLogChain(accounts.logChain.value, command)
        : decideAccounts(accounts, command),
    apply(accounts, command) {
      applyAccounts(accounts, command);
      return undefined;
    },
  };
}
