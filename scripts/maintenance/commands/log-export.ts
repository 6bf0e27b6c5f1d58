/** `npm run log:export -- FILE`: exports the installation as one checksummed file. See `docs/how-to/back-up.md`. */
import { randomUUID } from 'node:crypto';
import { archiveScope, logCheck } from '../../../src/backups/archive-scope.js';
import { systemClock, timestamp } from '../../../src/kernel/clock.js';
import { installationOf } from '../../../src/app/installation/read-store-binding.js';
import { exportLog } from '../../../src/storage/log-archive/export-log.js';
import { exitCodes, parseArguments, say, UsageError, whileOpen, type ExitCode } from '../command-line.js';
import { cutLog, parsePlace } from '../cut-log.js';
import { openInstalledLog } from '../installation.js';
import { printLog, printProblems } from '../log-report.js';
import { createProgressBar } from '../progress-bar.js';

const upTo = '--up-to';

export const usage = `Usage: gateway-control maintenance log:export FILE [--up-to STREAM@REVISION]

Writes the log, with its wrapped keyring, of the installation that the environment names (SVC_DATA_DIR,
SVC_EVENTSTORE_URL) to FILE, which must not exist. The service may run meanwhile. An interrupted export continues when it
is repeated.
--up-to: leaves out what lies behind that event of svc-fleet, svc-accounts or svc-service, such as events that somebody else
has appended, and cuts the other two before their first event that refers to it.`;

export async function run(argv: readonly string[], signal: AbortSignal): Promise<ExitCode> {
  const { positional, values } = parseArguments(argv, [], 1, [upTo]);
  const [path] = positional;
  const [text] = values(upTo);
  const place = text === undefined ? undefined : parsePlace(text);
  if (path === undefined) throw new UsageError('The file to write is missing');
  return whileOpen(openInstalledLog(signal), async (installation) => {
    const { log: eventStore, cuts } =
      place === undefined
        ? { log: installation.eventStore, cuts: new Map<string, number>() }
        : await cutLog(installation.eventStore, place);
    const head = await eventStore.headPosition();
    const bar = createProgressBar('exporting', 'events');
    const report = await exportLog({
      ...archiveScope,
      path,
      eventStore,
      installationId: (await installationOf(eventStore)) ?? null,
      upTo: text ?? null,
      archiveId: randomUUID(),
      exportedAt: timestamp(systemClock.now()),
      check: logCheck,
      signal,
      onProgress: (events, position) => bar.update(head === 0 ? 1 : Math.min(1, position / head), events),
    });
    bar.finish();
    if (report === undefined) {
      say(`Interrupted. ${path}.part holds what was written so far: run the same command again to continue.`);
      return exitCodes.interrupted;
    }
    say(`Exported ${installation.name} to ${path}:`);
    printLog(report.log);
    for (const [stream, revision] of cuts) say(`  ${stream} is cut behind revision ${revision}`);
    if (report.continued > 0) say(`  ${report.continued} events are from an interrupted run`);
    return printProblems(report.problems, report.problems.length) ? exitCodes.failed : exitCodes.done;
  });
}
