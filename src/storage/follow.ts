/**
 * Follows the log for ever: subscribes again after a drop, drops repeats, puts commands together, and says when it has
 * caught up. What projections and delivery read; not an adapter. Implements `domain.md` ("Folds, projections, pushes,
 * time travel and audit only ever see whole commands").
 */
import { backoff, sleep } from '../kernel/background.js';
import type { RecordedCommand, RecordedEvent } from '../kernel/event.js';
import { limits } from '../kernel/limits.js';
import type { EventStore, LogItem, ResumePoint } from './event-store.js';

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

/** Joins events into whole commands; holds back the head of one whose rest has not come yet. */
export function createCommandAssembler(): {
  add(events: readonly RecordedEvent[]): RecordedCommand[];
  /** True while a command is incomplete: a point taken now would cut it. */
  pending(): boolean;
  reset(): void;
} {
  let open: RecordedEvent[] = [];
  return {
    add(events) {
      const commands: RecordedCommand[] = [];
      for (const event of events) {
        const { index, count, id } = event.metadata.command;
        if (open.length > 0 && (open[0]?.metadata.command.id !== id || open.length !== index)) {
          throw new Error(
            `command ${open[0]?.metadata.command.id} in ${event.stream} lacks events before revision ${event.revision}`,
          );
        }
        if (open.length === 0 && index !== 0) {
          throw new Error(
            `command ${id} in ${event.stream} begins with its event ${index} at revision ${event.revision}`,
          );
        }
        open.push(event);
        const [first, ...rest] = open;
        if (first !== undefined && open.length === count) {
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

const compare = (a: ResumePoint, b: ResumePoint): number => a.commit - b.commit || a.prepare - b.prepare;

/**
 * Whole commands from `after` on, each once and in the log's order, until the signal aborts.
 * Points are safe to store: everything up to them has been handed out.
 */
export async function* followLog(store: EventStore, options: FollowOptions): AsyncGenerator<FollowItem, void, void> {
  let point = options.after;
  let lastPosition = point === 'start' ? -1 : point.commit;
  let failures = 0;
  while (!options.signal.aborted) {
    const assembler = createCommandAssembler();
    // Events that only completed part of a command are asked for again after a drop: the point stays before them.
    let seen = lastPosition;
    try {
      for await (const item of store.subscribe({ prefix: options.prefix, after: point, signal: options.signal })) {
        failures = 0;
        const out = handle(item);
        if (out !== undefined) yield out;
      }
      if (options.signal.aborted) return;
      yield { kind: 'dropped', cause: new Error('the subscription ended') };
    } catch (cause) {
      if (options.signal.aborted) return;
      yield { kind: 'dropped', cause };
    }
    failures += 1;
    await sleep(backoff(failures, limits.projections.retryMinMs, limits.projections.retryMaxMs), options.signal);

    function handle(item: LogItem): FollowItem | undefined {
      switch (item.kind) {
        case 'events': {
          const fresh = item.events.filter((event) => {
            if (event.position <= seen) return false;
            seen = event.position;
            return true;
          });
          const commands = assembler.add(fresh);
          const last = commands.at(-1)?.events.at(-1);
          if (last === undefined) return undefined;
          lastPosition = last.position;
          point = { commit: last.position, prepare: last.position };
          return { kind: 'commands', commands, point };
        }
        case 'checkpoint':
          if (assembler.pending()) return undefined;
          if (point !== 'start' && compare(item.point, point) <= 0) return undefined;
          point = item.point;
          return { kind: 'checkpoint', point };
        case 'caught_up':
          return assembler.pending() ? undefined : { kind: 'caught_up' };
        default: {
          const never: never = item;
          throw new Error(`unknown log item ${JSON.stringify(never)}`);
        }
      }
    }
  }
}
