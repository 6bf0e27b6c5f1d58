/** Verifies an archive or the log of a store: reads it to its end and reports what is wrong. Changes nothing. */
import { stat } from 'node:fs/promises';
import type { LogReader } from '../event-store.js';
import { BrokenLogError } from '../broken-log.js';
import { readWholeLog } from '../follow.js';
import { ArchiveDamagedError, type ArchiveHeader, type ArchiveTotals } from './format.js';
import { createLogCheck, type LogCheck, type LogCheckOptions, type LogSummary } from './log-check.js';
import { readArchive } from './read-archive.js';

export interface VerifyReport {
  readonly log: LogSummary;
  /** The first problems; `problemCount` counts all. */
  readonly problems: readonly string[];
  readonly problemCount: number;
  /** True when the file, or the log, could not be read to its end. */
  readonly damaged: boolean;
  /** Only for an archive. */
  readonly header?: ArchiveHeader | undefined;
}

export interface VerifyOptions {
  readonly check: LogCheckOptions;
  readonly signal: AbortSignal;
}

/** @throws the file system's error when the file cannot be read; problems of its content are in the report */
export async function verifyArchive(
  path: string,
  options: VerifyOptions & {
    /** @param bytes read so far, of `total` */
    onProgress(bytes: number, total: number, events: number): void;
  },
): Promise<VerifyReport> {
  const { size } = await stat(path);
  const log = createLogCheck(options.check);
  const problems: string[] = [];
  let header: ArchiveHeader | undefined;
  let totals: ArchiveTotals | undefined;
  let events = 0;
  try {
    for await (const part of readArchive(path)) {
      if (options.signal.aborted) break;
      if (part.kind === 'end') totals = part.totals;
      else {
        for (const item of part.items) {
          if (item.kind === 'header') header = item;
          if (item.kind !== 'event') continue;
          log.add(item.event);
          events += 1;
        }
      }
      options.onProgress(part.bytes, size, events);
    }
    log.end();
  } catch (error) {
    if (!(error instanceof ArchiveDamagedError)) throw error;
    problems.push(error.message);
  }
  const summary = log.summary();
  if (totals !== undefined && !adds(totals, summary)) {
    problems.push('the totals in the last line do not match the lines before it');
  }
  return { ...reportOf(log, problems), damaged: problems.length > 0, header };
}

/** @param others problems that the check of the events does not find */
const reportOf = (log: LogCheck, others: readonly string[]): Omit<VerifyReport, 'header' | 'damaged'> => ({
  log: log.summary(),
  problems: [...others, ...log.problems],
  problemCount: others.length + log.problemCount,
});

const adds = (totals: ArchiveTotals, log: LogSummary): boolean =>
  totals.events === log.events &&
  totals.commands === log.commands &&
  totals.last_position === log.lastPosition &&
  totals.content_sha256 === log.contentSha256;

/** Verifies the log of a store as far as a subscription delivers it. @throws ServiceError `unavailable` */
export async function verifyLog(
  eventStore: LogReader,
  options: VerifyOptions & {
    readonly streams: readonly string[];
    onProgress(position: number, head: number, events: number): void;
  },
): Promise<VerifyReport> {
  const log = createLogCheck(options.check);
  const problems: string[] = [];
  const head = await eventStore.headPosition();
  let events = 0;
  try {
    for await (const commands of readWholeLog(eventStore, { ...options, after: 'start' })) {
      for (const event of commands.flatMap((command) => command.events)) log.add(event);
      events += commands.reduce((sum, command) => sum + command.events.length, 0);
      options.onProgress(commands.at(-1)?.events.at(-1)?.position ?? 0, head, events);
    }
    log.end();
  } catch (error) {
    if (!(error instanceof BrokenLogError)) throw error;
    problems.push(`${error.message}; the log after it was not checked`);
  }
  return { ...reportOf(log, problems), damaged: problems.length > 0 };
}
