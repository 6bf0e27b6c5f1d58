/**
 * How servers after 24.2 catch up in a filtered subscription to the whole log, and which checkpoints they send. Only what
 * differs from `subscriptions.ts`, which is 23.10. Known from the release notes and the public source, not from a
 * transcript:
 * - pages begin with the start position itself, and end after `window` events or 32 matching ones;
 * - a checkpoint is sent whenever catching up ends, unless it is the last one again;
 * - 24.10: before the first match it is "no position", which the wire shows as 2^64-1 in both halves;
 * - 25.0: an empty page at the end, after a full one, moves it to the end of the log with a half of 0, and the next event
 *   is written there.
 */
import type { LaterServer } from './faults.js';
import type { AllFilter } from './read-options.js';
import { indexAt, type EventLog, type LogEvent } from './log.js';
import type { Plain } from './wire.js';

/** A place in the log; an event at X is at (X, X). */
interface Place {
  readonly commit: number;
  readonly prepare: number;
}

const pageMatches = 32;
const nowhere: Place = { commit: -1, prepare: -1 };
const isAfter = (a: Place, b: Place): boolean =>
  a.commit > b.commit || (a.commit === b.commit && a.prepare > b.prepare);

/** "No position" is -1, written as an unsigned number. */
const unsigned = (value: number): string => BigInt.asUintN(64, BigInt(value)).toString();

export interface LaterCatchUp {
  readonly log: EventLog;
  readonly filter: AllFilter;
  readonly from: Place | 'start';
  readonly server: LaterServer;
  message(event: LogEvent): Plain;
}

/** The messages up to the end of the log. */
export function* laterCatchUp({ log, filter, from, server, message }: LaterCatchUp): Generator<Plain> {
  let reached = from === 'start' ? nowhere : from;
  let index = from === 'start' ? 0 : indexAt(log.all, from.commit);
  let sent: Place | undefined;
  let considered = 0;
  for (;;) {
    const begin: Place = { commit: log.all[index]?.position ?? log.end(), prepare: 0 };
    let scanned = 0;
    let matched = 0;
    for (; scanned < filter.window && matched < pageMatches; scanned += 1, index += 1) {
      const event = log.all[index];
      if (event === undefined) break;
      if (!filter.matches(event)) continue;
      matched += 1;
      const place = { commit: event.position, prepare: event.position };
      if (!isAfter(place, reached)) continue;
      yield message(event);
      reached = place;
    }
    const atEnd = scanned < filter.window && matched < pageMatches;
    considered += scanned;
    const due = considered >= filter.window * filter.interval;
    if (server === '25.0' ? isAfter(begin, reached) : due && isAfter(begin, reached)) reached = begin;
    if (due) considered = 0;
    if ((due || atEnd) && (sent === undefined || isAfter(reached, sent))) {
      sent = reached;
      const { commit, prepare } = reached;
      yield { checkpoint: { commitPosition: unsigned(commit), preparePosition: unsigned(prepare) } };
    }
    if (atEnd && index >= log.all.length) return;
  }
}
