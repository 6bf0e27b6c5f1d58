/** plan, export: the fleet as a file. */
import { randomUUID } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { Failure, exitCodes, usage } from '../exit.js';
import type { FleetDocument } from '../fleet/documents.js';
import { readDocuments } from '../fleet/documents.js';
import { fillSecrets } from '../fleet/secrets.js';
import type { Plan } from '../fleet/show.js';
import { showPlan } from '../fleet/show.js';
import { line, say, shown, write } from '../output.js';
import type { Api } from '../service.js';
import { dataOf } from '../service.js';
import type { GlobalOptions } from '../session.js';
import { openSession } from '../session.js';
import { collect } from './resources.js';

interface FileOptions extends GlobalOptions {
  readonly file: readonly string[];
  readonly prune?: true;
  readonly adopt?: true;
  readonly adoptFrom: readonly string[];
  readonly maxDeletes?: string;
  readonly env: readonly string[];
  readonly secrets: boolean;
}

interface Planned {
  readonly document: FleetDocument;
  readonly plan: Plan;
}

export function fleetCommands(program: Command): void {
  withFileOptions(program.command('plan'))
    .summary('what a fleet file would change; exit code 2 when there are changes')
    .addHelpText('after', '\nExample:\n  svcctl plan -f fleet.yaml --prune')
    .action(async (_options, command: Command) => plan(command.optsWithGlobals<FileOptions>()));

  program
    .command('export')
    .summary('the fleet as it is, as fleet files')
    .option('--set <set>', 'only this set; an empty one is what no set owns')
    .option('-d, --directory <folder>', 'a file for each set')
    .addHelpText('after', '\nExample:\n  svcctl export --set default > fleet.yaml')
    .action(async (_options, command: Command) => exportFleet(command.optsWithGlobals<ExportOptions>()));
}

const withFileOptions = (command: Command): Command =>
  command
    .option('-f, --file <file>', 'a fleet file; may repeat; - is stdin', collect, [])
    .option('--prune', 'delete what the set owns and the file does not have')
    .option('--adopt', 'take over resources that no set owns')
    .option('--adopt-from <set>', 'take over resources of this set; may repeat', collect, [])
    .option('--max-deletes <n>', 'how many resources may be deleted')
    .option('--env <name>', 'a variable that {env: …} may read; may repeat', collect, [])
    .option('--no-secrets', 'leave private keys out, for a plan without them');

async function planned(api: Api, options: FileOptions): Promise<readonly Planned[]> {
  const documents = readDocuments(options.file, fillSecrets(options.env, !options.secrets));
  const plans: Planned[] = [];
  for (const document of documents) {
    const body = { document: document.text, ...flagsOf(options) };
    const params = { header: { 'idempotency-key': randomUUID() } };
    const made = await dataOf(api.POST('/api/fleet/plan', { params, body })).catch(withPlaces(document));
    plans.push({ document, plan: made });
  }
  return plans;
}

/** Tells of mistakes where they stand in the files. */
const withPlaces =
  (document: FleetDocument) =>
  (error: unknown): never => {
    if (!(error instanceof Failure)) throw error;
    throw new Failure(error.exitCode, document.placed(error.message), error.requestId, error.status);
  };

function flagsOf({ prune, adopt, adoptFrom, maxDeletes }: FileOptions) {
  if (maxDeletes !== undefined && !/^[0-9]{1,6}$/.test(maxDeletes))
    throw usage('--max-deletes: expected a whole number');
  return {
    prune: prune ?? false,
    adopt: adopt ?? false,
    adopt_from: [...adoptFrom],
    ...(maxDeletes === undefined ? {} : { max_deletes: Number(maxDeletes) }),
  };
}

async function show(plans: readonly Planned[]): Promise<void> {
  for (const { document, plan: one } of plans) {
    if (plans.length > 1) await line(`set ${shown(document.set ?? 'none')}:`);
    await showPlan(one);
  }
}

async function plan(options: FileOptions): Promise<void> {
  const { api } = await openSession(options);
  const plans = await planned(api, options);
  await show(plans);
  refuseObstacles(plans);
  if (plans.some((one) => one.plan.steps.length > 0)) process.exitCode = exitCodes.changes;
}

function refuseObstacles(plans: readonly Planned[]): void {
  const count = plans.reduce((sum, one) => sum + one.plan.obstacles.length, 0);
  if (count > 0) throw new Failure(exitCodes.refused, `${count} obstacles are in the way of an apply`);
}

interface ExportOptions extends GlobalOptions {
  readonly set?: string;
  readonly directory?: string;
}

async function exportFleet({ set, directory, ...options }: ExportOptions): Promise<void> {
  const { api } = await openSession(options);
  const query = set === undefined ? {} : { set };
  const { documents } = await dataOf(api.GET('/api/fleet/export', { params: { query } }));
  if (documents.length === 0) throw new Failure(exitCodes.refused, `there is no set ${shown(set)}`);
  if (directory === undefined) {
    for (const [index, { document }] of documents.entries()) {
      await write(index === 0 ? document : `---\n${document}`);
    }
    return;
  }
  mkdirSync(directory, { recursive: true });
  for (const { set: of, document } of documents) {
    const path = join(directory, `${of === null ? '_no-set' : encodeURIComponent(of)}.yaml`);
    writeFileSync(path, document);
    say(`wrote ${path}`);
  }
}
