/**
 * The committed accounts, in memory and folded from the log: a password change on any instance ends older tokens on this one.
 * Implements `docs/contract/rest.md#authentication-and-roles`.
 */
import { applyAccounts, emptyAccounts, type Accounts } from '../domain/accounts/accounts.js';
import type { AccountEvent } from '../domain/accounts/declaration.js';
import { readCommand } from '../domain/log/upcast.js';
import { withDeadline } from '../kernel/background.js';
import { errorText } from '../kernel/errors.js';
import { lastEvent, streams, type RecordedCommand } from '../kernel/event.js';
import type { Logger } from '../kernel/logger.js';
import type { LogChain } from '../security/log-chain/log-chain.js';
import { createShared } from '../kernel/shared.js';
import { createWaiters } from '../kernel/waiters.js';
import { MissingEventsError, type LogFold } from './log-follower.js';
import { BrokenLogError, levelOf } from '../storage/broken-log.js';
import type { EventStore } from '../storage/event-store.js';
import { commandsAfter } from '../storage/follow.js';

/** How many requests may wait until the accounts know their token. */
const waitingRequests = 256;

export interface CommittedAccounts extends LogFold {
  readonly accounts: Accounts;
  /** True once a condition on the accounts holds; false after `timeoutMs`, at a stop, or when too many requests wait. */
  until(condition: () => boolean, timeoutMs: number): Promise<boolean>;
  /** Calls back when tokens end by a password change, a sign-out or a delete, on any instance; they are refused from then on. */
  onTokensEnded(listener: () => void): void;
  /** Folds the rest of the log, to its end. @throws ServiceError `unavailable`, BrokenChainError, UnknownEventError */
  catchUp(): Promise<void>;
  /** The same for requests: concurrent ones share a read, and none waits longer than `timeoutMs`. */
  readToEnd(timeoutMs: number): Promise<void>;
  /** True once the end of the log was reached. */
  caughtUp(): boolean;
  /** Why the accounts no longer follow the log (an unknown event, a broken chain) and may be out of date, or undefined. */
  failure(): string | undefined;
  /** The same, only when the log cannot be read any further. */
  damage(): string | undefined;
  /** Ends every wait. */
  close(): void;
}

/** Accounts of the empty log. `followInMemory` or `catchUp` then folds them. */
export function openAccounts(
  eventStore: Pick<EventStore, 'read'>,
  logChain: LogChain,
  logger: Logger,
): CommittedAccounts {
  const accounts = emptyAccounts();
  const tokenListeners: (() => void)[] = [];
  const requests = createWaiters(waitingRequests);
  let stoppedBy: unknown;
  const failure = (): string | undefined =>
    stoppedBy instanceof BrokenLogError
      ? stoppedBy.message
      : stoppedBy === undefined
        ? undefined
        : errorText(stoppedBy);
  let caughtUp = false;

  function apply(commands: readonly RecordedCommand[]): void {
    for (const command of commands) {
      const expected = accounts.revision.value + 1;
      if (lastEvent(command).revision < expected) continue;
      const [{ revision: at }] = command.events;
      if (at !== expected)
        throw new MissingEventsError(`${streams.accounts} continues at ${at} instead of ${expected}`);
      const head = logChain.follow(accounts.logChain.value, command);
      for (const { stream, revision, id } of applyAccounts(accounts, readCommand(command))) {
        logger.error({ stream, revision, event_id: id }, 'an event that creates a user who exists is ignored');
      }
      accounts.logChain.set(head);
      if (endsTokens(command)) for (const tell of tokenListeners) tell();
    }
    requests.look();
  }

  async function catchUp(): Promise<void> {
    for await (const commands of commandsAfter(eventStore, streams.accounts, accounts.revision.value)) apply(commands);
  }
  // A read that began before the call may already have passed the place that the caller knows of.
  const shared = createShared(catchUp);

  return {
    accounts,
    streams: [streams.accounts],
    revision: () => accounts.revision.value,
    position: () => accounts.position.value,
    apply,
    moved(_distance, atEnd) {
      caughtUp ||= atEnd;
    },
    stopped(error) {
      stoppedBy = error;
      logger[levelOf(error)]({ error: failure() }, 'the accounts no longer follow the log');
    },
    until: requests.until,
    onTokensEnded: (listener) => void tokenListeners.push(listener),
    catchUp,
    async readToEnd(timeoutMs) {
      await withDeadline(shared(), timeoutMs);
    },
    caughtUp: () => caughtUp,
    failure,
    damage: () => (stoppedBy instanceof BrokenLogError ? stoppedBy.message : undefined),
    close: () => requests.close(),
  };
}

/** Whether the command ends tokens; storing the same password under a stronger hash does not. */
function endsTokens({ events }: RecordedCommand): boolean {
  return events.some(({ type, data }) => ending.has(type) || (type === passwordChanged && data['rehashed'] !== true));
}

const passwordChanged: AccountEvent['type'] = 'UserPasswordChanged';
const ending: ReadonlySet<string> = new Set<AccountEvent['type']>(['SignedOut', 'ApiTokenDeleted']);
