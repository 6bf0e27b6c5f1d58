/** deploy, history, diff, revert, node env. */
import { randomUUID } from 'node:crypto';
import type { Command } from 'commander';
import { createTwoFilesPatch } from 'diff';
import { exitCodes, refused, usage } from '../exit.js';
import {
  line,
  paint,
  printValue,
  sayRollout,
  sayWarnings,
  shown,
  tellSecrets,
  unreachable,
  write,
  yamlOf,
  type Colour,
} from '../output.js';
import { findOne, numberedPagesOf, typeOf } from '../resources.js';
import { brokenOff, dataOf, refusalOf, type Api, type Schemas } from '../service.js';
import { collect, pair, rolloutQuery, wholeNumber, type RolloutOptions, withRolloutOptions } from '../options.js';
import { agentEndpoint, environmentOf } from '../agent-environment.js';
import { openSession, type GlobalOptions } from '../session.js';
import { describeItem, feedPages } from './events.js';
import { issuePsk } from './keys.js';

const nodes = typeOf('nodes');
const chains = typeOf('l4-chains');
const waitMs = 30_000;

type DeployedNode = Schemas['Deployment']['nodes'][number];

export function operateCommands(program: Command): void {
  withRolloutOptions(program.command('deploy <chain>'))
    .summary('make the definition of a chain live')
    .option(
      '--wait',
      'wait until every node has applied or rejected it; exit code 1 when one rejected it or is offline',
    )
    .addHelpText('after', '\nExample:\n  svcctl deploy front --wait')
    .action(async (chain: string, _options, command: Command) =>
      deploy(chain, command.optsWithGlobals<DeployOptions>()),
    );

  program
    .command('history <node>')
    .summary('show what happened to a node, oldest first, or its configuration at a generation')
    .option('--generation <n>', 'show the configuration that the node had at this generation')
    .addHelpText('after', '\nExample:\n  svcctl history edge-1')
    .action(async (node: string, _options, command: Command) =>
      history(node, command.optsWithGlobals<GlobalOptions & { readonly generation?: string }>()),
    );

  program
    .command('diff <node> <generation> <generation>')
    .summary('compare the configuration of a node at two generations')
    .addHelpText('after', '\nExample:\n  svcctl diff edge-1 4 7')
    .action(async (node: string, from: string, to: string, _options, command: Command) => {
      const { api } = await openSession(command.optsWithGlobals<GlobalOptions>());
      const { id } = await findOne(api, nodes, node);
      const [before, after] = await Promise.all([configAt(api, id, from), configAt(api, id, to)]);
      const patch = createTwoFilesPatch(
        `generation ${before.generation}`,
        `generation ${after.generation}`,
        yamlOf(before.snapshot),
        yamlOf(after.snapshot),
      );
      await write(patch.split('\n').slice(1).map(coloured).join('\n'));
    });

  program
    .command('revert <entry-or-apply>')
    .summary('undo an audit entry, or an apply of a fleet file')
    .option('--dry-run', 'only show what it would do')
    .addHelpText('after', '\nExample:\n  svcctl revert 01a21a4f-0c34-7b1e-a1c9-6d2a5b7c8d9e --dry-run')
    .action(async (id: string, _options, command: Command) =>
      revert(id, command.optsWithGlobals<GlobalOptions & { readonly dryRun?: true }>()),
    );

  const machine = program
    .command('node')
    .summary('print what the machine of a node needs')
    .addHelpText('after', '\nExample:\n  svcctl node env edge-1');

  machine
    .command('env <node>')
    .summary("print the environment file of a node's agent")
    .option('--issue', 'with a new PSK, which ends the sessions of the old one')
    .option('--yes', 'do not ask before a new PSK')
    .option('--endpoint <url>', 'where agents reach the service; what the service says when left out')
    .addHelpText('after', '\nExample:\n  svcctl node env edge-1 --issue --yes > edge-1.env')
    .action(async (node: string, _options, command: Command) => {
      const options = command.optsWithGlobals<EnvOptions>();
      const { api } = await openSession(options);
      const { id } = await findOne(api, nodes, node);
      const endpoint = options.endpoint ?? (await agentEndpoint(api));
      const psk = options.issue === true ? await issuePsk(api, node, options.yes) : undefined;
      const text = environmentOf(id, endpoint, psk);
      await (psk === undefined ? write(text) : tellSecrets([text]));
    });

  machine
    .command('join')
    .summary('print the line that makes machines nodes, with a new join token')
    .option('--uses <n>', 'how many machines may join', wholeNumber('--uses'))
    .option('--label <key=value>', 'a label of each node; may repeat', collect, [])
    .option('--prefix <text>', 'before the name that a machine gives itself')
    .option('--expires-in-hours <n>', 'how long machines may join', wholeNumber('--expires-in-hours'))
    .addHelpText('after', '\nExample:\n  svcctl node join --uses 20 --label region=eu --prefix edge-')
    .action(async (_options, command: Command) => join(command.optsWithGlobals<JoinOptions>()));
}

interface JoinOptions extends GlobalOptions {
  readonly uses?: number;
  readonly label: readonly string[];
  readonly prefix?: string;
  readonly expiresInHours?: number;
}

async function join({ uses, label, prefix, expiresInHours, ...options }: JoinOptions): Promise<void> {
  const { api } = await openSession(options);
  const labels = Object.fromEntries(label.map((given) => pair(given, '--label')));
  const wanted = { uses, labels, name_prefix: prefix, expires_in_hours: expiresInHours };
  // Nobody has to think of a name for it.
  const body = { name: `join-${randomUUID().slice(0, 8)}`, ...wanted } as Schemas['NewJoinToken'];
  const { command, name } = await dataOf(api.POST('/api/join-tokens', { body }));
  if (command === null) throw refused(`the line was lost; delete join-tokens ${name}, and try again`);
  await tellSecrets([command]);
}

