/**
 * `npm run projections:rebuild [NAME] [--check]`: rebuilds read models, or compares them with the log.
 * See `docs/how-to/restore.md#read-models-that-differ-from-the-log`.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../../src/kernel/clock.js';
import { silentLogger } from '../../../src/kernel/logger.js';
import { checkReadModels } from '../../../src/projections/rebuild/check.js';
import { readModels } from '../../../src/projections/read-models.js';
import { rebuildReadModels } from '../../../src/projections/rebuild/rebuild.js';
import { openEmbedded } from '../../../src/storage/embedded/open-embedded.js';
import {
  CommandError,
  exitCodes,
  parseArguments,
  plainLogger,
  say,
  UsageError,
  whileOpen,
  type ExitCode,
} from '../command-line.js';
import { openInstallation, type Installation } from '../installation.js';
import { masterKeyOf } from '../keyring.js';
import { proveLog, sourceOfStore } from '../proof.js';
import { createProgressBar } from '../progress-bar.js';

const names = readModels.map(({ name }) => name);
export const usage = `Usage: gateway-control maintenance projections:rebuild [NAME] [--check]

Folds the log into new read models beside the current ones, and switches to the new ones once they hold the whole log.
NAME: rebuilds only this one (${names.join(', ')}).
--check: changes nothing; compares the current read models with a fresh fold, prints the differences and exits with 1 if
there are any.
The log is proven first, which needs the master key. An interrupted rebuild continues when it is repeated. The service may
keep running unless its stores are embedded.`;

export async function run(argv: readonly string[], signal: AbortSignal): Promise<ExitCode> {
  const { positional, flags } = parseArguments(argv, ['--check'], 1);
  const [only] = positional;
  if (only !== undefined && !names.includes(only)) {
    throw new UsageError(`There is no read model "${only}"`);
  }
  return whileOpen(openInstallation({ signal }), async (installation) => {
    await refuseUnproven(installation, signal);
    if (signal.aborted) return exitCodes.interrupted;
    return flags.has('--check') ? await check(installation, only, signal) : await rebuild(installation, only, signal);
  });
}

/** Read models of a log that somebody has changed would serve the changes. @throws CommandError */
async function refuseUnproven(installation: Installation, signal: AbortSignal): Promise<void> {
  const { masterKey } = await masterKeyOf(installation);
  const proof = await proveLog(sourceOfStore(installation.eventStore), masterKey, [], signal);
  if (proof.kind === 'proven' || signal.aborted) return;
  const why = proof.kind === 'no_chain' ? 'it has no log chain' : proof.problems[0];
  throw new CommandError(`Nothing is rebuilt from a log that is not proven: ${why}.`);
}

async function rebuild(
  { eventStore, readStore }: Installation,
  only: string | undefined,
  signal: AbortSignal,
): Promise<ExitCode> {
  const bar = createProgressBar(`rebuilding ${only ?? 'all read models'}`, 'events');
  const onProgress = (events: number, position: number, head: number): void =>
    bar.update(head === 0 ? 1 : position / head, events);
  const outcome = await rebuildReadModels({ eventStore, readStore, logger: plainLogger, only, signal, onProgress });
  bar.finish();
  if (outcome.kind === 'interrupted') {
    say('Interrupted: run the same command again to continue. The current read models are unchanged.');
    return exitCodes.interrupted;
  }
  const from = outcome.resumed ? ', continuing an interrupted run' : '';
  say(`Rebuilt ${only ?? 'all read models'} from ${outcome.events} events${from}; queries now use the new ones.`);
  if (!outcome.dropped) say('An instance is still reading the old collections; the next rebuild drops them.');
  return exitCodes.done;
}

async function check(
  { eventStore, readStore }: Installation,
  only: string | undefined,
  signal: AbortSignal,
): Promise<ExitCode> {
  const folder = await mkdtemp(join(tmpdir(), 'read-models-check-'));
  const scratch = await openEmbedded({ dataDir: folder, clock: systemClock, logger: silentLogger });
  try {
    const bars = {
      folding: createProgressBar('folding the log', 'log positions'),
      comparing: createProgressBar('comparing', 'documents'),
    };
    let phase: keyof typeof bars = 'folding';
    const report = await checkReadModels({
      eventStore,
      readStore,
      scratch: scratch.readStore,
      clock: systemClock,
      logger: plainLogger,
      only,
      signal,
      onProgress(now, done, of) {
        if (now !== phase) bars[phase].finish();
        phase = now;
        bars[now].update(of === 0 ? 1 : done / of, done);
      },
    });
    bars[phase].finish();
    if (report === undefined) return exitCodes.interrupted;
    for (const difference of report.differences) say(`DIFFERENT: ${difference}`);
    const more = report.differenceCount - report.differences.length;
    if (more > 0) say(`… and ${more} more`);
    const compared = report.documents - report.behind;
    say(`${compared} documents compared with a fresh fold: ${report.differenceCount} different.`);
    if (report.behind > 0) {
      say(`${report.behind} were not compared: the current read models have not yet caught up with the log.`);
    }
    return report.differenceCount > 0 ? exitCodes.failed : exitCodes.done;
  } finally {
    await scratch.close();
    await rm(folder, { recursive: true, force: true });
  }
}
