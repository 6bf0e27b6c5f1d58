/**
 * The event feed of an instance: resolves cursors, and reads from the window in memory, or from the log for readers further
 * behind. Implements `docs/contract/automation.md#event-feed`.
 */
import { unlessAborted, withFirstOf } from '../kernel/background.js';
import { ServiceError } from '../kernel/errors.js';
import { expires, isForeign, type RecordedEvent } from '../kernel/event.js';
import { limits } from '../kernel/limits.js';
import type { Clock } from '../kernel/clock.js';
import type { Logger } from '../kernel/logger.js';
import { createSemaphore } from '../kernel/semaphore.js';
import type { Projections } from '../projections/port.js';
import { firstFrom, newestEvent, type EventStore } from '../storage/event-store.js';
import { createCursors, shortId, type CursorPlace, type Cursors } from './cursor.js';
import { beforeAll, followBehind, followFeed, type Follower } from './follower.js';
import type { Feed, FeedBatch, FeedItem, FeedPlace, FeedReadOptions } from './port.js';
import { storedNames, type CommittedNames, type Names } from './names.js';
import { stepsOf, type Wanted } from './steps.js';
import { tuning } from './tuning.js';
import type { Step, Window, WindowBounds } from './window.js';

export interface FeedDeps {
  readonly eventStore: Pick<EventStore, 'read' | 'subscribe' | 'headPosition'>;
  readonly projections: Pick<Projections, 'names' | 'reached'>;
  /** The names in this instance's folds, so that new items need no read model. */
  committed(): readonly CommittedNames[];
  readonly installationId: string;
  /** Log position of the newest command answered by this instance. */
  answered(): number;
  readonly clock: Clock;
  readonly logger: Logger;
  /** For tests. */
  readonly windowBounds?: WindowBounds;
}

/** Finds the places of cursors and events in the log. */
function createPlaces(eventStore: FeedDeps['eventStore'], cursors: Cursors, follower: Pick<Follower, 'window'>) {
  /** @throws ServiceError `invalid_request`, `conflict`, `unavailable` */
  async function placeOf(cursor: string): Promise<FeedPlace> {
    const read = cursors.read(cursor);
    if (read === 'malformed') throw malformed();
    if (read === 'foreign') throw refused('is of another log');
    const place = { position: read.position, cursor };
    if (!follower.window()?.has(place)) await check(read);
    return place;
  }

  /** Checks that the log has the event that the cursor names. @throws ServiceError */
  async function check({ stream, revision, position, event }: CursorPlace): Promise<void> {
    if (Math.ceil(position) > (await eventStore.headPosition())) throw refused('lies beyond the end of the log');
    const found = await firstFrom(eventStore, stream, revision);
    if (found?.revision === revision) {
      if (found.position !== Math.ceil(position) || shortId(found.id) !== event)
        throw refused('names an event that the log does not have');
      // The newest event of a stream may be foreign.
      if (isForeign(found)) return;
      const { index, count } = found.metadata.command;
      if (index + 1 !== count) throw malformed();
      return;
    }
    // A fact may have expired since; any other missing event was never there.
    const wasThere = expires(stream) && (found !== undefined || (await newestEvent(eventStore, stream)) === undefined);
    if (!wasThere) throw refused('names an event that the log does not have');
  }

  /** The place after the command of an event; undefined if the log does not have it. */
  async function behind(stream: string, revision: number, id?: string): Promise<FeedPlace | undefined> {
    const rest = { direction: 'forward', from: revision, maxCount: Number.MAX_SAFE_INTEGER } as const;
    let next = revision;
    for await (const event of eventStore.read(stream, rest)) {
      if (
        isForeign(event) ||
        event.revision !== next ||
        (next === revision && id !== undefined && shortId(event.id) !== id)
      )
        return undefined;
      next += 1;
      const { index, count } = event.metadata.command;
      if (index + 1 === count) return { position: event.position, cursor: cursors.of(event) };
    }
    return undefined;
  }

  return { placeOf, behind };
}

