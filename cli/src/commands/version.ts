/** version: what this program and the service are. Implements `docs/contract/joining.md#what-a-release-is`. */
import { Option, type Command } from 'commander';
import { chosenContext } from '../contexts.js';
import { line, printValue, shown } from '../output.js';
import { bodyOf, connect, type Schemas } from '../service.js';
import type { GlobalOptions } from '../session.js';

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
    .addOption(new Option('-o, --output <format>', 'how to print it').choices(['text', 'json', 'yaml']).default('text'))
    .addHelpText('after', '\nExample:\n  svcctl version')
    .action(async (_options, command: Command) => {
      const { output, ...options } = command.optsWithGlobals<
        GlobalOptions & { readonly output: 'text' | 'json' | 'yaml' }
      >();
      if (output === 'text') await line(`client ${sentence(PRODUCT)}`);
      const server = await serverOf(options);
      if (output === 'text') await line(`server ${sentence(server)}`);
      else await printValue({ client: PRODUCT, server }, output);
    });
}

/** Sends no token: one that has ended does not matter. @throws Failure */
async function serverOf({ context, caFile }: GlobalOptions): Promise<Release> {
  const { server, ca_file } = chosenContext(context);
  const api = await connect({ server, insecure: true, caFile: caFile ?? ca_file });
  const { status: _, ...release } = (await bodyOf(api.GET('/healthz'))).body;
  return release;
}
