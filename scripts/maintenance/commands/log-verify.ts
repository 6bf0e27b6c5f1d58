/** `npm run log:verify [-- FILE]`: verifies an archive or the installation's log. See `docs/log-chain.md#verify`. */
import { logCheck } from '../../../src/backups/archive-scope.js';
import { allStreams } from '../../../src/kernel/event.js';
import type { ExpectedHead, LogProof } from '../../../src/security/log-chain/prove.js';
import { verifyArchive, verifyLog, type VerifyReport } from '../../../src/storage/log-archive/verify-log.js';
import { CommandError, exitCodes, isReadable, parseArguments, say, whileOpen, type ExitCode } from '../command-line.js';
import { readConfig } from '../../../src/app/config/config.js';
import { openInstalledLog } from '../installation.js';
import { masterKeyOf } from '../keyring.js';
import { printLog, printProblems } from '../log-report.js';
import { createProgressBar } from '../progress-bar.js';
import { expectedHeads, printProofs, proveLog, sourceOfArchive, sourceOfStore } from '../proof.js';

export const usage = `Usage: gateway-control maintenance log:verify [FILE] [--contains HEAD]… [--ends-on HEAD]…

Verifies the archive FILE or, without FILE, the log of the installation that the environment names (SVC_DATA_DIR,
SVC_EVENTSTORE_URL): checksums, revisions, positions, complete commands, known event types, and with the master key
(SVC_MASTER_KEY, SVC_MASTER_KEY_FILE or the data folder's master.key) the log chains. Changes nothing; the service may run
meanwhile. An archive and every copy of its log have the same content sha256.
Exits with 0 when the log is proven, 4 when it is damaged, 3 when it has no log chain, and 1 when it cannot be proven, as
without the master key.
HEAD: the head of a log chain, as this command has printed it before. --contains proves that nothing up to it was changed
since, --ends-on that nothing was added either.`;

interface Verified {
  readonly report: VerifyReport;
  /** Otherwise, why the log chains were not checked. */
  readonly proof: LogProof | string;
}

export const [contains, endsOn] = ['--contains', '--ends-on'];

export async function run(argv: readonly string[], signal: AbortSignal): Promise<ExitCode> {
  const { positional, values } = parseArguments(argv, [], 1, [contains, endsOn]);
  const [path] = positional;
  const expected = expectedHeads(values(contains), values(endsOn));
  if (path === undefined) return verifyInstalled(expected, signal);
  const verified = await archive(path, expected, signal);
  return signal.aborted ? exitCodes.interrupted : print(path, verified);
}

/**
 * Verifies the log of the installation, and prints what it found.
 * @param expected heads that it must contain @param digest of its content, when it is known
 */
export async function verifyInstalled(
  expected: readonly ExpectedHead[],
  signal: AbortSignal,
  digest?: string,
): Promise<ExitCode> {
  const verified = await installedLog(expected, signal);
  if (signal.aborted) return exitCodes.interrupted;
  const exitCode = print(undefined, verified);
  if (digest === undefined || verified.report.log.contentSha256 === digest) return exitCode;
  say('The log does not hold what the archive holds.');
  return exitCodes.damaged;
}

async function archive(path: string, expected: readonly ExpectedHead[], signal: AbortSignal): Promise<Verified> {
  if (!(await isReadable(path))) throw new CommandError(`${path} cannot be read.`);
  const bar = createProgressBar('verifying', 'events');
  const onProgress = (bytes: number, total: number, events: number): void => bar.update(bytes / total, events);
  const report = await verifyArchive(path, { check: logCheck, signal, onProgress });
  bar.finish();
  // Nothing after the damage can be read.
  if (signal.aborted || report.damaged) return { report, proof: 'the file is damaged' };
  const key = await masterKeyOf({ config: readConfig(process.env) }).catch((error: unknown) => {
    if (error instanceof CommandError) return error.message;
    throw error;
  });
  if (typeof key === 'string') return { report, proof: key };
  return { report, proof: await proveLog(sourceOfArchive(path), key.masterKey, expected, signal) };
}

async function installedLog(expected: readonly ExpectedHead[], signal: AbortSignal): Promise<Verified> {
  return whileOpen(openInstalledLog(signal), async (installation) => {
    const { masterKey } = await masterKeyOf(installation);
    const bar = createProgressBar('verifying', 'events');
    const onProgress = (position: number, head: number, events: number): void =>
      bar.update(head === 0 ? 1 : Math.min(1, position / head), events);
    const report = await verifyLog(installation.eventStore, {
      streams: allStreams,
      check: logCheck,
      signal,
      onProgress,
    });
    bar.finish();
    if (signal.aborted) return { report, proof: 'interrupted' };
    return { report, proof: await proveLog(sourceOfStore(installation.eventStore), masterKey, expected, signal) };
  });
}

function print(path: string | undefined, { report, proof }: Verified): ExitCode {
  const { log, problems, problemCount, header } = report;
  if (header !== undefined) {
    say(`Archive ${header.archive_id} of installation ${header.installation_id ?? '(none)'}, ${header.exported_at}`);
  }
  printLog(log);
  const found = typeof proof === 'string' || proof.kind !== 'damaged' ? [] : proof.problems;
  if (typeof proof !== 'string' && proof.kind !== 'no_chain') printProofs(proof.proofs);
  const name = path ?? 'The log';
  if (printProblems([...found, ...problems], problemCount + found.length)) {
    say(`${name} is damaged: see above.`);
    return exitCodes.damaged;
  }
  if (typeof proof === 'string') {
    say(`${name} is complete, and not proven: ${proof}`);
    return exitCodes.failed;
  }
  if (proof.kind === 'no_chain') {
    say(`${name} has no log chain: nothing shows whether it was changed.`);
    return exitCodes.noLogChain;
  }
  say(`${name} is complete and proven.`);
  return exitCodes.done;
}
