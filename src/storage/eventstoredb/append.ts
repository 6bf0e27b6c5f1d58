/**
 * Appends that always get an answer in time. Every try has its own timeout. What was certainly not written is tried
 * again; every other outcome is returned. A try that gets no answer costs its client: the next try goes to whichever node
 * leads then. Only the package's classic call is used (`appendCredentials`). Implements `event-store.ts` (append).
 */
import type { EventData } from '@eventstore/db-client';
import { sleep, timedOut, withDeadline } from '../../kernel/background.js';
import type { Clock } from '../../kernel/clock.js';
import { errorText, ServiceError, unreachable } from '../../kernel/errors.js';
import { backoff } from '../../kernel/retry.js';
import type { AppendOutcome, ExpectedRevision } from '../event-store.js';
import type { StoreAddress, User } from './address.js';
import type { Connection, Lease } from './connection.js';
import { appendFailure, isUnanswered, type AppendFailure } from './failure.js';
import { appendPlaces } from './places.js';
import { toNumber } from './positions.js';

export interface Appender {
  append(stream: string, expected: ExpectedRevision, events: readonly EventData[]): Promise<AppendOutcome>;
}

export interface AppenderOptions {
  readonly address: StoreAddress;
  readonly connection: Connection;
  readonly clock: Clock;
}

type TryOutcome =
  | AppendFailure
  | { readonly kind: 'appended'; readonly revision: number; readonly position?: number }
  /** The append could not even be sent. */
  | { readonly kind: 'not_sent'; readonly cause: string };

/**
 * The client package sends an append that carries credentials of its own by the classic call; without TLS it leaves them
 * out. All others share one stream per client and one table of the process, where the failure of one append rejects the
 * others, and an answer that comes after that is an exception which nobody can catch.
 */
const appendCredentials = ({ user }: StoreAddress): User => user ?? { username: 'none', password: 'none' };

export function createAppender({ address, connection, clock }: AppenderOptions): Appender {
  const { appendMs, appendTryMs, appendRetryMs, appendsWaiting, disposeMs, retry } = connection.tuning;
  const credentials = appendCredentials(address);
  let waiting = 0;

  async function send(
    lease: Lease,
    stream: string,
    expected: ExpectedRevision,
    events: readonly EventData[],
    timeoutMs: number,
  ): Promise<TryOutcome> {
    const call = lease.client.appendToStream(stream, [...events], {
      expectedRevision: typeof expected === 'number' ? BigInt(expected) : expected,
      requiresLeader: true,
      deadline: timeoutMs,
      credentials,
    });
    const unanswered = async (): Promise<TryOutcome> => {
      await connection.discard(lease, 'an append was not answered');
      return { kind: 'unknown', cause: `no answer within ${Math.round(timeoutMs)} ms` };
    };
    try {
      const result = await withDeadline(call, timeoutMs);
      if (result === timedOut) {
        call.catch(() => undefined);
        return await unanswered();
      }
      const revision = toNumber(result.nextExpectedRevision);
      return { kind: 'appended', revision, ...(result.position && { position: toNumber(result.position.commit) }) };
    } catch (error) {
      return isUnanswered(error) ? await unanswered() : appendFailure(error);
    }
  }

  async function tryOnce(
    stream: string,
    expected: ExpectedRevision,
    events: readonly EventData[],
    started: number,
  ): Promise<TryOutcome> {
    let lease: Lease;
    try {
      lease = await connection.lease();
    } catch (error) {
      return { kind: 'not_sent', cause: errorText(error) };
    }
    // Leaves time to discard the client.
    const left = started + appendMs - disposeMs - clock.monotonic();
    return send(lease, stream, expected, events, Math.max(1, Math.min(appendTryMs, left)));
  }

  async function appendWithin(
    stream: string,
    expected: ExpectedRevision,
    events: readonly EventData[],
    started: number,
  ): Promise<AppendOutcome> {
    for (let attempt = 0; ; attempt += 1) {
      const outcome = await tryOnce(stream, expected, events, started);
      switch (outcome.kind) {
        case 'appended':
          return { kind: 'appended', revision: outcome.revision, position: outcome.position };
        case 'conflict':
          return { kind: 'conflict', actual: outcome.actual };
        case 'unknown':
          return { kind: 'unknown', cause: outcome.cause };
        case 'refused':
          return { kind: 'refused', what: outcome.what, cause: outcome.cause };
        case 'not_sent':
          return { kind: 'unavailable', cause: outcome.cause };
        case 'not_written':
          if (clock.monotonic() - started >= appendRetryMs) return { kind: 'unavailable', cause: outcome.cause };
          await sleep(backoff(retry, attempt));
          break;
        default:
          return unreachable(outcome);
      }
    }
  }

  return {
    async append(stream, expected, events) {
      if (waiting >= appendsWaiting) return { kind: 'unavailable', cause: 'too many appends are waiting' };
      waiting += 1;
      const started = clock.monotonic();
      let giveBack = (): void => undefined;
      try {
        giveBack = await appendPlaces.take();
        return await appendWithin(stream, expected, events, started);
      } catch (error) {
        if (error instanceof ServiceError) return { kind: 'unavailable', cause: error.message };
        throw error;
      } finally {
        giveBack();
        waiting -= 1;
      }
    },
  };
}
