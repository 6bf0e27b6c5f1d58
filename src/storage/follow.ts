/**
 * Follows the log forever: resubscribes after a drop, discards repeats, assembles whole commands, and reports when it
 * has caught up. Projections and delivery read the log through it, whichever adapter holds it. Implements
 * `docs/contract/domain.md#commands-and-events`.
 */
import { sleep, timedOut, withDeadline, yieldToEventLoop } from '../kernel/background.js';
import { ServiceError, unreachable } from '../kernel/errors.js';
import {
  holdsFacts,
  isForeign,
  type ForeignEvent,
  type RecordedCommand,
  type RecordedEvent,
  type StoredEvent,
} from '../kernel/event.js';
import { backoff, storeRetry } from '../kernel/retry.js';
import { BrokenLogError, ForeignEventError, ownEvent } from './broken-log.js';
import {
  isAfter,
  passedBy,
  type EventStore,
  type LogItem,
  type ResumePoint,
  type SubscribeOptions,
} from './event-store.js';
import { bounds } from './bounds.js';

export type FollowItem =
  | { readonly kind: 'commands'; readonly commands: readonly RecordedCommand[]; readonly point: ResumePoint }
  | { readonly kind: 'checkpoint'; readonly point: ResumePoint }
  | { readonly kind: 'caught_up' }
  /** The subscription dropped. The next one starts by itself at the last point. */
  | { readonly kind: 'dropped'; readonly cause: unknown };

export interface CommandAssembler {
  /** @returns the commands that these events complete @throws BrokenLogError when events of a command are missing */
  add(events: readonly RecordedEvent[]): RecordedCommand[];
  /** True while a command is incomplete; a point taken now would split it. */
  pending(): boolean;
  reset(): void;
}

/** Joins events into whole commands and holds back the events of an incomplete one. */
export function createCommandAssembler(): CommandAssembler {
  let open: RecordedEvent[] = [];

  function check(event: RecordedEvent): void {
    const place = `${event.stream} at revision ${event.revision}`;
    const { index, count, id } = event.metadata.command;
    const [first] = open;
    if (first === undefined) {
      if (index !== 0) throw new BrokenLogError(`command ${id} in ${place} begins with its event ${index}`);
      return;
    }
    const { command } = first.metadata;
    if (command.id !== id || command.count !== count || open.length !== index || first.stream !== event.stream) {
      throw new BrokenLogError(
        `command ${command.id} in ${first.stream} has ${open.length} of ${command.count} events before ${place}`,
      );
    }
  }

  return {
    add(events) {
      const commands: RecordedCommand[] = [];
      for (const event of events) {
        check(event);
        open.push(event);
        const [first, ...rest] = open;
        if (first !== undefined && open.length === event.metadata.command.count) {
          commands.push({ stream: event.stream, events: [first, ...rest] });
          open = [];
        }
      }
      return commands;
    },
    pending: () => open.length > 0,
    reset() {
      open = [];
    },
  };
}

/**
 * The commands of a stream after a revision, up to its current end, a few hundred at a time. A command whose end is not
 * in the log yet is left out.
 * @throws ServiceError `unavailable`, BrokenLogError
 */
export async function* commandsAfter(
  store: Pick<EventStore, 'read'>,
  stream: string,
  revision: number,
): AsyncGenerator<readonly RecordedCommand[], void, void> {
  const assembler = createCommandAssembler();
  let commands: RecordedCommand[] = [];
  const rest = { direction: 'forward', from: revision + 1, maxCount: Number.MAX_SAFE_INTEGER } as const;
  for await (const event of store.read(stream, rest)) {
    commands.push(...assembler.add([ownEvent(event)]));
    if (commands.length < bounds.itemEvents) continue;
    yield commands;
    commands = [];
  }
  if (commands.length > 0) yield commands;
}

export interface FollowOptions extends SubscribeOptions {
  /** Whether foreign events in a stream are skipped instead of ending the log; by default in streams of facts. */
  passesOver?(stream: string): boolean;
}

/** What to deliver for an item of the log, and the foreign event after it, if any, that ends the log for its reader. */
interface Handled {
  readonly items: readonly FollowItem[];
  readonly end?: ForeignEvent | undefined;
}

