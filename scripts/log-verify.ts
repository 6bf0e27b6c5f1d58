/** `npm run log:verify [-- FILE]`: verifies an archive or the installation's log. See `docs/operations.md#maintenance-commands`. */
import { streams } from '../src/kernel/event.js';
import type { VerifyReport } from '../src/storage/log-archive/verify-log.js';
import { verifyArchive, verifyLog } from '../src/storage/log-archive/verify-log.js';
import { CommandError, exitCodes, isReadable, parseArguments, runCommand, say } from './maintenance/command-line.js';
import type { ExitCode } from './maintenance/command-line.js';
import { logCheck, openInstallation } from './maintenance/installation.js';
import { printLog, printProblems } from './maintenance/log-report.js';
import { createProgressBar } from './maintenance/progress-bar.js';

const usage = `Usage: npm run log:verify [-- FILE]

Verifies the archive FILE or, without FILE, the log of the installation that the environment names (SVC_DATA_DIR,
SVC_EVENTSTORE_URL): checksums, revisions, positions, complete commands, known event types. Changes nothing. Exits with 1
if it finds a problem. An archive and every copy of its log have the same content sha256.`;

await runCommand(usage, async (argv, signal) => {
  const [path] = parseArguments(argv, [], 1).positional;
  const report = path === undefined ? await installedLog(signal) : await archive(path, signal);
  if (signal.aborted) return exitCodes.interrupted;
  return print(path, report);
});

async function archive(path: string, signal: AbortSignal): Promise<VerifyReport> {
  if (!(await isReadable(path))) throw new CommandError(`${path} cannot be read.`);
  const bar = createProgressBar('verifying', 'events');
  const onProgress = (bytes: number, total: number, events: number): void => bar.update(bytes / total, events);
  const report = await verifyArchive(path, { check: logCheck, signal, onProgress });
  bar.finish();
  return report;
}

async function installedLog(signal: AbortSignal): Promise<VerifyReport> {
  const installation = await openInstallation({ signal, mayBeHalf: true });
  try {
    const bar = createProgressBar('verifying', 'events');
    const onProgress = (position: number, head: number, events: number): void =>
      bar.update(head === 0 ? 1 : Math.min(1, position / head), events);
    const report = await verifyLog(installation.eventStore, {
      prefix: streams.prefix,
      check: logCheck,
      signal,
      onProgress,
    });
    bar.finish();
    return report;
  } finally {
    await installation.close();
  }
}

function print(path: string | undefined, { log, problems, problemCount, header, documents }: VerifyReport): ExitCode {
  if (header !== undefined) {
    say(`Archive ${header.archive_id} of installation ${header.installation_id ?? '(none)'}, ${header.exported_at}`);
  }
  printLog(log);
  for (const [collection, count] of documents) say(`  ${collection.padEnd(16)} ${count} documents`);
  const wrong = printProblems(problems, problemCount);
  say(wrong ? 'Verification failed: see above.' : `${path ?? 'The log'} is complete and undamaged.`);
  return wrong ? exitCodes.failed : exitCodes.done;
}
