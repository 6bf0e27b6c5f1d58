/**
 * Follows the log from a position: scans the appends, reads the events of the wanted streams, and waits at the
 * head for more. The consumer pulls, so a slow one is never dropped. Implements `event-store.ts` (subscribe).
 */
import { EventEmitter, once } from 'node:events';
import { yieldToEventLoop } from '../../../kernel/background.js';
import { ServiceError } from '../../../kernel/errors.js';
import type { StoredEvent } from '../../../kernel/event.js';
import type { LogItem, ResumePoint, SubscribeOptions } from '../../event-store.js';
import { decodeEvent } from './event-codec.js';
import {
  decodeAppend,
  eventKey,
  numberKey,
  positionKey,
  revisionOf,
  type AppendRecord,
  type LogReads,
} from './layout.js';
import { tuning } from '../tuning.js';
import { bounds } from '../../bounds.js';

interface Slice {
  readonly events: readonly StoredEvent[];
  /** Everything up to this position has been scanned. */
  readonly upTo: number;
  readonly atHead: boolean;
}

const pointAt = (position: number): ResumePoint => ({ commit: position, prepare: position });

/** Wakes waiting subscriptions after an append. Counts turns, so that no wake-up is missed; holds no events. */
export function createWakeUp() {
  const turns = new EventEmitter().setMaxListeners(0);
  let current = 0;
  let closed = false;
  return {
    /** The number of the newest turn. Take it before reading, then wait for a later one. */
    turn: () => current,
    notify(): void {
      current += 1;
      turns.emit('turn');
    },
    /** Resolves when a turn after `turn` arrives, the signal aborts, or this is closed. */
    async after(turn: number, signal: AbortSignal): Promise<void> {
      if (current > turn || closed) return;
      await once(turns, 'turn', { signal }).catch(() => undefined);
    },
    closed: () => closed,
    close(): void {
      closed = true;
      turns.emit('turn');
    },
  };
}

export type WakeUp = ReturnType<typeof createWakeUp>;

/** Appends read per scan. */
const appendsAtOnce = 256;

/** The append that contains `after` and later events, if any: a subscription may resume in the middle of an append. */
function appendAround(environment: LogReads, after: number): AppendRecord[] {
  return environment
    .entries('appends', { from: positionKey(0), to: positionKey(after + 1), reverse: true, limit: 1 })
    .map(({ key, value }) => decodeAppend(key, value))
    .filter(({ position, count }) => position + count - 1 > after);
}

function appendsAbove(environment: LogReads, after: number): AppendRecord[] {
  const range = { from: positionKey(after + 1), to: positionKey(Number.MAX_SAFE_INTEGER), limit: appendsAtOnce };
  return environment.entries('appends', range).map(({ key, value }) => decodeAppend(key, value));
}

/** Events of one stream that are also adjacent in the log, so that one scan reads them. */
interface Run {
  readonly stream: number;
  readonly revision: number;
  readonly count: number;
  readonly position: number;
}

function joinRuns(appends: readonly AppendRecord[]): Run[] {
  const runs: Run[] = [];
  for (const append of appends) {
    const last = runs.at(-1);
    // Positions have gaps where appends were trimmed.
    const joins =
      last?.stream === append.stream &&
      last.revision + last.count === append.revision &&
      last.position + last.count === append.position;
    if (joins) runs[runs.length - 1] = { ...last, count: last.count + append.count };
    else runs.push(append);
  }
  return runs;
}

/** Reads slice by slice from a position; keeps runs that it has found but not finished. */
function createReader(
  environment: LogReads,
  { streams, ahead }: Pick<SubscribeOptions, 'streams' | 'ahead'>,
  after: number,
): () => Slice {
  const wanted = new Set(streams);
  const { events: itemEvents, bytes: itemBytes } = ahead ?? { events: bounds.itemEvents, bytes: bounds.itemBytes };
  const { sliceEntries } = tuning;
  /** Stream names by number, which is never reused. */
  const names = new Map<number, string>();
  const nameOf = (stream: number): string => {
    const name = names.get(stream) ?? environment.get('names', numberKey(stream))?.toString('utf8') ?? '';
    names.set(stream, name);
    return name;
  };
  let upTo = after;
  let runs: Run[] = joinRuns(appendAround(environment, after));

  return () => {
    const events: StoredEvent[] = [];
    let bytes = 0;
    let scanned = 0;
    for (;;) {
      const run = runs.shift();
      if (run === undefined) {
        const appends = appendsAbove(environment, upTo);
        scanned += appends.length;
        runs = joinRuns(appends);
        if (runs.length === 0 || scanned > sliceEntries) return { events, upTo, atHead: runs.length === 0 };
        continue;
      }
      const last = run.position + run.count - 1;
      const stream = nameOf(run.stream);
      if (wanted.has(stream)) {
        const entries = environment.texts('events', {
          from: eventKey(run.stream, run.revision + Math.max(0, upTo - run.position + 1)),
          to: eventKey(run.stream, run.revision + run.count),
          limit: itemEvents - events.length,
          maxBytes: itemBytes - bytes,
        });
        for (const { key, text } of entries) {
          bytes += text.length;
          events.push(decodeEvent(text, stream, revisionOf(key)));
        }
        if (events.length >= itemEvents || bytes >= itemBytes) {
          upTo = events.at(-1)?.position ?? last;
          if (upTo < last) runs.unshift(run);
          return { events, upTo, atHead: false };
        }
      }
      upTo = last;
    }
  };
}

export async function* subscribeLog(
  environment: LogReads,
  wakeUp: WakeUp,
  options: SubscribeOptions,
): AsyncGenerator<LogItem, void, void> {
  let position = options.after === 'start' ? 0 : options.after.commit;
  /** The consumer knows that it has everything up to this position. */
  let confirmed = position;
  let catchingUp = true;
  const readSlice = createReader(environment, options, position);
  while (!options.signal.aborted) {
    if (wakeUp.closed()) throw new ServiceError('unavailable', 'The event store is closed.');
    const turn = wakeUp.turn();
    const slice = readSlice();
    position = slice.upTo;
    if (slice.events.length > 0) {
      confirmed = slice.events.at(-1)?.position ?? confirmed;
      yield { kind: 'events', events: slice.events };
    }
    const foreign = position - confirmed;
    if (foreign >= tuning.sliceEntries || (slice.atHead && catchingUp && foreign > 0)) {
      confirmed = position;
      yield { kind: 'checkpoint', point: pointAt(position) };
    }
    if (!slice.atHead) {
      catchingUp = true;
      await yieldToEventLoop();
      continue;
    }
    if (catchingUp) {
      catchingUp = false;
      yield { kind: 'caught_up' };
    }
    await wakeUp.after(turn, options.signal);
  }
}
