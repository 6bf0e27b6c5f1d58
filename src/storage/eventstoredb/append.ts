/**
 * Appends that always get an answer in time. Every try has its own timeout, because the client has none. What was
 * certainly not written is tried again; every other outcome is returned. A try ends, or its client is discarded, before
 * the next one begins: two concurrent tries of the same events confuse the server. Implements `event-store.ts`
 * (append).
 */
import type { EventData, EventStoreDBClient } from '@eventstore/db-client';
import { sleep, timedOut, withDeadline } from '../../kernel/background.js';
import type { Clock } from '../../kernel/clock.js';
import { errorText, ServiceError, unreachable } from '../../kernel/errors.js';
import { backoff } from '../../kernel/retry.js';
import type { AppendOutcome, ExpectedRevision } from '../event-store.js';
import type { StoreAddress } from './address.js';
import { classicCredentials, type BatchPath } from './batch-path.js';
import type { ClientParts } from './client-parts.js';
import type { Connection, Lease } from './connection.js';
import { appendFailure, type AppendFailure } from './failure.js';
import { appendPlaces } from './places.js';
import { toNumber } from './positions.js';

export interface Appender {
  append(stream: string, expected: ExpectedRevision, events: readonly EventData[]): Promise<AppendOutcome>;
}

export interface AppenderOptions {
  readonly address: StoreAddress;
  readonly connection: Connection;
  readonly batchPath: BatchPath;
  readonly clock: Clock;
  parts(): Promise<ClientParts>;
}

/** The appends of one client. */
interface ClientState {
  /** An append has succeeded since the last failure, so further ones need not wait for each other. */
  warm: boolean;
  first: Promise<void> | undefined;
  readonly running: Set<Try>;
}

interface Try {
  /** Another append was in flight on the same client. */
  shared: boolean;
}

type TryOutcome =
  | AppendFailure
  | { readonly kind: 'appended'; readonly revision: number; readonly position?: number }
  /** The append could not even be sent. */
  | { readonly kind: 'not_sent'; readonly cause: string };

export function createAppender(options: AppenderOptions): Appender {
  const { connection, clock, batchPath, parts } = options;
  const { appendMs, appendTryMs, appendRetryMs, appendDeadlineMs, appendsWaiting, disposeMs, retry } =
    connection.tuning;
  const states = new WeakMap<EventStoreDBClient, ClientState>();
  const classic = classicCredentials(options.address);
  let waiting = 0;

  function stateOf({ client }: Lease): ClientState {
    const existing = states.get(client);
    if (existing !== undefined) return existing;
    const state: ClientState = { warm: false, first: undefined, running: new Set() };
    states.set(client, state);
    return state;
  }

  /**
   * Concurrent appends on a fresh client overtake each other, so the first one runs alone.
   * @returns a function that ends the turn and says whether it succeeded; undefined when there was no time left
   */
  async function enter(state: ClientState, until: number): Promise<((well: boolean) => void) | undefined> {
    while (!state.warm && state.first !== undefined) {
      const left = until - clock.monotonic();
      if (left <= 0 || (await withDeadline(state.first, left)) === timedOut) return undefined;
    }
    let leave = (): void => undefined;
    if (!state.warm) {
      state.first = new Promise((resolve) => {
        leave = resolve;
      });
    }
    const goesAhead = !state.warm;
    return (well) => {
      state.warm = well;
      if (goesAhead) state.first = undefined;
      leave();
    };
  }

  async function send(
    lease: Lease,
    stream: string,
    expected: ExpectedRevision,
    events: readonly EventData[],
    timeoutMs: number,
  ): Promise<TryOutcome> {
    const { classicCalls } = await parts();
    const state = stateOf(lease);
    const attempt: Try = { shared: state.running.size > 0 };
    for (const other of state.running) other.shared = true;
    state.running.add(attempt);
    const usesBatch = !classicCalls || batchPath.owned() || classic === undefined;
    const call = lease.client.appendToStream(stream, [...events], {
      expectedRevision: typeof expected === 'number' ? BigInt(expected) : expected,
      requiresLeader: true,
      ...(usesBatch ? { deadline: appendDeadlineMs } : { deadline: timeoutMs, credentials: classic }),
    });
    try {
      const result = await withDeadline(call, timeoutMs);
      if (result === timedOut) {
        call.catch(() => undefined);
        await connection.discard(lease, 'an append was not answered');
        return { kind: 'unknown', cause: `no answer within ${Math.round(timeoutMs)} ms` };
      }
      const revision = toNumber(result.nextExpectedRevision);
      return { kind: 'appended', revision, ...(result.position && { position: toNumber(result.position.commit) }) };
    } catch (error) {
      return appendFailure(error, !attempt.shared || !usesBatch);
    } finally {
      state.running.delete(attempt);
    }
  }

  async function tryOnce(
    stream: string,
    expected: ExpectedRevision,
    events: readonly EventData[],
    started: number,
  ): Promise<TryOutcome> {
    // Leaves time to discard the client.
    const until = started + appendMs - disposeMs;
    let lease: Lease;
    try {
      lease = await connection.lease();
    } catch (error) {
      return { kind: 'not_sent', cause: errorText(error) };
    }
    const left = Math.min(appendTryMs, until - clock.monotonic());
    const leave = await enter(stateOf(lease), clock.monotonic() + left);
    if (leave === undefined) return { kind: 'not_sent', cause: 'the previous append was not answered' };
    let outcome: TryOutcome = { kind: 'unknown', cause: 'the append threw' };
    try {
      outcome = await send(
        lease,
        stream,
        expected,
        events,
        Math.max(1, Math.min(appendTryMs, until - clock.monotonic())),
      );
    } finally {
      leave(outcome.kind === 'appended' || outcome.kind === 'conflict');
    }
    if (outcome.kind === 'not_written' && outcome.discard) await connection.discard(lease, outcome.cause);
    return outcome;
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
