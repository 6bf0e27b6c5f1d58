/**
 * Live streams of the event feed. Streams at the head with the same filters share their bytes; a stream that is behind reads
 * for itself, as fast as its client does. One timer sends heartbeats and ends streams that are too slow. Implements
 * `docs/contract/automation.md#event-feed`.
 */
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { sleep } from '../../../kernel/background.js';
import { timestamp, type Clock } from '../../../kernel/clock.js';
import { errorText } from '../../../kernel/errors.js';
import { limits } from '../../../kernel/limits.js';
import type { Logger } from '../../../kernel/logger.js';
import { backoff, storeRetry } from '../../../kernel/retry.js';
import type { Feed, FeedItem, FeedPlace, FeedSubject } from '../../../feed/port.js';
import { tuning } from '../tuning.js';
import { endBlock, eventBlock, heartbeatBlock, opening, readyBlock, type EndReason } from './event-text.js';

export interface StreamRequest {
  /** Its headers are sent: everything written to it is part of the stream. */
  readonly response: ServerResponse;
  readonly place: FeedPlace;
  /** Streams with the same key get the same items. */
  readonly key: string;
  select(about: FeedSubject): boolean;
}

export interface EventStreams {
  /** @returns how to end the stream */
  open(request: StreamRequest): (reason: EndReason) => void;
  /** Ends all streams. */
  close(): void;
}

interface Stream extends StreamRequest {
  /** The place after the last item that was written; not kept while the stream is live. */
  place: FeedPlace;
  /** `reading` behind the head, `live` at the head, `ended`: nothing more is written. */
  state: 'reading' | 'live' | 'ended';
  readonly gone: AbortController;
  /** By the monotonic clock. */
  lastWrite: number;
  /** Since when the client leaves too much unread. */
  fullSince: number | undefined;
}

const newStream = (request: StreamRequest, now: number): Stream => ({
  ...request,
  state: 'reading',
  gone: new AbortController(),
  lastWrite: now,
  fullSince: undefined,
});

/** Live streams with the same filters. */
interface Group {
  readonly select: StreamRequest['select'];
  readonly streams: Set<Stream>;
}