interface EnvOptions extends GlobalOptions {
  readonly issue?: true;
  readonly yes?: true;
  readonly endpoint?: string;
}

interface DeployOptions extends GlobalOptions, RolloutOptions {
  readonly wait?: true;
}

async function deploy(name: string, options: DeployOptions): Promise<void> {
  const { api } = await openSession(options);
  const { id, etag } = await findOne(api, chains, name);
  const { deployment, warnings, rollout_id } = await dataOf(
    api.POST('/api/l4-chains/{id}/deploy', {
      params: {
        path: { id },
        query: {
          ...rolloutQuery(options),
          ...(options.wait === true ? ({ wait: 'applied', timeout_ms: waitMs } as const) : {}),
        },
        header: etag === null ? {} : { 'if-match': etag },
      },
    }),
  );
  sayWarnings(warnings);
  sayRollout(rollout_id);
  const behind =
    options.wait === true ? deployment.nodes.filter(({ state }) => state !== 'applied' && state !== 'held') : [];
  if (behind.length > 0) process.exitCode = exitCodes.refused;
  // It is deployed, whether or not the names of its nodes can be read.
  const { nodes: all } = await dataOf(api.GET('/api/nodes/ports')).catch(() => ({ nodes: [] }));
  const names = new Map(all.map(({ id: nodeId, name: called }) => [nodeId, called]));
  for (const { node_id, generation, state, errors } of deployment.nodes) {
    const label = `${shown(names.get(node_id) ?? node_id)}  generation ${generation}  `;
    await line(`${label}${paint(colourOf(state), state)}`);
    for (const { path, message } of errors) await line(`  ${shown(path)}: ${shown(message)}`);
  }
  if (behind.length === 0) return;
  const states = [...new Set(behind.map(({ state }) => state))].join(', ');
  throw refused(`${behind.length} of ${deployment.nodes.length} nodes have not applied it: ${states}`);
}

function colourOf(state: DeployedNode['state']): Colour {
  switch (state) {
    case 'applied':
      return 'green';
    case 'rejected':
    case 'offline':
      return 'red';
    case 'pending':
    case 'pushed':
    case 'held':
      return 'yellow';
    default:
      return unreachable(state);
  }
}

async function history(name: string, options: GlobalOptions & { readonly generation?: string }): Promise<void> {
  const { api } = await openSession(options);
  const { id } = await findOne(api, nodes, name);
  if (options.generation !== undefined) return printValue(await configAt(api, id, options.generation), 'yaml');
  for await (const page of feedPages(api, { after: 'start', node_id: id })) {
    for (const item of page) await line(describeItem(item));
  }
}

async function configAt(api: Api, id: string, generation: string) {
  if (!/^[0-9]{1,16}$/.test(generation)) throw usage(`${generation}: expected a generation, a whole number`);
  const query = { generation: Number(generation) } as never;
  return dataOf(api.GET('/api/nodes/{id}/config', { params: { path: { id }, query } }));
}

function coloured(text: string): string {
  const escaped = text === '' ? '' : shown(text);
  if (text.startsWith('+')) return paint('green', escaped);
  return text.startsWith('-') ? paint('red', escaped) : escaped;
}

type Shown = Schemas['AuditEntry']['changes'];

async function revert(id: string, options: GlobalOptions & { readonly dryRun?: true }): Promise<void> {
  const { api } = await openSession(options);
  const dryRun = options.dryRun === true;
  const query = dryRun ? ({ dry_run: 'true' } as never) : {};
  const params = { path: { id }, query };
  if (await isApply(api, id)) {
    const { commands, not_reverted } = await dataOf(api.POST('/api/fleet/applies/{id}/revert', { params }));
    for (const entry of commands) await showEntry(api, entry, dryRun);
    for (const { action, id: kept } of not_reverted) await line(`cannot be taken back: ${action} (entry ${kept})`);
    for (const entry of dryRun ? [] : commands)
      await line(`${entry.action} ${shown(entry.resource.name)} (entry ${entry.id})`);
    return;
  }
  const reverted = await dataOf(api.POST('/api/audit/{id}/revert', { params }));
  if (!('action' in reverted)) return showChanges(reverted.changes, true);
  await showEntry(api, reverted, false);
  await line(`${reverted.action} ${shown(reverted.resource.name)} (entry ${reverted.id})`);
}

async function isApply(api: Api, id: string): Promise<boolean> {
  const params = { path: { id } };
  const { response, error } = await api.GET('/api/fleet/applies/{id}', { params }).catch(brokenOff);
  if (!response.ok && response.status !== 404) throw refusalOf(response, error);
  return response.ok;
}

/** All changes of an entry, page by page; a dry run holds only the first ones. */
async function showEntry(api: Api, entry: Schemas['AuditEntry'], dryRun: boolean): Promise<void> {
  const { id, changes, changes_total: total } = entry;
  if (total === changes.length) return showChanges(changes, dryRun);
  if (!dryRun) {
    const pages = numberedPagesOf(api, `/api/audit/${id}/changes`);
    for await (const page of pages) await showChanges(page as Shown, false);
    return;
  }
  await showChanges(changes, true);
  await line(`and ${total - changes.length} more fields`);
}

async function showChanges(changes: Shown, dryRun: boolean): Promise<void> {
  const verb = dryRun ? 'would change' : 'changed';
  for (const { path, before, after, resource } of changes) {
    const of = resource === undefined ? '' : `${resource.type} ${shown(resource.name)} `;
    await line(`${verb} ${of}${shown(path)}: ${shown(before)} → ${shown(after)}`);
  }
}
