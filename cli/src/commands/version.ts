/** version: what this program and the service are. Implements `docs/contract/joining.md#what-a-release-is`. */
import type { Command } from 'commander';
import { chosenContext } from '../contexts.js';
import { reportOption, type ReportOptions } from '../options.js';
import { line, printValue, shown } from '../output.js';
import { bodyOf, connect, type Schemas } from '../service.js';
import { accessOf, type GlobalOptions } from '../session.js';

type Release = Omit<Schemas['Health'], 'status'>;

/** Defined by `build.js`. */
declare const PRODUCT: Release;

const sentence = ({ version, commit, compiler_version, format }: Release): string =>
  shown(`${version}+${commit} (compiler version ${compiler_version}, format ${format})`);

export const ownVersion = `svcctl ${sentence(PRODUCT)}`;

export function versionCommand(program: Command): void {
  program
    .command('version')
    .summary('show what this program and the service are')
    .addOption(reportOption())
    .addHelpText('after', '\nExample:\n  svcctl version')
    .action(async (_options, command: Command) => {
      const { output, ...options } = command.optsWithGlobals<ReportOptions>();
      if (output === 'text') await line(`client ${sentence(PRODUCT)}`);
      const server = await serverOf(options);
      if (output === 'text') await line(`server ${sentence(server)}`);
      else await printValue({ client: PRODUCT, server }, output);
    });
}

/** Sends no token: one that has ended does not matter. @throws Failure */
async function serverOf(options: GlobalOptions): Promise<Release> {
  const api = await connect({ ...accessOf(chosenContext(options.context), options), insecure: true });
  const { status: _, ...release } = (await bodyOf(api.GET('/healthz'))).body;
  return release;
}
