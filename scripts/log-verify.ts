/** `npm run log:verify [-- FILE]`: verifies an archive or the installation's log. See `docs/log-chain.md#verify`. */
import { streams } from '../src/kernel/event.js';
import type { ExpectedHead, StreamProof } from '../src/security/log-chain/prove.js';
import type { VerifyReport } from '../src/storage/log-archive/verify-log.js';
import { verifyArchive, verifyLog } from '../src/storage/log-archive/verify-log.js';
import { CommandError, exitCodes, isReadable, parseArguments, runCommand, say } from './maintenance/command-line.js';
import type { ExitCode } from './maintenance/command-line.js';
import { readConfig } from '../src/app/config/config.js';
import { logCheck, openInstallation } from './maintenance/installation.js';
import { masterKeyOf } from './maintenance/log-chain.js';
import { printLog, printProblems } from './maintenance/log-report.js';
import { createProgressBar } from './maintenance/progress-bar.js';
import {
  expectedHeads,
  printProofs,
  problemsOf,
  proveLog,
  sourceOfArchive,
  sourceOfStore,
} from './maintenance/proof.js';

const usage = `Usage: npm run log:verify [-- FILE] [--contains HEAD]… [--ends-on HEAD]…

Verifies the archive FILE or, without FILE, the log of the installation that the environment names (SVC_DATA_DIR,
SVC_EVENTSTORE_URL): checksums, revisions, positions, complete commands, known event types, and with the master key
(SVC_MASTER_KEY, SVC_MASTER_KEY_FILE or the data folder's master.key) the log chain. Changes nothing. Exits with 1 if it
finds a problem. An archive and every copy of its log have the same content sha256.
HEAD: the head of a log chain, as this command has printed it before. --contains proves that nothing up to it was changed
since, --ends-on that nothing was added either.
An archive may be verified without the master key; its log chain is then not proven.`;

interface Verified {
  readonly report: VerifyReport;
  /** Undefined when the log chain was not looked at. */
  readonly proofs: readonly StreamProof[] | undefined;
  /** Why not. */
  readonly unproven?: string;
}

const [contains, endsOn] = ['--contains', '--ends-on'];

await runCommand(usage, async (argv, signal) => {
  const { positional, values } = parseArguments(argv, [], 1, [contains, endsOn]);
  const [path] = positional;
  const expected = expectedHeads(values(contains), values(endsOn));
  const verified = path === undefined ? await installedLog(expected, signal) : await archive(path, expected, signal);
  if (signal.aborted) return exitCodes.interrupted;
  return print(path, verified);
});

async function archive(path: string, expected: readonly ExpectedHead[], signal: AbortSignal): Promise<Verified> {
  if (!(await isReadable(path))) throw new CommandError(`${path} cannot be read.`);
  const bar = createProgressBar('verifying', 'events');
  const onProgress = (bytes: number, total: number, events: number): void => bar.update(bytes / total, events);
  const report = await verifyArchive(path, { check: logCheck, signal, onProgress });
  bar.finish();
  // What stands behind damage cannot be read.
  if (signal.aborted || report.damaged) return { report, proofs: undefined, unproven: 'the file is damaged' };
  const key = await masterKeyOf({ config: readConfig(process.env) }).catch((error: unknown) => {
    if (error instanceof CommandError && expected.length === 0) return error.message;
    throw error;
  });
  if (typeof key === 'string') return { report, proofs: undefined, unproven: key };
  return { report, proofs: await proveLog(sourceOfArchive(path), key.masterKey, expected, signal) };
}

async function installedLog(expected: readonly ExpectedHead[], signal: AbortSignal): Promise<Verified> {
  const installation = await openInstallation({ signal, mayBeHalf: true });
  try {
    const { masterKey } = await masterKeyOf(installation);
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
    if (signal.aborted) return { report, proofs: undefined };
    return { report, proofs: await proveLog(sourceOfStore(installation.eventStore), masterKey, expected, signal) };
  } finally {
    await installation.close();
  }
}

function print(path: string | undefined, { report, proofs, unproven }: Verified): ExitCode {
  const { log, problems, problemCount, header, documents } = report;
  if (header !== undefined) {
    say(`Archive ${header.archive_id} of installation ${header.installation_id ?? '(none)'}, ${header.exported_at}`);
  }
  printLog(log);
  for (const [collection, count] of documents) say(`  ${collection.padEnd(16)} ${count} documents`);
  if (proofs !== undefined) printProofs(proofs);
  const findings = problemsOf(proofs ?? []);
  const wrong = printProblems([...findings, ...problems], problemCount + findings.length);
  if (unproven !== undefined) say(`The log chain is not proven: ${unproven}`);
  say(wrong ? 'Verification failed: see above.' : `${path ?? 'The log'} is complete and undamaged.`);
  return wrong ? exitCodes.failed : exitCodes.done;
}
