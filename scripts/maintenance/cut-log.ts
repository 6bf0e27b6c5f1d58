/**
 * A log without its end: up to an event of one chained stream, for a stream that somebody else has written to. The
 * other chained streams are cut before the first event that names a head after the cut, so that the rest can be proven.
 */
import { headsNamedBy, type LogHead } from '../../src/domain/log-chain/heads.js';
import { chainedStreams, isForeign, type StoredEvent } from '../../src/kernel/event.js';
import { wholeStream, type LogReader } from '../../src/storage/event-store.js';
import { CommandError, UsageError } from './command-line.js';

export interface Place {
  readonly stream: string;
  readonly revision: number;
}

/** @throws UsageError unless it is `STREAM@REVISION` of a chained stream */
export function parsePlace(text: string): Place {
  const [, stream, revision] = /^([a-z-]+)@(\d{1,15})$/.exec(text) ?? [];
  if (stream !== undefined && chainedStreams.includes(stream)) return { stream, revision: Number(revision) };
  throw new UsageError(`"${text}" is not a place: expected STREAM@REVISION, with one of ${chainedStreams.join(', ')}`);
}

/**
 * The log up to a place.
 * @returns the log, and the last revision of each stream that is cut
 * @throws CommandError when no command ends at the place; ServiceError `unavailable`
 */
export async function cutLog(
  log: LogReader,
  place: Place,
): Promise<{ readonly log: LogReader; readonly cuts: ReadonlyMap<string, number> }> {
  const naming: (Place & { readonly heads: readonly LogHead[] })[] = [];
  for (const stream of chainedStreams) {
    let last: StoredEvent | undefined;
    for await (const event of wholeStream(log, stream)) {
      if (stream === place.stream && event.revision > place.revision) break;
      const heads = isForeign(event) ? undefined : headsNamedBy(event);
      if (heads !== undefined) naming.push({ stream, revision: event.revision, heads });
      last = event;
    }
    if (stream !== place.stream) continue;
    const own = last?.revision === place.revision && !isForeign(last) ? last.metadata.command : undefined;
    if (own === undefined || own.index + 1 !== own.count) {
      throw new CommandError(`No command ends at ${stream}@${place.revision}: name the last event of a command.`);
    }
  }
  const cuts = cutsFor(place, naming);
  const keeps = ({ stream, revision }: StoredEvent): boolean => revision <= (cuts.get(stream) ?? Infinity);
  return {
    cuts,
    log: {
      ...log,
      async *read(stream, options) {
        for await (const event of log.read(stream, options)) if (keeps(event)) yield event;
      },
      async *subscribe(options) {
        for await (const item of log.subscribe(options)) {
          yield item.kind === 'events' ? { ...item, events: item.events.filter(keeps) } : item;
        }
      },
    },
  };
}

/** Cuts until no stream names a head after a cut. */
function cutsFor(
  place: Place,
  naming: readonly (Place & { readonly heads: readonly LogHead[] })[],
): ReadonlyMap<string, number> {
  const cuts = new Map([[place.stream, place.revision]]);
  const isBehind = ({ stream, revision }: Place): boolean => revision > (cuts.get(stream) ?? Infinity);
  for (;;) {
    const next = naming.find((event) => !isBehind(event) && event.heads.some(isBehind));
    if (next === undefined) return cuts;
    cuts.set(next.stream, next.revision - 1);
  }
}
