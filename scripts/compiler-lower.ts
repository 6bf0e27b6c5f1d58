/** `npm run compiler:lower -- N`: goes back to an older compiler. See `docs/operations.md`, Upgrade and going back. */
import { fleetAggregate } from '../src/commands/aggregate.js';
import { createGateway } from '../src/commands/gateway.js';
import type { Gateway } from '../src/commands/port.js';
import { systemContext } from '../src/commands/system.js';
import { loadFleet } from '../src/delivery/fold-checkpoint.js';
import { compilerVersion } from '../src/domain/compile/version.js';
import type { FleetCommand } from '../src/domain/fleet/events.js';
import type { Fleet } from '../src/domain/fleet/fleet.js';
import { emptyFleet } from '../src/domain/fleet/fleet.js';
import { UnknownEventError } from '../src/domain/log/unknown-event.js';
import { fleetEvent } from '../src/domain/log/upcast.js';
import { systemClock } from '../src/kernel/clock.js';
import { streams } from '../src/kernel/event.js';
import { randomIds } from '../src/kernel/ids.js';
import { lastRevision } from '../src/storage/event-store.js';
import { liveInstances } from '../src/cluster/instance-lease.js';
import {
  CommandError,
  exitCodes,
  parseArguments,
  plainLogger,
  runCommand,
  say,
  UsageError,
} from './maintenance/command-line.js';
import { openInstallation } from './maintenance/installation.js';
import type { Installation } from './maintenance/installation.js';

const usage = `Usage: npm run compiler:lower -- N

Goes back to the release whose compiler has the number N: the log is at N from then on, every node gets a new generation,
and instances with a higher number stop to serve agents. Run it from the release that you go back to; this one has the
number ${compilerVersion}. With EventStoreDB and MongoDB instances may run meanwhile. Embedded stores let one process in: stop the
service first.`;

await runCommand(usage, async (argv, signal) => {
  const [text] = parseArguments(argv, [], 1).positional;
  if (text === undefined) throw new UsageError('The number to go back to is missing');
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new UsageError(`"${text}" is not a compiler number: expected 1 or more`);
  const to = Number(text);
  if (to > compilerVersion) {
    const own = `This release has the compiler number ${compilerVersion}`;
    throw new CommandError(`${own} and does not know ${to}: run this command of the release that you go back to.`);
  }
  const installation = await openInstallation({ signal });
  try {
    const from = await lower(installation, to);
    say(`The log was at compiler version ${from} and is at ${to} now; every node has a new generation.`);
    await tellWhoRuns(installation, to);
  } finally {
    await installation.close();
  }
  return exitCodes.done;
});

/** Returns the number that the log was at. @throws CommandError, ServiceError */
async function lower({ eventStore }: Installation, version: number): Promise<number> {
  if ((await lastRevision(eventStore, streams.service)) === undefined) {
    throw new CommandError('No service has started on these stores yet: there is nothing to go back from.');
  }
  const gateway = await fleetGateway(eventStore);
  try {
    const outcome = await gateway.execute(
      { type: 'LowerCompilerVersion', version },
      systemContext('compiler lowered'),
      () => undefined,
    );
    const [recorded] = outcome.kind === 'done' ? outcome.events : [];
    const event = recorded === undefined ? undefined : fleetEvent(recorded);
    if (event?.type !== 'CompilerVersionLowered') throw new Error('another event was written than the one asked for');
    return event.data.version.from;
  } finally {
    await gateway.close();
  }
}

/** @throws CommandError when the log holds what this release does not know */
async function fleetGateway(eventStore: Installation['eventStore']): Promise<Gateway<Fleet, FleetCommand>> {
  const fleet = (await loadFleet(eventStore, plainLogger)) ?? emptyFleet();
  try {
    return await createGateway(fleetAggregate(fleet), {
      eventStore,
      projections: { applied: () => Promise.resolve(true) },
      clock: systemClock,
      ids: randomIds,
      logger: plainLogger,
      readOnly: () => undefined,
    });
  } catch (error) {
    if (!(error instanceof UnknownEventError)) throw error;
    throw new CommandError(`This release can not take over the log: ${error.message}.`);
  }
}

/** Instances of a newer release stop by themselves, and would raise the number at their next start. */
async function tellWhoRuns({ config, readStore }: Installation, version: number): Promise<void> {
  // Embedded stores are this command's alone: a lease in them is of a process that has ended.
  if (config.eventStoreUrl === undefined || config.mongoUrl === undefined) return;
  const running = await liveInstances(readStore);
  const newer = running.filter(({ compiler_version }) => compiler_version > version);
  if (newer.length > 0) {
    const instances = newer.map(({ instance_id, compiler_version, started_at }) => ({
      instance_id,
      compiler_version,
      started_at,
    }));
    plainLogger.warn(
      { instances },
      'instances with a higher number are running: they serve no agents now; replace them by the older release, for each raises the number again when it is started again as it is',
    );
  }
  if (!running.some(({ compiler_version }) => compiler_version === version)) {
    plainLogger.warn({ version }, 'no instance with this number is running: nodes keep what they have until one is');
  }
}
