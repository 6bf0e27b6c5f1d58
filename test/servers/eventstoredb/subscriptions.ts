/**
 * Subscriptions of the test server to the whole log with a filter, or to one stream: catch-up in pages with the
 * checkpoints of 23.10.8, caughtUp, then live events. Drops, ends and repeats caughtUp on demand.
 */
import { status } from '@grpc/grpc-js';
import { randomUUID } from 'node:crypto';
import { handlerThrew, Refusal, streamDeleted } from './calls.js';
import type { Faults } from './faults.js';
import { laterCatchUp } from './later-catch-up.js';
import { indexAt, knownUntil, tombstoneRevision, type EventLog, type LogEvent } from './log.js';
import type { ReadOptions } from './read-options.js';
import { eventMessage, startPosition } from './read.js';
import type { Plain } from './wire.js';

export const tooSlow = (): Refusal =>
  new Refusal(
    status.ABORTED,
    'Operation timed out: Consumer too slow to handle event while live. Client resubscription required.',
  );

/** One subscriber's end of the wire. */
export interface Subscriber {
  /** Resolves when more may be written. */
  write(message: Plain): Promise<void>;
  end(error?: Refusal): void;
  closed(): boolean;
  onClose(listener: () => void): void;
}

export interface Subscriptions {
  /** @throws Refusal before anything was written */
  start(subscriber: Subscriber, options: ReadOptions): void;
  /** Ends all, with an error or cleanly. @returns how many */
  drop(error?: Refusal): number;
  open(): number;
}

/** Counts scanned events and decides when a checkpoint is due. */
function createCadence(every: number): { scanned(count: number): boolean } {
  let since = 0;
  return {
    scanned(count) {
      since += count;
      if (since < every) return false;
      since = 0;
      return true;
    },
  };
}

interface Feed {
  /** What to send for existing events, then for live ones. */
  catchUp(): Iterable<Plain>;
  live(event: LogEvent): readonly Plain[];
  /** True when caughtUp must wait for the first event, as for a missing stream on 23.10. */
  readonly waits: boolean;
  /** How the subscription ends after this event. */
  last(event: LogEvent): Refusal | undefined;
}

const checkpoint = (commit: number, prepare: number): Plain => ({
  checkpoint: { commitPosition: commit, preparePosition: prepare },
});

/** The same event at "no position". */
function atNowhere(message: Plain): Plain {
  const outer = message['event'] as Plain;
  const nowhere = { commitPosition: '18446744073709551615', preparePosition: '18446744073709551615' };
  const { commitPosition } = nowhere;
  return { event: { ...outer, commitPosition, event: { ...(outer['event'] as Plain), ...nowhere } } };
}

function allFeed(log: EventLog, options: ReadOptions, faults: Faults): Feed {
  const { target } = options;
  if (target.kind !== 'all') throw handlerThrew();
  const { filter, from: start } = target;
  const from = startPosition(log, start);
  if (from === undefined) throw handlerThrew();
  const message = (event: LogEvent): Plain =>
    faults.eventsNowhere ? atNowhere(eventMessage(log, event, options)) : eventMessage(log, event, options);
  const matches = (event: LogEvent): boolean => filter === undefined || filter.matches(event);
  const cadence = createCadence((filter?.window ?? 0) * (filter?.interval ?? 0));
  let index = start === 'start' ? 0 : indexAt(log.all, from + 1);
  function* catchUp(): Generator<Plain> {
    if (filter !== undefined && faults.later !== undefined && start !== 'end') {
      yield* laterCatchUp({ log, filter, from: start, server: faults.later, message });
      return;
    }
    const window = filter?.window ?? 500;
    while (index < log.all.length) {
      const page = log.all.slice(index, index + window);
      index += page.length;
      const matching = page.filter(matches);
      yield* matching.map(message);
      if (filter === undefined || !cadence.scanned(page.length)) continue;
      const match = matching.at(-1);
      yield match === undefined ? checkpoint(page[0]?.position ?? 0, 0) : checkpoint(match.position, match.position);
    }
  }
  return {
    catchUp,
    waits: false,
    last: () => undefined,
    live(event) {
      const out = matches(event) ? [message(event)] : [];
      if (filter !== undefined && cadence.scanned(1)) out.push(checkpoint(event.position, event.position));
      return out;
    },
  };
}