/** The progress over all subscriptions: commands delivered, and events that the current one still holds back. */
function createProgress({ after, passesOver = holdsFacts }: FollowOptions) {
  let point: ResumePoint | 'start' = after;
  let handedOut = after === 'start' ? -1 : passedBy(after);
  let seen = handedOut;
  let caughtUpHeldBack = false;
  const assembler = createCommandAssembler();

  function takeEvents(events: readonly StoredEvent[]): Handled {
    const fresh = events.filter((event) => {
      if (event.position <= seen) return false;
      seen = event.position;
      return true;
    });
    const stop = fresh.findIndex((event) => isForeign(event) && !passesOver(event.stream));
    const readable = stop < 0 ? fresh : fresh.slice(0, stop);
    const commands = assembler.add(readable.flatMap((event) => (isForeign(event) ? [] : [event])));
    const end = fresh[stop];
    const items: FollowItem[] = [];
    const last = commands.at(-1)?.events.at(-1);
    if (last !== undefined) {
      handedOut = last.position;
      point = { commit: last.position, prepare: last.position };
      items.push({ kind: 'commands', commands, point });
    }
    const passed = readable.at(-1)?.position ?? 0;
    if (passed > handedOut && !assembler.pending()) {
      // Foreign facts: the next subscription starts after them.
      handedOut = passed;
      point = { commit: passed, prepare: passed };
      items.push({ kind: 'checkpoint', point });
    }
    if (items.length > 0 && caughtUpHeldBack && !assembler.pending()) {
      caughtUpHeldBack = false;
      items.push({ kind: 'caught_up' });
    }
    return { items, end: end !== undefined && isForeign(end) ? end : undefined };
  }

  return {
    point: () => point,
    /** Restarts at the point: the events of an incomplete command will be delivered again. */
    restart(): void {
      assembler.reset();
      seen = handedOut;
      caughtUpHeldBack = false;
    },
    handle(item: LogItem): Handled {
      switch (item.kind) {
        case 'events':
          return takeEvents(item.events);
        case 'checkpoint':
          if (assembler.pending()) return { items: [] };
          if (point !== 'start' && !isAfter(item.point, point)) return { items: [] };
          point = item.point;
          return { items: [{ kind: 'checkpoint', point }] };
        case 'caught_up':
          // In the middle of a command, it is held back until the command is complete.
          caughtUpHeldBack = assembler.pending();
          return { items: caughtUpHeldBack ? [] : [{ kind: 'caught_up' }] };
        default:
          return unreachable(item);
      }
    },
  };
}

/**
 * Yields whole commands after `after`, each once and in log order, until the signal aborts. A consumer that stops early
 * must abort the signal. Points are safe to store: everything up to them has been delivered. Foreign events are skipped
 * in streams of facts.
 * @throws BrokenLogError when the log holds an incomplete command, ForeignEventError when another stream holds a
 *   foreign event; drops are items, not errors
 */
export async function* followLog(
  store: Pick<EventStore, 'subscribe'>,
  options: FollowOptions,
): AsyncGenerator<FollowItem, void, void> {
  const { signal, streams, ahead } = options;
  const progress = createProgress(options);
  let failures = 0;
  while (!signal.aborted) {
    progress.restart();
    let moved = false;
    let cause: unknown = new Error('the subscription ended');
    try {
      for await (const item of store.subscribe({ streams, after: progress.point(), ahead, signal })) {
        const { items, end } = progress.handle(item);
        for (const out of items) {
          moved ||= out.kind === 'commands';
          yield out;
        }
        if (signal.aborted) return;
        if (end !== undefined) throw new ForeignEventError(end);
      }
    } catch (error) {
      if (error instanceof BrokenLogError) throw error;
      cause = error;
    }
    if (signal.aborted) return;
    yield { kind: 'dropped', cause };
    // A store that drops a busy consumer is retried at once; a failing store gets a pause.
    failures = moved ? 0 : failures + 1;
    if (moved) await yieldToEventLoop();
    else await sleep(backoff(storeRetry, failures - 1), signal);
  }
}

/** How long a store may be away before an export, an import or a check of the log gives up. */
export const giveUpMs = 60_000;

/**
 * Reads the log to its end at the time of the call, for an export or a check: yields batches of whole commands. Ends
 * early, without an error, when the signal aborts.
 * @throws BrokenLogError, also when the log ends in the middle of a command; ServiceError `unavailable` when the store
 *   stays away or silent
 */
export async function* readWholeLog(
  store: Pick<EventStore, 'subscribe'>,
  options: FollowOptions,
): AsyncGenerator<readonly RecordedCommand[], void, void> {
  const enough = new AbortController();
  const signal = AbortSignal.any([options.signal, enough.signal]);
  /** The subscription has reached the end of the log. */
  let isAtEnd = false;
  async function* subscribe(to: SubscribeOptions): AsyncGenerator<LogItem, void, void> {
    isAtEnd = false;
    for await (const item of store.subscribe(to)) {
      isAtEnd ||= item.kind === 'caught_up';
      yield item;
    }
  }
  const items = followLog({ subscribe }, { ...options, signal });
  let heard = performance.now();
  try {
    for (;;) {
      const next = await withDeadline(items.next(), giveUpMs);
      if (next === timedOut) {
        if (isAtEnd) throw new BrokenLogError('the log ends in the middle of a command');
        throw new ServiceError('unavailable', `the event store has sent nothing for ${giveUpMs / 1000} s`);
      }
      if (next.done === true || next.value.kind === 'caught_up') return;
      const item = next.value;
      if (item.kind === 'commands') yield item.commands;
      if (item.kind !== 'dropped') heard = performance.now();
      else if (performance.now() - heard > giveUpMs) {
        throw new ServiceError('unavailable', 'the event store is still away', { cause: item.cause });
      }
    }
  } finally {
    enough.abort();
    await items.return();
  }
}
