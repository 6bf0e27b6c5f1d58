/**
 * Writes log lines to standard output. If that is the systemd journal, each line begins with its priority, `<n>`, which
 * journald strips, so `journalctl -p warning` works. See `docs/reference/log.md`.
 */
import { fstatSync } from 'node:fs';
import { pino, type DestinationStream } from 'pino';

/** The priority (sd-daemon(3)) of one of pino's levels. */
const priorityOf = (level: number): number =>
  level >= 60 ? 2 : level >= 50 ? 3 : level >= 40 ? 4 : level >= 30 ? 6 : 7;

/** Standard output. @param environment in which systemd names the journal that it has connected */
export function logOutput(environment: NodeJS.ProcessEnv): DestinationStream {
  const output = pino.destination(1);
  if (!isJournal(environment['JOURNAL_STREAM'])) return output;
  const lines = {
    // Makes pino set `lastLevel` before each line.
    [pino.symbols.needsMetadataGsym]: true,
    lastLevel: pino.levels.values['info'] ?? 0,
    write(line: string): void {
      output.write(`<${priorityOf(lines.lastLevel)}>${line}`);
    },
  };
  return lines;
}

/** Compares the file (systemd.exec(5)), because a shell may have redirected standard output since. */
function isJournal(named: string | undefined): boolean {
  if (named === undefined) return false;
  const { dev, ino } = fstatSync(1, { bigint: true });
  return named === `${dev}:${ino}`;
}
