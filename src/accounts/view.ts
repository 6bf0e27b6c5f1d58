/**
 * The committed accounts of this instance, followed from the log, so that a password change on any instance ends older
 * tokens here. Not the fold that decides: that one may hold what is not durable yet.
 */
import type { Accounts } from '../domain/accounts/accounts.js';
import { applyAccounts, emptyAccounts } from '../domain/accounts/accounts.js';
import { readCommand } from '../domain/log/upcast.js';
import { errorText, ServiceError } from '../kernel/errors.js';
import { streams } from '../kernel/event.js';
import type { Logger } from '../kernel/logger.js';
import { createWaiters } from '../kernel/waiters.js';
import type { EventStore } from '../storage/event-store.js';
import { followLog } from '../storage/follow.js';
import type { ProjectionWait } from '../commands/port.js';

export interface AccountsView extends ProjectionWait {
  readonly accounts: Accounts;
  /** Resolves when the log has been read to its end once. Rejects when it can not be, or is closed before. */
  caughtUp(): Promise<void>;
  /** Why the accounts here follow the log no longer (an unknown event), or undefined. They may be out of date then. */
  failure(): string | undefined;
  close(): Promise<void>;
}

export function followAccounts(eventStore: EventStore, logger: Logger): AccountsView {
  const accounts = emptyAccounts();
  const stop = new AbortController();
  const waiters = createWaiters();
  let failure: string | undefined;
  let dropped = false;
  let ready: () => void = () => undefined;
  let fail: (error: unknown) => void = () => undefined;
  const caughtUp = new Promise<void>((resolve, reject) => {
    [ready, fail] = [resolve, reject];
  });
  // Whoever waits for it is told; when nobody does, the log entry is enough.
  caughtUp.catch(() => undefined);

  async function run(): Promise<void> {
    try {
      for await (const item of followLog(eventStore, {
        prefix: streams.accounts,
        after: 'start',
        signal: stop.signal,
      })) {
        if (item.kind === 'caught_up') {
          ready();
          dropped = false;
        }
        if (item.kind === 'dropped') {
          // Once: what follows are failed tries to subscribe again.
          if (!dropped) logger.warn({ error: errorText(item.cause) }, 'the accounts subscription dropped; going on');
          dropped = true;
        }
        if (item.kind !== 'commands') continue;
        for (const command of item.commands) applyAccounts(accounts, readCommand(command));
        accounts.journal.commit();
        waiters.look();
      }
    } catch (error) {
      failure = errorText(error);
      fail(error);
      logger.error({ error: failure }, 'the accounts can not be followed any further');
    }
  }

  const running = run();
  return {
    accounts,
    caughtUp: () => caughtUp,
    failure: () => failure,
    applied: (_stream, revision, timeoutMs) => waiters.until(() => accounts.revision.value >= revision, timeoutMs),
    async close() {
      stop.abort();
      await running;
      fail(new ServiceError('unavailable', 'the service is shutting down'));
      waiters.close();
    },
  };
}
