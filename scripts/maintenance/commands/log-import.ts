/** `npm run log:import -- FILE`: imports an archive into an empty installation. See `docs/how-to/move.md`. */
import { archiveScope, logCheck } from '../../../src/backups/archive-scope.js';
import { readConfig } from '../../../src/app/config/config.js';
import type { ExpectedHead } from '../../../src/security/log-chain/prove.js';
import { importLog } from '../../../src/storage/log-archive/import-log.js';
import { verifyArchive } from '../../../src/storage/log-archive/verify-log.js';
import {
  CommandError,
  exitCodes,
  isReadable,
  parseArguments,
  say,
  UsageError,
  whileOpen,
  type ExitCode,
} from '../command-line.js';
import { importedProjections, openInstallation } from '../installation.js';
import { masterKeyOf } from '../keyring.js';
import { printProblems } from '../log-report.js';
import { createProgressBar } from '../progress-bar.js';
import { proveLog, sourceOfArchive } from '../proof.js';

export const usage = `Usage: gateway-control maintenance log:import FILE

Verifies FILE, an archive of log:export, and writes it into the installation that the environment names
(SVC_DATA_DIR, SVC_EVENTSTORE_URL, SVC_MONGODB_URL), which must be empty. The log chain is proven first, with the master
key of the exported installation (SVC_MASTER_KEY, SVC_MASTER_KEY_FILE or the data folder's master.key); a file that is not
proven is refused. An interrupted import continues when it is repeated.`;

export async function run(argv: readonly string[], signal: AbortSignal): Promise<ExitCode> {
  const [path] = parseArguments(argv, [], 1).positional;
  if (path === undefined) throw new UsageError('The archive to import is missing');
  const imported = await importArchive(path, [], signal);
  if (imported === undefined) return exitCodes.interrupted;
  say('Start the service with the same master key: the keyring is wrapped by it.');
  return exitCodes.done;
}

/**
 * Verifies and proves an archive and imports it.
 * @param expected heads that its log must contain
 * @returns the digest of what was imported, if anything was; undefined when the signal ended it
 * @throws CommandError for an archive that cannot be imported
 */
export async function importArchive(
  path: string,
  expected: readonly ExpectedHead[],
  signal: AbortSignal,
): Promise<{ readonly digest: string | undefined } | undefined> {
  if (!(await isReadable(path))) throw new CommandError(`${path} cannot be read.`);
  const verifying = createProgressBar('verifying', 'events');
  const verified = await verifyArchive(path, {
    check: logCheck,
    signal,
    onProgress: (bytes, total, events) => verifying.update(bytes / total, events),
  });
  verifying.finish();
  if (signal.aborted) return undefined;
  if (printProblems(verified.problems, verified.problemCount)) {
    throw new CommandError(`${path} is not imported: the file, or the log it was exported from, is damaged.`);
  }
  await prove(path, expected, signal);
  if (signal.aborted) return undefined;
  return whileOpen(openInstallation({ signal, mayBeNew: true, mayBeHalf: true }), async (installation) => {
    const { eventStore, readStore, name } = installation;
    const total = verified.log.events;
    const bar = createProgressBar('importing', 'events');
    const report = await importLog({
      path,
      eventStore,
      readStore,
      streams: archiveScope.streams,
      projections: importedProjections,
      signal,
      onProgress: (_bytes, events) => bar.update(total === 0 ? 1 : events / total, events),
    });
    bar.finish();
    if (report === undefined) {
      say(
        'Interrupted: run the same command again to continue. Do not start a service on these stores until it is done.',
      );
      return undefined;
    }
    if (!report.written) {
      say(`This archive has already been imported into ${name}: nothing was done.`);
      return { digest: undefined };
    }
    say(`Imported ${report.events} events into ${name}.`);
    if (report.skipped > 0) say(`${report.skipped} of the events are from an interrupted run.`);
    for (const { stream, first } of report.renumbered) {
      say(`${stream}: its first ${first} events have expired; the remaining ones are numbered from revision 0.`);
    }
    return { digest: verified.log.contentSha256 };
  });
}

/** @throws CommandError for an archive that has no log chain, was tampered with, or belongs to another master key */
async function prove(path: string, expected: readonly ExpectedHead[], signal: AbortSignal): Promise<void> {
  const { masterKey } = await masterKeyOf({ config: readConfig(process.env) });
  const proof = await proveLog(sourceOfArchive(path), masterKey, expected, signal);
  // The proof of a part says nothing about the rest.
  if (proof.kind === 'proven' || signal.aborted) return;
  if (proof.kind === 'no_chain') throw new CommandError(`${path} is not imported: it has no log chain.`);
  printProblems(proof.problems, proof.problems.length);
  const lacks = expected.length === 0 ? '' : ', or lacks an expected head';
  throw new CommandError(`${path} is not imported: its log chain is broken${lacks}.`);
}
