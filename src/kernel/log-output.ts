/**
 * Where lines of a log go: standard output. Where that is the journal of systemd, each line begins with `<n>`, its
 * priority, which journald takes off again; so `journalctl -p warning` works. `docs/reference/log.md`.
 */
import { fstatSync } from 'node:fs';
import { pino, type DestinationStream } from 'pino';

/** sd-daemon(3), by pino's number of the level. */
const priorityOf = (level: number): number =>
  level >= 60 ? 2 : level >= 50 ? 3 : level >= 40 ? 4 : level >= 30 ? 6 : 7;

/** Standard output. @param environment where systemd names the journal that it has connected */
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

/** systemd.exec(5): a shell may have sent standard output elsewhere since, so the file is compared. */
function isJournal(named: string | undefined): boolean {
  if (named === undefined) return false;
  const { dev, ino } = fstatSync(1, { bigint: true });
  return named === `${dev}:${ino}`;
}
