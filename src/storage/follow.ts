/**
 * Follows the log for ever: subscribes again after a drop, drops repeats, puts commands together, and says when it has
 * caught up. What projections and delivery read; not an adapter. Implements `docs/contract/domain.md` ("Folds, projections, pushes,
 * time travel and audit only ever see whole commands").
 */
import { sleep, yieldToEventLoop } from '../kernel/background.js';
import type { RecordedCommand, RecordedEvent } from '../kernel/event.js';
import { backoff, storeRetry } from '../kernel/retry.js';
import { isAfter, type EventStore, type LogItem, type ResumePoint } from './event-store.js';
import { bounds } from './bounds.js';

export type FollowItem =
  | { readonly kind: 'commands'; readonly commands: readonly RecordedCommand[]; readonly point: ResumePoint }
  | { readonly kind: 'checkpoint'; readonly point: ResumePoint }
  | { readonly kind: 'caught_up' }
  /** The subscription dropped; it goes on from the last point by itself. */
  | { readonly kind: 'dropped'; readonly cause: unknown };

export interface FollowOptions {
  readonly prefix: string;
  readonly after: ResumePoint | 'start';
  readonly signal: AbortSignal;
}

/** The log holds a command that is not whole: asking again cannot help, a person must look. */
export class BrokenLogError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'BrokenLogError';
  }
}

export interface CommandAssembler {
  /** The commands that these events complete. @throws BrokenLogError when events of a command are missing. */
  add(events: readonly RecordedEvent[]): RecordedCommand[];
  /** True while a command is incomplete: a point taken now would cut it. */
  pending(): boolean;
  reset(): void;
}

/** Joins events into whole commands; holds back the head of one whose rest has not come yet. */
export function createCommandAssembler(): CommandAssembler {
  let open: RecordedEvent[] = [];

  function check(event: RecordedEvent): void {
    const { index, count, id } = event.metadata.command;
    const place = `${event.stream} at revision ${event.revision}`;
    const [first] = open;
    if (!(count >= 1 && count <= bounds.commandEvents && index >= 0 && index < count)) {
      throw new BrokenLogError(`command ${id} in ${place} claims to be event ${index} of ${count}`);
    }
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

/** What has been handed out, over all subscriptions, and what the running one still holds back. */
function createProgress(after: ResumePoint | 'start'): {
  point(): ResumePoint | 'start';
  /** Begins anew at the point: the head of a command that the last subscription left incomplete comes again. */
  restart(): void;
  handle(item: LogItem): FollowItem[];
} {
  let point = after;
  let handedOut = after === 'start' ? -1 : after.commit;
  let seen = handedOut;
  let caughtUpHeldBack = false;
  const assembler = createCommandAssembler();

  function takeEvents(events: readonly RecordedEvent[]): FollowItem[] {
    const fresh = events.filter((event) => {
      if (event.position <= seen) return false;
      seen = event.position;
      return true;
    });
    const commands = assembler.add(fresh);
    const last = commands.at(-1)?.events.at(-1);
    if (last === undefined) return [];
    handedOut = last.position;
    point = { commit: last.position, prepare: last.position };
    const items: FollowItem[] = [{ kind: 'commands', commands, point }];
    if (caughtUpHeldBack && !assembler.pending()) {
      caughtUpHeldBack = false;
      items.push({ kind: 'caught_up' });
    }
    return items;
  }

  return {
    point: () => point,
    restart() {
      assembler.reset();
      seen = handedOut;
      caughtUpHeldBack = false;
    },
    handle(item) {
      switch (item.kind) {
        case 'events':
          return takeEvents(item.events);
        case 'checkpoint':
          if (assembler.pending()) return [];
          if (point !== 'start' && !isAfter(item.point, point)) return [];
          point = item.point;
          return [{ kind: 'checkpoint', point }];
        case 'caught_up':
          // Inside a command it would be said before its events: it waits for the last of them.
          caughtUpHeldBack = assembler.pending();
          return caughtUpHeldBack ? [] : [{ kind: 'caught_up' }];
        default: {
          const never: never = item;
          throw new Error(`unknown log item ${JSON.stringify(never)}`);
        }
      }
    },
  };
}

/**
 * Whole commands from `after` on, each once and in the log's order, until the signal aborts.
 * Points are safe to store: everything up to them has been handed out. Ends only with the signal: a consumer that stops
 * early must abort it.
 * @throws BrokenLogError when the log holds a command that is not whole. Drops are items, not errors.
 */
export async function* followLog(store: EventStore, options: FollowOptions): AsyncGenerator<FollowItem, void, void> {
  const { prefix, signal } = options;
  const progress = createProgress(options.after);
  let failures = 0;
  while (!signal.aborted) {
    progress.restart();
    let moved = false;
    let cause: unknown = new Error('the subscription ended');
    try {
      for await (const item of store.subscribe({ prefix, after: progress.point(), signal })) {
        for (const out of progress.handle(item)) {
          moved ||= out.kind === 'commands';
          yield out;
        }
        if (signal.aborted) return;
      }
    } catch (error) {
      if (error instanceof BrokenLogError) throw error;
      cause = error;
    }
    if (signal.aborted) return;
    yield { kind: 'dropped', cause };
    // A store that drops a busy consumer now and then is asked again at once; one that fails is left in peace.
    failures = moved ? 0 : failures + 1;
    if (moved) await yieldToEventLoop();
    else await sleep(backoff(storeRetry, failures - 1), signal);
  }
}
