/** psk and identity: the keys by which agents and the service know each other, and how they are replaced. */
import type { Command } from 'commander';
import { confirm } from '../ask.js';
import { usage } from '../exit.js';
import { formatOption, wholeNumber } from '../options.js';
import { line, printList, printValue, shown, tellSecrets, type Column, type Format } from '../output.js';
import { findOne, typeOf } from '../resources.js';
import { dataOf, type Api, type Schemas } from '../service.js';
import { openSession, type GlobalOptions } from '../session.js';

const nodes = typeOf('nodes');

interface PskOptions extends GlobalOptions {
  readonly yes?: true;
  readonly candidate?: true;
  readonly validDays?: number;
  readonly dropCandidate?: true;
}
interface IdentityOptions extends GlobalOptions {
  readonly output: Format;
}
interface RetireOptions extends GlobalOptions {
  readonly yes?: true;
  readonly force?: true;
}

export function keyCommands(program: Command): void {
  program
    .command('psk <node>')
    .summary('issue a new PSK; the old one ends at once, and its sessions with it')
    .option('--candidate', 'beside the old one, which ends when the agent has connected with the new one')
    .option('--valid-days <n>', 'after how many days an unused candidate expires', wholeNumber('--valid-days'))
    .option('--drop-candidate', 'issue none, but take the candidate back')
    .option('--yes', 'do not ask')
    .addHelpText('after', '\nExample:\n  svcctl psk edge-1 --candidate')
    .action(async (node: string, _options, command: Command) => psk(node, command.optsWithGlobals<PskOptions>()));

  const identity = program
    .command('identity')
    .summary('show the identity keys of the service, and how many nodes are proven on which')
    .addOption(formatOption())
    .addHelpText('after', '\nExample:\n  svcctl identity')
    .action(async (_options, command: Command) => {
      const { output, ...options } = command.optsWithGlobals<IdentityOptions>();
      const { api } = await openSession(options);
      await show(await dataOf(api.GET('/api/service/identity', {})), output);
    });
  identity
    .command('rotate')
    .summary('make a second identity key, which new PSKs carry')
    .addHelpText('after', '\nExample:\n  svcctl identity rotate')
    .action(async (_options, command: Command) => {
      const { api } = await openSession(command.optsWithGlobals<GlobalOptions>());
      await show(await dataOf(api.POST('/api/service/identity/rotate')), 'table');
    });
  identity
    .command('retire')
    .summary('end the old identity key, and join tokens from before the rotation')
    .option('--force', 'also while nodes need it: each of them needs a new PSK then')
    .option('--yes', 'do not ask')
    .addHelpText('after', '\nExample:\n  svcctl identity retire --yes')
    .action(async (_options, command: Command) => {
      const { yes, force = false, ...options } = command.optsWithGlobals<RetireOptions>();
      const { api } = await openSession(options);
      await confirm('Retire the old identity? Its PSKs and join tokens no longer connect anything.', yes);
      await show(await dataOf(api.POST('/api/service/identity/retire', { body: { force } })), 'table');
    });
}

async function psk(node: string, { candidate, validDays, dropCandidate, yes, ...options }: PskOptions): Promise<void> {
  if (validDays !== undefined && candidate === undefined) throw usage('--valid-days: expected --candidate beside it');
  if (dropCandidate !== undefined && candidate !== undefined) {
    throw usage('--drop-candidate: expected no --candidate beside it');
  }
  const { api } = await openSession(options);
  if (dropCandidate === undefined && candidate === undefined) return tellSecrets([await issuePsk(api, node, yes)]);
  const { id, name } = await findOne(api, nodes, node);
  if (dropCandidate !== undefined) {
    await dataOf(api.DELETE('/api/nodes/{id}/psk/candidate', { params: { path: { id } } }));
    return line(`the candidate of ${shown(name)} is taken back`);
  }
  const query = { mode: 'candidate', ...(validDays === undefined ? {} : { valid_days: validDays }) } as const;
  await tellSecrets([await textOf(api, id, query)]);
}

/** Asks first: the old PSK ends. */
export async function issuePsk(api: Api, node: string, yes: boolean | undefined): Promise<string> {
  const { id, name } = await findOne(api, nodes, node);
  await confirm(`Issue a new PSK for ${shown(name)}? Its agent is disconnected until it has it.`, yes);
  return textOf(api, id, {});
}

async function textOf(
  api: Api,
  id: string,
  query: { readonly mode?: 'candidate'; readonly valid_days?: number },
): Promise<string> {
  const { control_psk } = await dataOf(api.POST('/api/nodes/{id}/psk', { params: { path: { id }, query } }));
  if (control_psk === null) throw new Error('a new PSK has a text');
  return control_psk;
}

const columns: readonly Column[] = [
  { title: 'KEY', of: ({ key }) => key },
  { title: 'SINCE', of: ({ since }) => since },
  { title: 'NODES', of: ({ nodes: count }) => count },
  { title: 'PUBLIC KEY', of: ({ public_key }) => public_key },
];

async function show(identity: Schemas['ServiceIdentity'], format: Format): Promise<void> {
  if (format === 'json' || format === 'yaml') return printValue(identity, format);
  const rows = (['current', 'next'] as const).flatMap((key) => {
    const one = identity[key];
    return one === null ? [] : [{ key, ...one, nodes: identity.nodes[key] }];
  });
  await printList([rows], { format, columns, nameOf: ({ public_key }) => String(public_key) });
}
