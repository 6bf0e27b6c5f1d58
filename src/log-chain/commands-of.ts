/**
 * The commands of a stream as they stand in a log that may have been tampered with: events next to each other with the same
 * command id, whole or not. Unlike `src/storage/follow.ts`, it gives up on nothing.
 */
import type { RecordedCommand, RecordedEvent } from '../kernel/event.js';

export interface StoredCommand extends RecordedCommand {
  /** Its events are all there, each once and in order. */
  readonly whole: boolean;
}

/** @param events of one stream, in order */
export async function* commandsOf(events: AsyncIterable<RecordedEvent>): AsyncGenerator<StoredCommand, void, void> {
  let open: RecordedEvent[] = [];
  for await (const event of events) {
    const [first] = open;
    if (first !== undefined && !follows(open, event)) {
      yield commandOf(first, open);
      open = [];
    }
    open.push(event);
    const { count } = placeOf(event);
    if (open.length !== count) continue;
    yield commandOf(open[0] ?? event, open);
    open = [];
  }
  const [first] = open;
  if (first !== undefined) yield commandOf(first, open);
}

interface Place {
  readonly id: unknown;
  readonly index: unknown;
  readonly count: unknown;
}

/** What an event says of its place in its command. Its metadata may have any shape. */
function placeOf(event: RecordedEvent): Place {
  const metadata: Partial<RecordedEvent['metadata']> | null = event.metadata;
  const command: Partial<Place> | null | undefined = metadata?.command;
  return { id: command?.id, index: command?.index, count: command?.count };
}

function follows(open: readonly RecordedEvent[], event: RecordedEvent): boolean {
  const last = open.at(-1);
  return last !== undefined && placeOf(last).id === placeOf(event).id && last.revision + 1 === event.revision;
}

function commandOf(first: RecordedEvent, events: readonly RecordedEvent[]): StoredCommand {
  const { id } = placeOf(first);
  const whole = events.every((event, at) => {
    const { index, count, id: own } = placeOf(event);
    return typeof own === 'string' && own === id && index === at && count === events.length;
  });
  return { stream: first.stream, events: [first, ...events.slice(1)], whole };
}
