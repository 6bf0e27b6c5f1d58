/**
 * Reads in pages. Each page has an exact size, is read whole within a timeout, and is always cancelled, so that a slow
 * or absent consumer never keeps a stream of the connection open. Reads from the leader, so that acknowledged writes
 * are visible. Implements `event-store.ts` (read, headPosition).
 */
import {
  BACKWARDS,
  END,
  FORWARDS,
  START,
  type ReadStreamOptions,
  type ResolvedEvent,
  type StreamingRead,
} from '@eventstore/db-client';
import { sleep, withDeadline } from '../../kernel/background.js';
import { ServiceError } from '../../kernel/errors.js';
import type { StoredEvent } from '../../kernel/event.js';
import { backoff } from '../../kernel/retry.js';
import type { ReadOptions } from '../event-store.js';
import { type Connection, type Lease, readPlaces } from './connection.js';
import { toStoredEvent, toNumber } from './events.js';
import { failureText, isAccessDenied, isMissingStream, isNotLeader, isNotReady, isTombstoned } from './failure.js';
import type { Tuning } from './tuning.js';

class UnansweredRead extends ServiceError {
  constructor() {
    super('unavailable', 'The event store did not answer a read in time.');
  }
}

function takeAll(read: StreamingRead<ResolvedEvent>, { readPageMs }: Tuning): Promise<ResolvedEvent[]> {
  return new Promise((resolve, reject) => {
    const events: ResolvedEvent[] = [];
    const timer = setTimeout(() => reject(new UnansweredRead()), readPageMs);
    const settle = (error?: unknown): void => {
      clearTimeout(timer);
      if (error === undefined) resolve(events);
      else reject(error as Error);
    };
    // Stays attached after the page is done: an error after the cancel must not be unhandled.
    read.on('error', settle);
    read.on('data', (event: ResolvedEvent) => events.push(event));
    read.on('end', () => settle());
    read.on('close', () => settle(new ServiceError('unavailable', 'The event store ended a read.')));
  });
}

async function takePage(
  lease: Lease,
  start: (lease: Lease) => StreamingRead<ResolvedEvent>,
  tuning: Tuning,
): Promise<ResolvedEvent[]> {
  const giveBack = await readPlaces.take();
  const read = start(lease);
  try {
    const events = await takeAll(read, tuning);
    // A read of a discarded client ends without an error, like a read that found nothing.
    if (lease.discarded) throw new ServiceError('unavailable', 'The event store client was replaced during a read.');
    return events;
  } finally {
    // A stream that was never established cannot be cancelled; its slot is given back anyway.
    void withDeadline(read.cancel(), tuning.disposeMs).then(giveBack, giveBack);
  }
}

/**
 * Reads one page; retries when the node is not the leader or is unreachable.
 * @param retryMs how long to retry
 * @throws ServiceError `unavailable`
 * @internal exported for tests
 */
export async function readPage(
  connection: Connection,
  start: (lease: Lease) => StreamingRead<ResolvedEvent>,
  retryMs = connection.tuning.readRetryMs,
): Promise<readonly ResolvedEvent[]> {
  const { tuning } = connection;
  const started = performance.now();
  for (let attempt = 1; ; attempt += 1) {
    const lease = await connection.lease();
    try {
      const page = await takePage(lease, start, tuning);
      lease.reached = true;
      return page;
    } catch (error) {
      if (isMissingStream(error)) return [];
      // The client finds another node by itself, but its subscriptions stay where they are, open and silent forever.
      const cutOff = isNotReady(error) && lease.reached;
      if (cutOff || error instanceof UnansweredRead) await connection.discard(lease, failureText(error));
      if (error instanceof ServiceError) throw error;
      if (isTombstoned(error)) {
        throw new ServiceError('unavailable', 'A stream of the log was tombstoned in the event store.', {
          cause: error,
        });
      }
      if (isAccessDenied(error) || performance.now() - started >= retryMs) {
        const cause = failureText(error);
        throw new ServiceError('unavailable', `The event store cannot be read now: ${cause}.`, { cause: error });
      }
      // After the first refusal, the client has already moved to the leader.
      if (!isNotLeader(error) || attempt > 1) {
        await sleep(backoff(tuning.retry, attempt));
      }
    }
  }
}

/** A page of a stream, from its leader. @throws ServiceError `unavailable` */
export function readStreamPage(
  connection: Connection,
  stream: string,
  options: Required<Pick<ReadStreamOptions, 'direction' | 'fromRevision' | 'maxCount'>>,
): Promise<readonly ResolvedEvent[]> {
  return readPage(connection, ({ client }) => client.readStream(stream, { ...options, requiresLeader: true }));
}

/** Refuses reads that the store would answer with an error or unexpectedly. */
function assertReadable({ direction, from, maxCount }: ReadOptions): void {
  if (from === (direction === 'forward' ? 'end' : 'start'))
    throw new RangeError(`no read ${direction} from the ${from}`);
  if (!(maxCount >= 1)) throw new RangeError(`a read has a maxCount of at least 1, not ${maxCount}`);
}

/** @throws ServiceError `unavailable`; RangeError for a read that the port does not define */
export async function* readStream(
  connection: Connection,
  stream: string,
  options: ReadOptions,
): AsyncGenerator<StoredEvent, void, void> {
  assertReadable(options);
  const forward = options.direction === 'forward';
  let from = options.from;
  let left = options.maxCount;
  while (left > 0) {
    const maxCount = Math.min(left, connection.tuning.readPageEvents);
    const page = await readStreamPage(connection, stream, {
      direction: forward ? FORWARDS : BACKWARDS,
      fromRevision: from === 'start' ? START : from === 'end' ? END : BigInt(from),
      maxCount,
    });
    for (const resolved of page) {
      const event = toStoredEvent(resolved);
      if (event !== undefined) yield event;
    }
    const last = page.at(-1)?.event;
    if (last === undefined || page.length < maxCount) return;
    left -= page.length;
    const next = toNumber(last.revision) + (forward ? 1 : -1);
    if (next < 0) return;
    from = next;
  }
}

/** Position of a stream's last event; undefined for an empty or tombstoned stream. @throws ServiceError */
export async function readHeadOf(connection: Connection, stream: string): Promise<number | undefined> {
  const newest = { direction: 'backward', from: 'end', maxCount: 1 } as const;
  try {
    for await (const { position } of readStream(connection, stream, newest)) return position;
  } catch (error) {
    if (!(error instanceof ServiceError && isTombstoned(error.cause))) throw error;
  }
  return undefined;
}

/**
 * Position of the newest event of any stream, including the server's; 0 for an empty log.
 * @param retryMs for how long a failing read is retried
 * @throws ServiceError `unavailable`
 */
export async function readHead(connection: Connection, retryMs?: number): Promise<number> {
  const page = await readPage(
    connection,
    ({ client }) => client.readAll({ direction: BACKWARDS, fromPosition: END, maxCount: 1, requiresLeader: true }),
    retryMs,
  );
  const [newest] = page;
  const position = newest?.event?.position?.commit ?? newest?.commitPosition;
  return position === undefined ? 0 : toNumber(position);
}