/** Reads the log for readers that are further behind than the window, a bounded number at a time. */
function createLogReads(eventStore: FeedDeps['eventStore'], cursors: Cursors, names: Names) {
  const reads = createSemaphore({
    places: tuning.reads,
    waiting: tuning.readsWaiting,
    waitMs: tuning.readWaitMs,
  });

  /** What follows a place between the items of a command. @throws ServiceError `unavailable` */
  async function* restOf({ position, cursor }: FeedPlace, wanted: Wanted): AsyncGenerator<Step> {
    const named = cursor === null || Number.isInteger(position) ? 'malformed' : cursors.read(cursor);
    if (typeof named === 'string') return;
    const events: RecordedEvent[] = [];
    const { stream, revision: from } = named;
    for await (const event of eventStore.read(stream, { direction: 'backward', from, maxCount: from + 1 })) {
      if (isForeign(event)) return;
      events.unshift(event);
      if (event.metadata.command.index === 0) break;
    }
    const [first, ...others] = events;
    if (first === undefined) return;
    const steps = await stepsOf([{ stream, events: [first, ...others] }], { cursors, names }, wanted);
    yield* steps.filter((step) => step.place.position > position);
  }

  /** Reads the log after a place, in slices, at most up to the window. @throws ServiceError `unavailable` */
  async function readLog(place: FeedPlace, window: Window, options: FeedReadOptions): Promise<FeedBatch> {
    const leave = await reads.enter();
    if (leave === undefined) throw new ServiceError('unavailable', 'too many readers read the log at once');
    const signals = options.signal === undefined ? [] : [options.signal];
    try {
      return await withFirstOf(signals, (signal) => readPiece(place, window, { ...options, signal }));
    } finally {
      leave();
    }
  }

  async function readPiece(
    place: FeedPlace,
    window: Window,
    options: FeedReadOptions & { readonly signal: AbortSignal },
  ): Promise<FeedBatch> {
    const { select, signal } = options;
    const piece = createPiece(place, window, options);
    let bytes = 0;
    for await (const step of restOf(place, { select })) if (!piece.take(step)) return piece.batch();
    const behind = { ...place, position: Math.ceil(place.position) };
    for await (const item of followBehind(eventStore, behind, signal)) {
      if (item.kind === 'dropped')
        throw new ServiceError('unavailable', 'the log cannot be read', { cause: item.cause });
      if (item.kind === 'caught_up') break;
      if (item.kind !== 'commands') continue;
      const steps = await stepsOf(item.commands, { cursors, names }, { select, maxItems: piece.left() });
      if (!steps.every(piece.take)) break;
      for (const { events } of item.commands) bytes += weightOf(events);
      if (bytes >= limits.feed.pieceBytes || piece.left() === 0) break;
    }
    return piece.batch();
  }

  return { readLog, close: reads.close };
}