function streamFeed(log: EventLog, options: ReadOptions): Feed {
  const { target } = options;
  if (target.kind !== 'stream') throw handlerThrew();
  const { name, from } = target;
  if (log.isTombstoned(name) && from !== 'end') throw streamDeleted(name);
  const streamState = log.stream(name);
  const head = (streamState?.events.length ?? 0) - 1;
  const after = from === 'start' ? -1 : from === 'end' ? head : from;
  const message = (event: LogEvent): Plain => eventMessage(log, event, options);
  return {
    waits: from !== 'end' && (streamState === undefined || streamState.limits.softDeleted),
    *catchUp() {
      for (let revision = after + 1; ; revision += 1) {
        const now = log.stream(name);
        const event = now?.events[revision];
        if (now === undefined || event === undefined) return;
        if (log.isVisible(event, now.limits)) yield message(event);
      }
    },
    live: (event) => (event.stream === name && event.revision > after ? [message(event)] : []),
    last: (event) => (event.stream === name && event.revision === tombstoneRevision ? streamDeleted(name) : undefined),
  };
}

export function createSubscriptions(log: EventLog, faults: Faults): Subscriptions {
  const running = new Set<Subscriber>();

  async function run(
    subscriber: Subscriber,
    feed: Feed,
    backlog: LogEvent[][],
    wake: () => Promise<void>,
  ): Promise<void> {
    await subscriber.write({ confirmation: { subscriptionId: randomUUID() } });
    if (faults.wildCheckpoints) await subscriber.write(checkpoint(2 ** 60, 0));
    for (const message of feed.catchUp()) {
      if (subscriber.closed()) return;
      await subscriber.write(message);
    }
    let behind = feed.waits;
    if (!behind) await subscriber.write({ caughtUp: {} });
    let sent = 0;
    for (;;) {
      const group = backlog.shift();
      if (group === undefined) {
        await wake();
        if (subscriber.closed()) return;
        continue;
      }
      let matched = false;
      for (const event of group) {
        for (const message of feed.live(event)) {
          if (subscriber.closed()) return;
          await subscriber.write(message);
          if (message['event'] === undefined) continue;
          matched = true;
          sent += 1;
          if (faults.dropAfter > 0 && sent >= faults.dropAfter) return subscriber.end(tooSlow());
          if (faults.endAfter > 0 && sent >= faults.endAfter) return subscriber.end();
        }
        const last = feed.last(event);
        if (last !== undefined) return subscriber.end(last);
      }
      if ((behind && matched) || (matched && faults.caughtUpRepeats)) {
        behind = false;
        await subscriber.write({ caughtUp: {} });
      }
    }
  }

  return {
    start(subscriber, options) {
      const seen = (event: LogEvent): boolean => event.position <= (faults.cutOffAt ?? Infinity);
      const known = knownUntil(log, faults.cutOffAt);
      const feed = options.target.kind === 'all' ? allFeed(known, options, faults) : streamFeed(known, options);
      const backlog: LogEvent[][] = [];
      let wakeUp = (): void => undefined;
      const wake = (): Promise<void> =>
        new Promise((resolve) => {
          if (backlog.length > 0 || subscriber.closed()) resolve();
          else wakeUp = resolve;
        });
      // Catching up reads the growing log, so live events are those after the last one read.
      let upTo = -1;
      const stop = log.listen((events) => {
        const fresh = events.filter((event) => event.position > upTo && seen(event));
        if (fresh.length > 0) backlog.push(fresh);
        wakeUp();
      });
      const catchUp = feed.catchUp.bind(feed);
      const counted: Feed = {
        ...feed,
        *catchUp() {
          yield* catchUp();
          upTo = log.head();
          backlog.length = 0;
        },
      };
      running.add(subscriber);
      subscriber.onClose(() => {
        running.delete(subscriber);
        stop();
        wakeUp();
      });
      void run(subscriber, counted, backlog, wake).catch(() => subscriber.end(handlerThrew()));
    },
    drop(error) {
      const count = running.size;
      for (const subscriber of running) subscriber.end(error);
      return count;
    },
    open: () => running.size,
  };
}
