/**
 * Reads in pages: each is asked for exactly, taken whole within a timeout, and cancelled whatever happens, so that no
 * consumer, however slow or gone, keeps a stream of the connection open. From the leader, so that what was written is
 * seen. Implements `event-store.ts` (read, headPosition).
 */
import { BACKWARDS, END, FORWARDS, START, type ResolvedEvent, type StreamingRead } from '@eventstore/db-client';
import { sleep, withDeadline } from '../../kernel/background.js';
import { ServiceError } from '../../kernel/errors.js';
import type { RecordedEvent } from '../../kernel/event.js';
import { backoff } from '../../kernel/retry.js';
import type { ReadOptions } from '../event-store.js';
import type { Connection, Lease } from './connection.js';
import { toRecordedEvent } from './events.js';
import { failureText, isFailedDiscovery, isMissingStream, isNotLeader, isTombstoned } from './failure.js';
import { readPlaces } from './places.js';
import { toNumber } from './positions.js';
import { tuning } from './tuning.js';

class UnansweredRead extends ServiceError {
  constructor() {
    super('unavailable', 'The event store did not answer a read in time.');
  }
}

function takeAll(read: StreamingRead<ResolvedEvent>): Promise<ResolvedEvent[]> {
  return new Promise((resolve, reject) => {
    const events: ResolvedEvent[] = [];
    const timer = setTimeout(() => reject(new UnansweredRead()), tuning.readPageMs);
    const settle = (error?: unknown): void => {
      clearTimeout(timer);
      if (error === undefined) resolve(events);
      else reject(error as Error);
    };
    // Stays when the page is done: what fails after the cancelling must not be an error that nobody handles.
    read.on('error', settle);
    read.on('data', (event: ResolvedEvent) => events.push(event));
    read.on('end', () => settle());
    read.on('close', () => settle(new ServiceError('unavailable', 'The event store ended a read.')));
  });
}

async function takePage(lease: Lease, start: (lease: Lease) => StreamingRead<ResolvedEvent>): Promise<ResolvedEvent[]> {
  const giveBack = await readPlaces.take();
  const read = start(lease);
  try {
    const events = await takeAll(read);
    // A read that is cut off so ends without an error, like one that found nothing.
    if (lease.discarded) throw new ServiceError('unavailable', 'The event store client was replaced during a read.');
    return events;
  } finally {
    // A stream that never came to be cannot be cancelled; its place is not kept for that.
    void withDeadline(read.cancel(), tuning.disposeMs).then(giveBack, giveBack);
  }
}

/** One page, tried again when the node is not the leader or could not be reached. @throws ServiceError `unavailable` */
export async function readPage(
  connection: Connection,
  start: (lease: Lease) => StreamingRead<ResolvedEvent>,
): Promise<readonly ResolvedEvent[]> {
  const started = performance.now();
  for (let attempt = 1; ; attempt += 1) {
    const lease = await connection.lease();
    try {
      return await takePage(lease, start);
    } catch (error) {
      if (isMissingStream(error)) return [];
      if (isFailedDiscovery(error) || error instanceof UnansweredRead)
        await connection.discard(lease, failureText(error));
      if (error instanceof ServiceError) throw error;
      if (isTombstoned(error)) {
        throw new ServiceError('unavailable', 'A stream of the log was tombstoned in the event store.', {
          cause: error,
        });
      }
      if (performance.now() - started >= tuning.readRetryMs) {
        const cause = failureText(error);
        throw new ServiceError('unavailable', `The event store cannot be read now: ${cause}.`, { cause: error });
      }
      // After the first refusal the client has moved to the leader already.
      if (!isNotLeader(error) || attempt > 1) {
        await sleep(backoff(tuning.retry, attempt));
      }
    }
  }
}

/** What the store answers with an error, or with something else than was meant. */
function assertReadable({ direction, from, maxCount }: ReadOptions): void {
  if (from === (direction === 'forward' ? 'end' : 'start'))
    throw new RangeError(`no read ${direction} from the ${from}`);
  if (!(maxCount >= 1)) throw new RangeError(`a read has a maxCount of at least 1, not ${maxCount}`);
}

/** @throws ServiceError `unavailable`; RangeError for a read that the port does not know */
export async function* readStream(
  connection: Connection,
  stream: string,
  options: ReadOptions,
): AsyncGenerator<RecordedEvent, void, void> {
  assertReadable(options);
  const forward = options.direction === 'forward';
  let from = options.from;
  let left = options.maxCount;
  while (left > 0) {
    const maxCount = Math.min(left, tuning.readPageEvents);
    const page = await readPage(connection, ({ client }) =>
      client.readStream(stream, {
        direction: forward ? FORWARDS : BACKWARDS,
        fromRevision: from === 'start' ? START : from === 'end' ? END : BigInt(from),
        maxCount,
        requiresLeader: true,
      }),
    );
    for (const resolved of page) {
      const event = toRecordedEvent(resolved);
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

/** Position of the newest event of any stream, those of the server too; 0 for an empty log. @throws ServiceError */
export async function readHead(connection: Connection): Promise<number> {
  const page = await readPage(connection, ({ client }) =>
    client.readAll({ direction: BACKWARDS, fromPosition: END, maxCount: 1, requiresLeader: true }),
  );
  const [newest] = page;
  const position = newest?.event?.position?.commit ?? newest?.commitPosition;
  return position === undefined ? 0 : toNumber(position);
}
