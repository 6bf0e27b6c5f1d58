/** Prints the content of a log or an archive, and its problems. */
import type { LogSummary } from '../../src/storage/log-archive/log-check.js';
import { say } from './command-line.js';

const number = (value: number): string => value.toLocaleString('en-US');

/** Prints one line per stream, and the digest for comparing two copies of a log. */
export function printLog(log: LogSummary): void {
  for (const { stream, events, first, last } of log.streams) {
    say(`  ${stream.padEnd(16)} ${number(events).padStart(12)} events, revisions ${first} to ${last}`);
  }
  say(`  ${number(log.events)} events in ${number(log.commands)} commands`);
  say(`  content sha256 ${log.contentSha256}`);
}

/** Prints problems. @returns true if there are any */
export function printProblems(problems: readonly string[], count: number): boolean {
  for (const problem of problems) say(`PROBLEM: ${problem}`);
  if (count > problems.length) say(`… and ${number(count - problems.length)} more`);
  return count > 0;
}
