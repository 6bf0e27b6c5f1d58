/** Makes steps of the feed from commands, with the names of that time. Implements `docs/contract/automation.md#event-feed`. */
import { readCommand } from '../domain/log/upcast.js';
import { lastEvent, type RecordedCommand, type RecordedEvent } from '../kernel/event.js';
import type { Cursors } from './cursor.js';
import { outlineOf, type Outline } from './items.js';
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
  const outlined: { readonly last: RecordedEvent; readonly outline: Outline | null }[] = [];
  let items = 0;
  for (const recorded of commands) {
    const command = readCommand(recorded);
    const outline = outlineOf(command);
    const wanted = outline !== null && select(outline.about);
    if (wanted && (items += 1) > maxItems) break;
    read.push(command);
    outlined.push({ last: lastEvent(command), outline: wanted ? outline : null });
  }
  const lookups = outlined.flatMap(({ outline }) => outline?.names ?? []);
  const nameOf = await names.of(lookups, read);
  return outlined.map(({ last, outline }) => {
    const place = { position: last.position, cursor: cursors.of(last) };
    const events = last.metadata.command.count;
    if (outline === null) return { place, item: null, events };
    const { at, about, final } = outline;
    const { type, data } = outline.content(nameOf);
    const item: FeedItem = { type, ...place, at, about, final, json: JSON.stringify(data) };
    return { place, item, events };
  });
}
