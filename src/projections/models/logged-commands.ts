/** Reads commands of the log at given places, nearby ones together. */
import { readCommand } from '../../domain/log/upcast.js';
import { isForeign, type RecordedCommand, type RecordedEvent } from '../../kernel/event.js';
import type { EventStore } from '../../storage/event-store.js';
import { tuning } from '../tuning.js';

export interface CommandPlace {
  readonly stream: string;
  /** The revision of the command's first event. */
  readonly revision: number;
  readonly count: number;
}

interface Range {
  readonly stream: string;
  readonly from: number;
  to: number;
}

/** Ranges that cover all places; nearby places of a stream share a range. */
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
 * The commands at the places, in the same order and current shapes; undefined for one that the log no longer has completely.
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
        if (wanted.has(key) && !isForeign(event)) events.set(key, event);
      }
    }
  };
  await Promise.all(Array.from({ length: tuning.auditReads }, readNext));
  return places.map(({ stream, revision, count }) => {
    const parts = Array.from({ length: count }, (_, index) => events.get(keyOf(stream, revision + index)));
    const [first, ...rest] = parts.filter((event) => event !== undefined);
    return first === undefined || rest.length + 1 < count
      ? undefined
      : readCommand({ stream, events: [first, ...rest] });
  });
}