/** Starts to follow the log. */
export function createFeed(deps: FeedDeps): Feed {
  const { eventStore, clock } = deps;
  const cursors = createCursors(deps.installationId);
  const names = storedNames(deps.projections);
  const follower = followFeed({ ...deps, cursors, names });
  const logReads = createLogReads(eventStore, cursors, names);
  const { placeOf, behind } = createPlaces(eventStore, cursors, follower);

  /** The window, after a bounded wait for everything answered before the call. @throws ServiceError `unavailable` */
  async function settled(): Promise<Window> {
    const answered = deps.answered();
    await follower.until(() => (follower.window()?.to.position ?? -1) >= answered, tuning.settleMs);
    return opened();
  }

  function opened(): Window {
    const window = follower.window();
    if (window === undefined) throw new ServiceError('unavailable', 'the event store is out of reach');
    return window;
  }

  async function read(place: FeedPlace, options: FeedReadOptions): Promise<FeedBatch> {
    const window = opened();
    const { from } = window;
    const steps = window.behind(place);
    if (steps === undefined) {
      const batch = await logReads.readLog(place, window, options);
      // Either everything before the window has expired, or the reader has left and its place stays.
      const isBehind = batch.looked > 0 || batch.items.length > 0 || options.signal?.aborted === true;
      return isBehind ? batch : { ...batch, place: from, caughtUp: false };
    }
    const piece = createPiece(place, window, options);
    for (const step of steps) if (!piece.take(step)) break;
    return piece.batch();
  }

  return {
    async resolve(after) {
      const window = await settled();
      switch (after) {
        case 'start':
          return beforeAll;
        case 'now':
          return window.to;
        default:
          return placeOf(after);
      }
    },
    async behind(stream, revision) {
      const place = await behind(stream, revision);
      if (place === undefined) throw new Error(`the log has no event ${stream}@${revision}`);
      return place;
    },
    async resolveMoved(cursor) {
      const named = cursors.read(cursor);
      const moved = typeof named === 'string' ? undefined : await behind(named.stream, named.revision, named.event);
      if (typeof named === 'string' || moved === undefined) return placeOf(cursor);
      // Between the items of a command it stays there.
      const isBetween = !Number.isInteger(named.position);
      return isBetween ? { position: moved.position - Math.ceil(named.position) + named.position, cursor } : moved;
    },
    read,
    end: () => ({ place: follower.window()?.to ?? beforeAll, live: follower.live() }),
    onNews: follower.onNews,
    async wait(place, timeoutMs, signal) {
      const news = follower.until(() => (follower.window()?.to.position ?? -1) > place.position, timeoutMs);
      await (signal === undefined ? news : unlessAborted(news, signal).catch(() => undefined));
    },
    async lag(place) {
      for (let from = place; ;) {
        const { items, place: to, caughtUp } = await read(from, { maxItems: 1 });
        const [first] = items;
        if (first !== undefined) {
          return { seconds: Math.max(0, (clock.now() - Date.parse(first.at)) / 1000), caught_up: false };
        }
        if (caughtUp) return { seconds: 0, caught_up: true };
        from = to;
      }
    },
    async close() {
      logReads.close();
      await follower.close();
    },
  };
}

/** Approximate length as JSON. Serialising would cost more than everything else that is done with most commands. */
function weightOf(value: unknown): number {
  if (typeof value === 'string') return value.length;
  if (typeof value !== 'object' || value === null) return 8;
  let weight = 2;
  for (const part of Object.values(value)) weight += 8 + weightOf(part);
  return weight;
}

interface Piece {
  /** @returns false if the step does not fit, or the piece is full */
  take(step: Step): boolean;
  /** How many more items it may have. */
  left(): number;
  batch(): FeedBatch;
}

/** Collects the steps after a place, as many as the options and the limits allow. */
function createPiece(
  place: FeedPlace,
  window: Window,
  { maxItems, maxBytes = limits.feed.pieceBytes, select }: FeedReadOptions,
): Piece {
  const items: FeedItem[] = [];
  let [to, looked, bytes] = [place, 0, 0];
  return {
    take({ item, place: behind, events }) {
      // Later steps reach readers as news.
      if (behind.position > window.to.position) return false;
      if (item !== null && (select === undefined || select(item.about))) {
        const more = Buffer.byteLength(item.json);
        if (items.length === maxItems || (items.length > 0 && bytes + more > maxBytes)) return false;
        bytes += more;
        items.push(item);
      }
      looked += events;
      to = behind;
      return looked < limits.feed.pieceEvents;
    },
    left: () => maxItems - items.length,
    batch: () => ({ items, place: to, looked, caughtUp: to.position >= window.to.position }),
  };
}

const malformed = (): ServiceError =>
  new ServiceError('invalid_request', 'after: expected start, now or a cursor, as the feed gave it');

const refused = (why: string): ServiceError =>
  new ServiceError('conflict', `after: this cursor ${why}; begin anew with now, or with start for everything`);
