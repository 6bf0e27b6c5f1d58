/** label, command: of one node or many. */
import type { Command } from 'commander';
import { refused, usage } from '../exit.js';
import { leavesUndone, line, say, shown } from '../output.js';
import { filterOption, filtersOf, pair } from '../options.js';
import { findOne, nameKey, pagesOf, typeOf } from '../resources.js';
import { dataOf, type Api, type Schemas } from '../service.js';
import { openSession, type GlobalOptions } from '../session.js';

const nodes = typeOf('nodes');
/** The maximum number of nodes in one request. */
const atOnce = 500;
/** More names than this are looked up in a list of all nodes, because a search for each would cost more. */
const searched = 20;

type AgentCommand = Schemas['AgentCommand']['command'];
export const agentCommands: readonly AgentCommand[] = ['RELOAD_CONFIG', 'RESTART_PINGORA', 'RUN_DIAGNOSTICS'];

type Options = GlobalOptions & { readonly filter: readonly string[] };
const filterOfNodes = () => filterOption('label=region:eu');
const several = `More than ${atOnce} nodes are sent in several commands of the service, each with an audit entry.`;

export function bulkCommands(program: Command): void {
  program
    .command('label <node-or-label...>')
    .summary('change labels of nodes')
    .description(`Nodes by name or id, or by --filter; then KEY=VALUE sets a label, KEY- removes one. ${several}`)
    .addOption(filterOfNodes())
    .addHelpText('after', '\nExample:\n  svcctl label edge-1 edge-2 region=eu rack-')
    .action(async (words: readonly string[], _options, command: Command) =>
      label(words, command.optsWithGlobals<Options>()),
    );

  program
    .command('command <node-or-command...>')
    .summary('send a command to the agents of nodes: RELOAD_CONFIG, RESTART_PINGORA or RUN_DIAGNOSTICS')
    .description(`Nodes by name or id, or by --filter; the command comes last. ${several}`)
    .addOption(filterOfNodes())
    .addHelpText('after', '\nExample:\n  svcctl command edge-1 RELOAD_CONFIG')
    .action(async (words: readonly string[], _options, command: Command) =>
      send(words.slice(0, -1), words.at(-1), command.optsWithGlobals<Options>()),
    );
}

async function label(words: readonly string[], options: Options): Promise<void> {
  const isSet = (word: string): boolean => word.indexOf('=') > 0;
  const isRemoved = (word: string): boolean => !isSet(word) && word.length > 1 && word.endsWith('-');
  const named = words.filter((word) => !isSet(word) && !isRemoved(word));
  if (named.length === words.length) throw usage('expected KEY=VALUE or KEY- after the nodes');
  const set = Object.fromEntries(words.filter(isSet).map((word) => pair(word, 'label')));
  const remove = words.filter(isRemoved).map((word) => word.slice(0, -1));
  const { api } = await openSession(options);
  const all = parts(await idsOf(api, named, options));
  for (const node_ids of all) {
    const { entry } = await dataOf(api.POST('/api/nodes/labels', { body: { node_ids, set, remove } }));
    const done =
      entry === null ? 'nothing to change' : `changed labels of ${shown(entry.resource.name)} (entry ${entry.id})`;
    leavesUndone(node_ids !== all.at(-1));
    await line(done);
  }
}

async function send(named: readonly string[], word: string | undefined, options: Options): Promise<void> {
  const command = agentCommands.find((one) => one === word);
  if (command === undefined) throw usage(`${word}: expected a command after the nodes: ${agentCommands.join(', ')}`);
  const { api } = await openSession(options);
  const ids = await idsOf(api, named, options);
  const [only, ...others] = ids;
  if (only !== undefined && others.length === 0) {
    const sent = await dataOf(
      api.POST('/api/nodes/{id}/commands', { params: { path: { id: only } }, body: { command } }),
    );
    return line(`${sent.command} is ${sent.state} (${sent.id}) until ${sent.expires_at}`);
  }
  const all = parts(ids);
  for (const node_ids of all) {
    const { entry, items } = await dataOf(api.POST('/api/nodes/commands', { body: { node_ids, command } }));
    const until = shown(items[0]?.expires_at);
    leavesUndone(node_ids !== all.at(-1));
    await line(`${command} is queued for ${shown(entry.resource.name)} (entry ${entry.id}) until ${until}`);
  }
}

/** The nodes that are named, or that the filters find. @throws Failure */
async function idsOf(api: Api, named: readonly string[], { filter }: Options): Promise<readonly string[]> {
  if (named.length > 0 === filter.length > 0) throw usage('expected names of nodes, or --filter');
  const ids = new Set<string>();
  const listed = new Map<string, string>();
  if (named.length > searched) {
    for await (const page of pagesOf(api, nodes))
      for (const row of page) listed.set(nameKey(String(row['name'])), String(row['id']));
  }
  for (const one of named) ids.add(listed.get(nameKey(one)) ?? (await findOne(api, nodes, one)).id);
  if (filter.length > 0)
    for await (const page of pagesOf(api, nodes, filtersOf(filter))) for (const row of page) ids.add(String(row['id']));
  if (ids.size === 0) throw refused('no node fits the filters');
  return [...ids];
}

/** At most as many as one request takes; says so when they are several. */
function parts(ids: readonly string[]): string[][] {
  const all = Array.from({ length: Math.ceil(ids.length / atOnce) }, (_, part) =>
    ids.slice(part * atOnce, (part + 1) * atOnce),
  );
  if (all.length > 1) say(`svcctl: ${ids.length} nodes are sent in ${all.length} commands`);
  return all;
}
