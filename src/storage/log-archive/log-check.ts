/**
 * Checks a log event by event, from an archive or a store, and reports missing revisions, positions that do not grow,
 * incomplete commands and events that this release does not know. Computes a digest of the events that does not depend
 * on the store, so that two copies can be compared.
 */
import { createHash } from 'node:crypto';
import type { RecordedEvent } from '../../kernel/event.js';
import { canonicalJson } from '../../kernel/json.js';
import { BrokenLogError } from '../broken-log.js';
import { createCommandAssembler } from '../follow.js';
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
  const assembler = createCommandAssembler();

  const report = (problem: string): void => {
    problemCount += 1;
    if (problems.length < archiveBounds.problems) problems.push(problem);
  };

  function checkCommand(event: RecordedEvent): void {
    try {
      commands += assembler.add([event]).length;
    } catch (error) {
      if (!(error instanceof BrokenLogError)) throw error;
      report(error.message);
      assembler.reset();
      // The event may begin the next command.
      if (event.metadata.command.index === 0) commands += assembler.add([event]).length;
    }
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
      checkCommand(event);
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
      if (assembler.pending()) report('the log ends in the middle of a command');
      assembler.reset();
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
