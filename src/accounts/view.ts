/**
 * The committed accounts, folded from the log, so that a password change on any instance ends older tokens on this one.
 * Implements `docs/contract/rest.md#authentication-and-roles`.
 */
import type { Accounts } from '../domain/accounts/accounts.js';
import { applyAccounts, emptyAccounts } from '../domain/accounts/accounts.js';
import type { AccountEvent } from '../domain/accounts/user.js';
import { readCommand } from '../domain/log/upcast.js';
import { errorText, ServiceError } from '../kernel/errors.js';
import type { RecordedCommand } from '../kernel/event.js';
import { lastEvent, streams } from '../kernel/event.js';
import type { Logger } from '../kernel/logger.js';
import type { LogChain } from '../log-chain/log-chain.js';
import { createWaiters } from '../kernel/waiters.js';
import type { EventStore } from '../storage/event-store.js';
import { commandsAfter, followLog } from '../storage/follow.js';
import type { Committed } from '../commands/port.js';

/** How many requests may wait for the accounts to catch up with the token that they bring. */
const waitingRequests = 256;

export interface AccountsView extends Committed<Accounts> {
  readonly accounts: Accounts;
  /**
   * True once a condition on the accounts holds; false after `timeoutMs`, at a stop, or when too many requests wait.
   * Asked of requests from outside, so that many of them hold no more than a bounded number of places.
   */
  until(condition: () => boolean, timeoutMs: number): Promise<boolean>;
  /** Calls back with each password change that is read, on whichever instance it was made; older tokens are refused now. */
  onTokensEnded(listener: () => void): void;
  /** Resolves once the log has been read to its end. Rejects when that fails, or when closed before. */
  caughtUp(): Promise<void>;
  /** Why the accounts no longer follow the log (an unknown event, a broken chain) and may be out of date, or undefined. */
  failure(): string | undefined;
  close(): Promise<void>;
}

export function followAccounts(eventStore: EventStore, logChain: LogChain, logger: Logger): AccountsView {
  const accounts = emptyAccounts();
  const stop = new AbortController();
  const tokenListeners: (() => void)[] = [];
  const requests = createWaiters(waitingRequests);
  let failure: string | undefined;
  let dropped = false;
  let ready: () => void = () => undefined;
  let fail: (error: unknown) => void = () => undefined;
  const caughtUp = new Promise<void>((resolve, reject) => {
    [ready, fail] = [resolve, reject];
  });
  // A failure is logged in any case; without a waiter it must not become an unhandled rejection.
  caughtUp.catch(() => undefined);

  function apply(commands: readonly RecordedCommand[]): void {
    for (const command of commands) {
      if (lastEvent(command).revision <= accounts.revision.value) continue;
      const head = logChain.follow(accounts.logChain.value, command);
      for (const { stream, revision, id } of applyAccounts(accounts, readCommand(command))) {
        logger.error({ stream, revision, event_id: id }, 'an event that creates a user who exists is ignored');
      }
      accounts.logChain.set(head);
      if (endsTokens(command)) for (const tell of tokenListeners) tell();
    }
    requests.look();
  }

  async function run(): Promise<void> {
    try {
      for await (const item of followLog(eventStore, {
        prefix: streams.accounts,
        after: 'start',
        streams: [streams.accounts],
        signal: stop.signal,
      })) {
        if (item.kind === 'caught_up') {
          ready();
          dropped = false;
        }
        if (item.kind === 'dropped') {
          // Only the first one: the others are failed attempts to subscribe again.
          if (!dropped) {
            logger.warn({ error: errorText(item.cause) }, 'the accounts subscription dropped; subscribing again');
          }
          dropped = true;
        }
        if (item.kind !== 'commands') continue;
        apply(item.commands);
      }
    } catch (error) {
      failure = errorText(error);
      fail(error);
      logger.error({ error: failure }, 'the accounts no longer follow the log');
    }
  }

  const running = run();
  return {
    accounts,
    caughtUp: () => caughtUp,
    until: requests.until,
    onTokensEnded: (listener) => void tokenListeners.push(listener),
    failure: () => failure,
    state: () => accounts,
    fold: apply,
    async catchUp() {
      for await (const commands of commandsAfter(eventStore, streams.accounts, accounts.revision.value))
        apply(commands);
    },
    async close() {
      stop.abort();
      await running;
      fail(new ServiceError('unavailable', 'the service is shutting down'));
      requests.close();
    },
  };
}

/** Whether the command changes a password; the same one under a stronger hash is no change. */
function endsTokens({ events }: RecordedCommand): boolean {
  return events.some(({ type, data }) => type === passwordChanged && data['rehashed'] !== true);
}

const passwordChanged: AccountEvent['type'] = 'UserPasswordChanged';
