/**
 * Checks a log event by event, from an archive or a store, and reports missing revisions, positions that do not grow,
 * incomplete commands and events that this release does not know. Computes a digest of the events that does not depend
 * on the store, so that two copies can be compared.
 */
import { createHash } from 'node:crypto';
import type { RecordedEvent } from '../../kernel/event.js';
import { canonicalJson } from '../../kernel/json.js';
import { bounds } from '../bounds.js';
import { archiveBounds } from './format.js';

export interface LogCheckOptions {
  /** True for streams whose old events expire; only these may lack revisions. */
  readonly expires: (stream: string) => boolean;
  /** Why this release cannot read the event; undefined when it can. */
  readonly unreadable: (event: RecordedEvent) => string | undefined;
}

export interface StreamSummary {
  readonly stream: string;
  readonly events: number;
  readonly first: number;
  readonly last: number;
}

export interface LogSummary {
  readonly events: number;
  readonly commands: number;
  readonly lastPosition: number;
  readonly contentSha256: string;
  /** By name. */
  readonly streams: readonly StreamSummary[];
}

export interface LogCheck {
  /** Takes the next event in log order. @returns its index among the existing events of its stream, from 0 */
  add(event: RecordedEvent): number;
  /** Ends the log: a command that is still incomplete is a problem. */
  end(): void;
  /** The first problems; `problemCount` counts all. */
  readonly problems: readonly string[];
  readonly problemCount: number;
  summary(): LogSummary;
}

interface Tally {
  events: number;
  readonly first: number;
  last: number;
}

export function createLogCheck(options: LogCheckOptions): LogCheck {
  const streams = new Map<string, Tally>();
  const problems: string[] = [];
  const digest = createHash('sha256');
  let problemCount = 0;
  let events = 0;
  let commands = 0;
  let lastPosition = 0;
  /** The last event of a command that is still incomplete. */
  let open: RecordedEvent | undefined;

  const report = (problem: string): void => {
    problemCount += 1;
    if (problems.length < archiveBounds.problems) problems.push(problem);
  };

  const incomplete = (event: RecordedEvent): string => {
    const { id, index, count } = event.metadata.command;
    return `the command ${id} in ${event.stream} has ${index + 1} of ${count} events, up to revision ${event.revision}`;
  };

  function checkCommand(event: RecordedEvent, place: string): void {
    const { id, index, count } = event.metadata.command;
    if (open !== undefined) {
      const before = open.metadata.command;
      const goesOn = open.stream === event.stream && before.id === id && before.count === count;
      if (goesOn && index === before.index + 1) {
        open = index + 1 < count ? event : undefined;
        if (open === undefined) commands += 1;
        return;
      }
      report(`${incomplete(open)}, followed by ${place}`);
      open = undefined;
    }
    if (index !== 0 || count < 1 || count > bounds.commandEvents) {
      report(`the command ${id} starts at ${place} with its event ${index + 1} of ${count}`);
    } else if (count > 1) open = event;
    else commands += 1;
  }

  function checkRevision(event: RecordedEvent, tally: Tally | undefined, place: string): void {
    const expected = tally === undefined ? 0 : tally.last + 1;
    if (event.revision === expected) return;
    if (event.revision < expected) report(`${place} is repeated or out of order: revision ${expected} was expected`);
    else if (!options.expires(event.stream)) {
      report(`${event.stream} lacks its revisions ${expected} to ${event.revision - 1}`);
    }
  }

  return {
    problems,
    get problemCount() {
      return problemCount;
    },
    add(event) {
      const { stream, revision, position, id, type, data, metadata } = event;
      const place = `${stream}@${revision}`;
      const tally = streams.get(stream);
      if (position <= lastPosition) report(`the position ${position} of ${place} is not above ${lastPosition}`);
      lastPosition = Math.max(position, lastPosition);
      checkRevision(event, tally, place);
      checkCommand(event, place);
      const reason = options.unreadable(event);
      if (reason !== undefined) report(reason);
      const ordinal = tally?.events ?? 0;
      digest.update(`${canonicalJson([stream, ordinal, id, type, data, metadata])}\n`);
      events += 1;
      if (tally === undefined) streams.set(stream, { events: 1, first: revision, last: revision });
      else {
        tally.events += 1;
        tally.last = Math.max(tally.last, revision);
      }
      return ordinal;
    },
    end() {
      if (open !== undefined) report(`${incomplete(open)}, where the log ends`);
      open = undefined;
    },
    summary: () => ({
      events,
      commands,
      lastPosition,
      contentSha256: digest.copy().digest('hex'),
      streams: [...streams]
        .map(([stream, tally]) => ({ stream, ...tally }))
        .sort((a, b) => (a.stream < b.stream ? -1 : 1)),
    }),
  };
}
