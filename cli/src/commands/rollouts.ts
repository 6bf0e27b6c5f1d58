/** rollouts: changes on their way to their nodes, and the steps that people take. */
import type { Command } from 'commander';
import { ageOf, printFirst, type ListOptions } from './events.js';
import { filterOption, filtersOf, formatOption, wholeNumber } from '../options.js';
import { line, printList, printValue, shown, type Column, type Row } from '../output.js';
import { rolloutFilters } from '../resources.js';
import { dataOf, type Schemas } from '../service.js';
import { openSession, type GlobalOptions } from '../session.js';

const nodesPerPage = 500;

const steps = {
  pause: 'stop before the next wave, until it is resumed',
  resume: 'go on with a paused or halted rollout',
  advance: 'end the bake of the current wave now',
  complete: 'let all waves have the change now',
  revert: 'revert the change',
} as const;

export function rolloutCommands(program: Command): void {
  const rollouts = program
    .command('rollouts [id]')
    .summary('show the rollouts, newest first, or the nodes of one')
    .description(`Filters: ${rolloutFilters.join(', ')}; of one: wave.`)
    .addOption(formatOption())
    .addOption(filterOption('state=halted'))
    .option('--limit <n>', 'at most this many rollouts', wholeNumber('--limit'), 50)
    .addHelpText('after', '\nExample:\n  svcctl rollouts --filter state=halted')
    .action(async (id: string | undefined, _options, command: Command) => {
      const options = command.optsWithGlobals<ListOptions>();
      await (id === undefined ? printFirst('/api/rollouts', columns, options) : nodesOf(id, options));
    });
  for (const [verb, summary] of Object.entries(steps) as [keyof typeof steps, string][]) {
    rollouts
      .command(`${verb} <id>`)
      .summary(summary)
      .addHelpText('after', `\nExample:\n  svcctl rollouts ${verb} 9d1f0a56-7c1b-4f6f-9f3a-5f0a3a7d2b33`)
      .action(async (id: string, _options, command: Command) =>
        step(id, verb, command.optsWithGlobals<GlobalOptions>()),
      );
  }
}

const columns: readonly Column[] = [
  { title: 'STARTED', of: ({ started_at }) => started_at, brief: ({ started_at }) => ageOf(String(started_at)) },
  { title: 'STATE', of: ({ state }) => state },
  { title: 'WAVE', of: ({ wave, waves }) => `${shown(wave)} of ${Array.isArray(waves) ? waves.length : 0}` },
  { title: 'POLICY', of: ({ policy }) => (policy as Schemas['RolloutPolicyCopy']).name },
  { title: 'CHANGE', of: ({ action }) => action },
  { title: 'RESOURCE', of: ({ resource }) => (resource as Schemas['RolloutResource']).name },
  { title: 'ROLLOUT', whole: true, of: ({ id }) => id },
  { title: 'REASON', spare: true, of: ({ reason }) => reason ?? '' },
];

const nodeColumns: readonly Column[] = [
  { title: 'WAVE', of: ({ wave }) => wave },
  { title: 'UNIT', of: ({ unit }) => unit },
  { title: 'NODE', of: ({ node_name }) => node_name },
  { title: 'STATE', of: ({ state }) => state },
  { title: 'GENERATION', of: ({ generation }) => generation },
];

/** Prints tables of the rollout and of all its nodes; as JSON or YAML, the answer with the first page of nodes. */
async function nodesOf(id: string, { filter, output, ...options }: ListOptions): Promise<void> {
  const { api } = await openSession(options);
  const filters = filtersOf(filter);
  const pageOf = (page: number) => {
    const query = { ...filters, page, page_size: nodesPerPage } as never;
    return dataOf(api.GET('/api/rollouts/{id}', { params: { path: { id }, query } }));
  };
  const rollout = await pageOf(1);
  if (output === 'json' || output === 'yaml') return printValue(rollout, output);
  await printList([[rollout]], { format: output, columns, nameOf: () => rollout.id });
  if (output === 'name') return;
  await line('');
  async function* pages(): AsyncGenerator<readonly Row[]> {
    yield rollout.nodes;
    for (let page = 2; (page - 1) * nodesPerPage < rollout.nodes_total; page += 1) yield (await pageOf(page)).nodes;
  }
  await printList(pages(), { format: output, columns: nodeColumns, nameOf: ({ node_name }) => String(node_name) });
}

async function step(id: string, verb: keyof typeof steps, options: GlobalOptions): Promise<void> {
  const { api } = await openSession(options);
  const params = { path: { id } };
  const { state, wave } = await dataOf(api.POST(`/api/rollouts/{id}/${verb}`, { params }));
  await line(`rollout ${id} is ${state}, wave ${wave}`);
}
