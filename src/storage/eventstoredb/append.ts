/**
 * Appends that always get an answer in time. An append that was certainly not written is retried; every other outcome is
 * returned. A client that does not answer is discarded, so that the next append goes to the node that leads by then.
 * Implements `event-store.ts` (append).
 */
import type { EventData } from '@eventstore/db-client';
import { sleep, timedOut, withDeadline } from '../../kernel/background.js';
import type { Clock } from '../../kernel/clock.js';
import { ServiceError } from '../../kernel/errors.js';
import { backoff } from '../../kernel/retry.js';
import type { AppendOutcome, ExpectedRevision } from '../event-store.js';
import type { StoreAddress, User } from './address.js';
import { type Connection, type Lease, appendPlaces } from './connection.js';
import { appendFailure, isUnanswered } from './failure.js';
import { toNumber } from './events.js';

export interface Appender {
  append(stream: string, expected: ExpectedRevision, events: readonly EventData[]): Promise<AppendOutcome>;
}

export interface AppenderOptions {
  readonly address: StoreAddress;
  readonly connection: Connection;
  readonly clock: Clock;
}

/**
 * For an append that carries its own credentials, the client package uses the classic call; without TLS it does not
 * send them. All other appends share one stream per client and one table per process: a failure of one rejects the
 * others, and an answer that arrives later throws where nobody can catch it.
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
  ): Promise<AppendOutcome> {
    const call = lease.client.appendToStream(stream, [...events], {
      expectedRevision: typeof expected === 'number' ? BigInt(expected) : expected,
      requiresLeader: true,
      deadline: timeoutMs,
      credentials,
    });
    const unanswered = async (): Promise<AppendOutcome> => {
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
      return { kind: 'appended', revision, position: result.position && toNumber(result.position.commit) };
    } catch (error) {
      return isUnanswered(error) ? await unanswered() : appendFailure(error);
    }
  }

  /** @throws ServiceError `unavailable` when nothing could be sent */
  async function appendWithin(
    stream: string,
    expected: ExpectedRevision,
    events: readonly EventData[],
    started: number,
  ): Promise<AppendOutcome> {
    for (let attempt = 0; ; attempt += 1) {
      const lease = await connection.lease();
      // Leaves time to discard the client.
      const left = started + appendMs - disposeMs - clock.monotonic();
      const outcome = await send(lease, stream, expected, events, Math.max(1, Math.min(appendTryMs, left)));
      if (outcome.kind !== 'unavailable' || clock.monotonic() - started >= appendRetryMs) return outcome;
      await sleep(backoff(retry, attempt));
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
