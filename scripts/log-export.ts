/** `npm run log:export -- FILE`: the whole installation as one checksummed file. See `docs/how-to/back-up.md`. */
import { randomUUID } from 'node:crypto';
import { systemClock, timestamp } from '../src/kernel/clock.js';
import { installationOf } from '../src/app/installation/read-store-binding.js';
import { exportLog } from '../src/storage/log-archive/export-log.js';
import { exitCodes, parseArguments, runCommand, say, UsageError } from './maintenance/command-line.js';
import { archiveScope, logCheck, openInstallation } from './maintenance/installation.js';
import { printLog, printProblems } from './maintenance/log-report.js';
import { createProgressBar } from './maintenance/progress-bar.js';

const usage = `Usage: npm run log:export -- FILE

Writes the log, with its wrapped keyring, of the installation that the environment names (SVC_DATA_DIR,
SVC_EVENTSTORE_URL, SVC_MONGODB_URL) to FILE, which must not exist. An interrupted export continues when it is repeated.`;

await runCommand(usage, async (argv, signal) => {
  const [path] = parseArguments(argv, [], 1).positional;
  if (path === undefined) throw new UsageError('The file to write is missing');
  const installation = await openInstallation({ signal });
  try {
    const { eventStore, readStore } = installation;
    const head = await eventStore.headPosition();
    const bar = createProgressBar('exporting', 'events');
    const report = await exportLog({
      ...archiveScope,
      path,
      eventStore,
      readStore,
      installationId: (await installationOf(eventStore)) ?? null,
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
    say(`  ${report.totals.documents} documents (last-good snapshots, command claims, last-seen times)`);
    if (report.continued > 0) say(`  ${report.continued} events are from an interrupted run`);
    return printProblems(report.problems, report.problems.length) ? exitCodes.failed : exitCodes.done;
  } finally {
    await installation.close();
  }
});
