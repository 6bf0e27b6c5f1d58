/** Makes steps of the feed from commands, with the names of that time. Implements `docs/contract/automation.md#event-feed`. */
import { readCommand } from '../domain/log/upcast.js';
import { lastEvent, type RecordedCommand, type RecordedEvent } from '../kernel/event.js';
import { placeWith, type Cursors } from './cursor.js';
import { outlinesOf, type Outline } from './items.js';
import type { Names } from './names.js';
import type { FeedItem, FeedSubject } from './port.js';
import type { Step } from './window.js';

export interface Wanted {
  /** Selects the items to make; other commands become steps without an item. */
  readonly select?: ((about: FeedSubject) => boolean) | undefined;
  /** The steps end before the next item. */
  readonly maxItems?: number;
}

/** @throws ServiceError `unavailable`, UnknownEventError */
export async function stepsOf(
  commands: readonly RecordedCommand[],
  { cursors, names }: { readonly cursors: Cursors; readonly names: Names },
  { select = () => true, maxItems = Number.POSITIVE_INFINITY }: Wanted = {},
): Promise<readonly Step[]> {
  const read: RecordedCommand[] = [];
  const outlined: { readonly last: RecordedEvent; readonly left: number; readonly outline: Outline | null }[] = [];
  let items = 0;
  for (const recorded of commands) {
    const command = readCommand(recorded);
    const outlines = outlinesOf(command);
    const [last, count] = [lastEvent(command), Math.max(1, outlines.length)];
    read.push(command);
    for (let left = count - 1; left >= 0 && items <= maxItems; left -= 1) {
      const outline = outlines[count - 1 - left];
      const wanted = outline !== undefined && select(outline.about);
      if (wanted && (items += 1) > maxItems) break;
      outlined.push({ last, left, outline: wanted ? outline : null });
    }
    if (items > maxItems) break;
  }
  const lookups = outlined.flatMap(({ outline }) => outline?.names ?? []);
  const nameOf = await names.of(lookups, read);
  return outlined.map(({ last, left, outline }) => {
    const place = { position: placeWith(last.position, left), cursor: cursors.of(last, left) };
    const events = left === 0 ? last.metadata.command.count : 0;
    if (outline === null) return { place, item: null, events };
    const { at, about, final } = outline;
    const { type, data } = outline.content(nameOf);
    const item: FeedItem = { type, ...place, at, about, final, json: JSON.stringify(data) };
    return { place, item, events };
  });
}