export interface EventStreamsDeps {
  readonly feed: Pick<Feed, 'read' | 'end' | 'onNews' | 'wait'>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** How much a stream that is behind reads at once. */
const mostOfRead = { maxItems: tuning.events.itemsOfRead, maxBytes: tuning.events.bytesOfRead };

type Write = (stream: Stream, text: string | Uint8Array) => void;

/** The streams at the head, by their filters. @param fellBehind called with a stream that leaves too much unread */
function createLiveStreams(
  { feed, clock }: EventStreamsDeps,
  write: Write,
  fellBehind: (stream: Stream, place: FeedPlace) => void,
) {
  const groups = new Map<string, Group>();
  /** News, gathered for a moment. */
  let news: { from: FeedPlace; items: FeedItem[] } | undefined;
  let flushing: NodeJS.Timeout | undefined;

  function flush(): void {
    clearTimeout(flushing);
    flushing = undefined;
    if (news === undefined) return;
    const { from, items } = news;
    news = undefined;
    for (const { select, streams } of groups.values()) {
      const text = items
        .filter(({ about }) => select(about))
        .map(eventBlock)
        .join('');
      if (text === '') continue;
      const bytes = Buffer.from(text);
      for (const stream of streams) {
        if (stream.response.writableLength <= limits.feed.waitingBytes) write(stream, bytes);
        else fellBehind(stream, from);
      }
    }
  }

  function ready(stream: Stream): void {
    write(stream, readyBlock(feed.end().place.cursor ?? '', timestamp(clock.now())));
  }

  const stopNews = feed.onNews((arrived) => {
    if (arrived.kind === 'caught_up') {
      flush();
      for (const { streams } of groups.values()) for (const stream of streams) ready(stream);
    } else if (news === undefined) {
      news = { from: arrived.from, items: [...arrived.items] };
      flushing = setTimeout(flush, tuning.events.gatherMs);
    } else news.items.push(...arrived.items);
  });

  return {
    flush,
    join(stream: Stream): void {
      const group = groups.get(stream.key) ?? { select: stream.select, streams: new Set() };
      group.streams.add(stream);
      groups.set(stream.key, group);
      if (feed.end().live) ready(stream);
    },
    leave(stream: Stream): void {
      const group = groups.get(stream.key);
      group?.streams.delete(stream);
      if (group?.streams.size === 0) groups.delete(stream.key);
    },
    close(): void {
      stopNews();
      clearTimeout(flushing);
    },
  };
}

export function createEventStreams(deps: EventStreamsDeps): EventStreams {
  const { feed, clock, logger } = deps;
  const streams = new Set<Stream>();
  const write: Write = (stream, text) => {
    stream.lastWrite = clock.monotonic();
    stream.response.write(text);
  };
  /** Too much is unread: the stream reads for itself once its client has caught up. */
  const live = createLiveStreams(deps, write, (stream, place) => {
    live.leave(stream);
    stream.state = 'reading';
    stream.place = place;
    readBehind(stream);
  });

  function readBehind(stream: Stream): void {
    read(stream).catch((error: unknown) => {
      logger.error({ error: errorText(error) }, 'a stream of events failed');
      stream.response.destroy();
    });
  }

  /** Writes items until the stream is live or gone. Waits for a store that is away. */
  async function read(stream: Stream): Promise<void> {
    const { response, select, gone } = stream;
    for (let failures = 0; stream.state === 'reading';) {
      await drained(response, gone.signal);
      if (stream.state !== 'reading') return;
      try {
        const batch = await feed.read(stream.place, { ...mostOfRead, select, signal: gone.signal });
        failures = 0;
        if (stream.gone.signal.aborted) return;
        // The whole batch is written at once: unread bytes are bounded, items that wait here would not be.
        if (batch.items.length > 0) write(stream, batch.items.map(eventBlock).join(''));
        stream.place = batch.place;
      } catch (error) {
        if (failures === 0) logger.warn({ error: errorText(error) }, 'a stream of events waits for a store');
        await sleep(backoff(storeRetry, (failures += 1)), gone.signal);
        continue;
      }
      // Gathered news goes to the other streams first, so that all live streams are at one place.
      live.flush();
      const { place: head } = feed.end();
      if (stream.place.position === head.position) {
        stream.state = 'live';
        live.join(stream);
      }
      // Its cursor is from an instance that has read further than this one.
      else if (stream.place.position > head.position) await feed.wait(head, tuning.events.heartbeatMs, gone.signal);
    }
  }

  function end(stream: Stream, reason: EndReason): void {
    if (stream.state === 'ended') return;
    live.leave(stream);
    stream.state = 'ended';
    stream.gone.abort();
    stream.response.end(endBlock(reason, timestamp(clock.now())));
    const timer = setTimeout(() => stream.response.destroy(), limits.feed.endMs);
    stream.response.once('close', () => clearTimeout(timer));
  }

  function look(): void {
    const at = clock.monotonic();
    for (const stream of streams) {
      const { state, response } = stream;
      if (state === 'ended') continue;
      stream.fullSince = response.writableLength > limits.feed.waitingBytes ? (stream.fullSince ?? at) : undefined;
      if (stream.fullSince !== undefined && at - stream.fullSince >= limits.feed.waitingMs) end(stream, 'too_slow');
      else if (at - stream.lastWrite >= tuning.events.heartbeatMs && !response.writableNeedDrain) {
        live.flush();
        write(stream, heartbeatBlock(state === 'live' ? feed.end().place.cursor : stream.place.cursor));
      }
    }
  }

  const timer = setInterval(look, tuning.events.lookEveryMs).unref();

  return {
    open(request) {
      const stream = newStream(request, clock.monotonic());
      streams.add(stream);
      request.response.on('error', () => undefined);
      request.response.once('close', () => {
        live.leave(stream);
        stream.state = 'ended';
        stream.gone.abort();
        streams.delete(stream);
      });
      write(stream, opening);
      readBehind(stream);
      return (reason) => end(stream, reason);
    },
    close() {
      live.close();
      clearInterval(timer);
      for (const stream of streams) end(stream, 'draining');
    },
  };
}

/** Resolves when the client has taken what was written, or when the signal aborts. */
async function drained(response: ServerResponse, signal: AbortSignal): Promise<void> {
  if (response.writableNeedDrain) await once(response, 'drain', { signal }).catch(() => undefined);
}
