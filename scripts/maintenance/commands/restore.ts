/** `gateway-control maintenance restore FILE`: imports an archive and proves what was imported. See `docs/how-to/restore.md`. */
import { CommandError, exitCodes, parseArguments, say, UsageError, type ExitCode } from '../command-line.js';
import { expectedHeads } from '../proof.js';
import { importArchive } from './log-import.js';
import { contains, verifyInstalled } from './log-verify.js';

export const usage = `Usage: gateway-control maintenance restore FILE [--contains HEAD]…

Imports FILE, a backup of the service or an archive of log:export, into the empty installation that the environment names
(SVC_DATA_DIR, SVC_EVENTSTORE_URL, SVC_MONGODB_URL), with the master key of the time of the backup (SVC_MASTER_KEY,
SVC_MASTER_KEY_FILE or the data folder's master.key). First the file is verified and its log chains are proven; then the log
that was imported is read again, proven, and compared with the file. An interrupted restore continues when it is repeated.
HEAD: the head of a log chain, as log:verify has printed it before. A file that does not contain it is refused: it is older,
or was altered.`;

export async function run(argv: readonly string[], signal: AbortSignal): Promise<ExitCode> {
  const { positional, values } = parseArguments(argv, [], 1, [contains]);
  const [path] = positional;
  if (path === undefined) throw new UsageError('The backup to restore is missing');
  const expected = expectedHeads(values(contains), []);
  const imported = await importArchive(path, expected, signal);
  if (imported === undefined) return exitCodes.interrupted;
  const exitCode = await verifyInstalled(expected, signal, imported.digest);
  if (exitCode === exitCodes.interrupted) {
    say('Interrupted: run the same command again to prove what was imported.');
    return exitCode;
  }
  if (exitCode !== exitCodes.done) throw new CommandError('Do not start a service on these stores.');
  say('Start the service with the same master key. It fills its read models before it is ready.');
  return exitCode;
}
