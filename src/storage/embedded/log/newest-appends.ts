/**
 * The newest appends as they were handed in, for subscriptions at the end of the log: what this process has just written, it
 * need not read and decode again, once for each of them. Holds only what is durable, and no more than a bounded part of it;
 * whatever is not here is read from the disk.
 */
import type { ProposedEvent, RecordedEvent } from '../../../kernel/event.js';
import { tuning } from '../tuning.js';

export interface NewestAppends {
  /** Adds an append that is durable. @param bytes of its events together */
  add(place: AppendPlace, events: readonly ProposedEvent[], bytes: number): void;
  /** Forgets all: some may have been removed from the log. */
  clear(): void;
  /** The append whose first event has the position; undefined when it is not held. */
  at(position: number): HeldAppend | undefined;
}

interface AppendPlace {
  readonly stream: string;
  /** Of the last event. */
  readonly revision: number;
  readonly position: number;
}

export interface HeldAppend {
  readonly stream: string;
  readonly events: readonly RecordedEvent[];
  readonly bytes: number;
}

export function createNewestAppends(): NewestAppends {
  /** By the position of the first event, oldest first. */
  const held = new Map<number, HeldAppend>();
  let bytes = 0;

  function dropOldest(): void {
    for (const [position, oldest] of held) {
      held.delete(position);
      bytes -= oldest.bytes;
      return;
    }
  }

  return {
    add({ stream, revision, position }, events, size) {
      if (size > tuning.newestBytes || events.length > tuning.newestEvents || !events.every(isAsStored)) return;
      const [firstRevision, firstPosition] = [revision - events.length + 1, position - events.length + 1];
      const recorded = events.map(({ id, type, data, metadata }, index): RecordedEvent => {
        return { id, type, data, metadata, stream, revision: firstRevision + index, position: firstPosition + index };
      });
      held.set(firstPosition, { stream, events: recorded, bytes: size });
      bytes += size;
      while (bytes > tuning.newestBytes || held.size > tuning.newestAppends) dropOldest();
    },
    clear() {
      held.clear();
      bytes = 0;
    },
    at: (position) => held.get(position),
  };
}

/** Whether an event is the same after it was written as JSON and read. */
const isAsStored = ({ data, metadata }: ProposedEvent): boolean => isPlain(data) && isPlain(metadata);

function isPlain(value: unknown): boolean {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return true;
    case 'number':
      return Number.isFinite(value) && !Object.is(value, -0);
    case 'object':
      return value === null || (Array.isArray(value) ? value.every(isPlain) : isPlainObject(value));
    default:
      return false;
  }
}

function isPlainObject(value: object): boolean {
  if (Object.getPrototypeOf(value) !== Object.prototype) return false;
  for (const key of Object.keys(value)) if (!isPlain(Reflect.get(value, key))) return false;
  return true;
}
