/** `npm run compiler:lower -- N`: goes back to an older compiler. See `docs/how-to/upgrade.md`. */
import { systemContext } from '../../../src/commands/system.js';
import { compilerVersion } from '../../../src/kernel/release.js';
import { fleetEvent } from '../../../src/domain/fleet/resources.js';
import { liveInstances } from '../../../src/instance/instance-lease.js';
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
import { fleetGateway } from '../fleet-gateway.js';
import { openInstallation, type Installation } from '../installation.js';
import { keyringOf } from '../keyring.js';

export const usage = `Usage: gateway-control maintenance compiler:lower N

Goes back to the release with compiler version N. It sets the log to version N, gives every node a new generation, and
makes instances with a higher version stop serving agents. Run it from the release that you go back to; this release has
version ${compilerVersion}. With EventStoreDB and MongoDB, instances may keep running. Only one process can open embedded stores: stop
the service first. The master key is needed, because the log chain covers what is written.`;

export async function run(argv: readonly string[], signal: AbortSignal): Promise<ExitCode> {
  const [text] = parseArguments(argv, [], 1).positional;
  if (text === undefined) throw new UsageError('The compiler version to go back to is missing');
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new UsageError(`"${text}" is not a compiler version: expected 1 or more`);
  const to = Number(text);
  if (to > compilerVersion) {
    throw new CommandError(
      `This release has compiler version ${compilerVersion}, lower than ${to}: run this command from the release that ` +
        'you go back to.',
    );
  }
  await whileOpen(openInstallation({ signal }), async (installation) => {
    const from = await lower(installation, to);
    say(`The log was at compiler version ${from} and is now at ${to}; every node has a new generation.`);
    await warnAboutInstances(installation, to);
  });
  return exitCodes.done;
}

/** @returns the log's previous version. @throws CommandError, ServiceError */
async function lower(installation: Installation, version: number): Promise<number> {
  const { logChain } = await keyringOf(installation);
  return whileOpen(fleetGateway(installation, logChain), async (gateway) => {
    const outcome = await gateway.execute(
      { type: 'LowerCompilerVersion', version },
      systemContext('compiler lowered'),
      () => undefined,
    );
    const [recorded] = outcome.kind === 'done' ? outcome.events : [];
    const event = recorded === undefined ? undefined : fleetEvent(recorded);
    if (event?.type !== 'CompilerVersionLowered') throw new Error('the command did not write CompilerVersionLowered');
    return event.data.version.from;
  });
}

/** Instances of a newer release stop serving by themselves, but raise the version again when they are restarted. */
async function warnAboutInstances({ config, readStore }: Installation, version: number): Promise<void> {
  // This command has embedded stores to itself: any lease in them belongs to a dead process.
  if (config.eventStoreUrl === undefined || config.mongoUrl === undefined) return;
  const running = await liveInstances(readStore);
  const newer = running.filter(({ compiler_version }) => compiler_version > version);
  if (newer.length > 0) {
    const instances = newer.map(
      ({ instance_id, compiler_version, started_at }) =>
        `${instance_id} (compiler version ${compiler_version}, started at ${started_at})`,
    );
    plainLogger.warn(
      { instances },
      'instances with a higher compiler version are running; they no longer serve agents. Replace them with the older release: restarted as they are, they raise the version again',
    );
  }
  if (!running.some(({ compiler_version }) => compiler_version === version)) {
    plainLogger.warn(
      { version },
      'no instance with this compiler version is running: nodes keep their configuration until one starts',
    );
  }
}
