/**
 * Reads commands back from the log by their place in it, many with few reads: neighbours are read together.
 * Used by the audit; not a subscription.
 */
import { readCommand } from '../../domain/log/upcast.js';
import type { RecordedCommand, RecordedEvent } from '../../kernel/event.js';
import type { EventStore } from '../../storage/event-store.js';
import { tuning } from '../tuning.js';

export interface CommandPlace {
  readonly stream: string;
  /** Of the command's first event. */
  readonly revision: number;
  readonly count: number;
}

interface Range {
  readonly stream: string;
  readonly from: number;
  to: number;
}

/** Few ranges that hold all the places: those of one stream that lie near each other become one. */
function rangesOf(places: readonly CommandPlace[]): readonly Range[] {
  const sorted = [...places].sort((a, b) =>
    a.stream < b.stream ? -1 : a.stream > b.stream ? 1 : a.revision - b.revision,
  );
  const ranges: Range[] = [];
  for (const { stream, revision, count } of sorted) {
    const last = ranges.at(-1);
    const near = last?.stream === stream && revision - last.to <= tuning.auditReadGap;
    if (last === undefined || !near) ranges.push({ stream, from: revision, to: revision + count });
    else last.to = Math.max(last.to, revision + count);
  }
  return ranges;
}

const keyOf = (stream: string, revision: number): string => `${stream}@${revision}`;

/**
 * The commands at the places, in their order and in today's shapes; undefined where the log no longer holds all of one.
 * @throws ServiceError `unavailable`
 */
export async function readCommands(
  store: EventStore,
  places: readonly CommandPlace[],
): Promise<readonly (RecordedCommand | undefined)[]> {
  const wanted = new Set(
    places.flatMap(({ stream, revision, count }) =>
      Array.from({ length: count }, (_, index) => keyOf(stream, revision + index)),
    ),
  );
  const events = new Map<string, RecordedEvent>();
  const ranges = [...rangesOf(places)];
  const readNext = async (): Promise<void> => {
    for (let range = ranges.pop(); range !== undefined; range = ranges.pop()) {
      const options = { direction: 'forward', from: range.from, maxCount: range.to - range.from } as const;
      for await (const event of store.read(range.stream, options)) {
        if (event.revision >= range.to) break;
        const key = keyOf(event.stream, event.revision);
        if (wanted.has(key)) events.set(key, event);
      }
    }
  };
  await Promise.all(Array.from({ length: tuning.auditReads }, readNext));
  return places.map(({ stream, revision, count }) => {
    const own = Array.from({ length: count }, (_, index) => events.get(keyOf(stream, revision + index)));
    const [first, ...rest] = own.filter((event) => event !== undefined);
    return first === undefined || rest.length + 1 < count
      ? undefined
      : readCommand({ stream, events: [first, ...rest] });
  });
}
