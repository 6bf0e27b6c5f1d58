/** plan, apply, export, drift: the fleet as a file. */
import { randomUUID } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Option, type Command } from 'commander';
import { confirm } from '../ask.js';
import { Failure, exitCodes, refused, usage } from '../exit.js';
import { readDocuments, type FleetDocument } from '../fleet/documents.js';
import { fileNameOf } from '../fleet/kept-files.js';
import { preparePsks, type Applied } from '../fleet/psks.js';
import { fillSecrets } from '../fleet/secrets.js';
import { counted, showDrift, showPlan, summary, type Plan } from '../fleet/show.js';
import { leavesUndone, line, printValue, say, sayRollout, sayWarnings, shown, write } from '../output.js';
import { waitForNodes } from '../fleet/wait.js';
import { collect, rolloutQuery, wholeNumber, type RolloutOptions, withRolloutOptions } from '../options.js';
import { dataOf, isAway, isBusy, patiently, type Api } from '../service.js';
import { openSession, type GlobalOptions } from '../session.js';
import { agentEndpoint } from '../agent-environment.js';

interface FileOptions extends GlobalOptions {
  readonly file: readonly string[];
  readonly prune?: true;
  readonly adopt?: true;
  readonly adoptFrom: readonly string[];
  readonly maxDeletes?: number;
  readonly env: readonly string[];
  readonly secrets: boolean;
  readonly output: 'text' | 'json';
}

interface ApplyOptions extends FileOptions, RolloutOptions {
  readonly yes?: true;
  readonly pskDir?: string;
  readonly wait?: true;
  readonly timeout?: number;
}

interface Planned {
  readonly document: FleetDocument;
  readonly plan: Plan;
}

const waitDefaultSeconds = 30;

export function fleetCommands(program: Command): void {
  withFileOptions(program.command('plan'))
    .summary('show what a fleet file would change; exit code 2 when there are changes')
    .addHelpText('after', '\nExample:\n  svcctl plan -f fleet.yaml --prune')
    .action(async (_options, command: Command) => plan(command.optsWithGlobals<FileOptions>()));

  withRolloutOptions(withFileOptions(program.command('apply')))
    .summary('make the fleet what a file says, as one command for each set')
    .option('--yes', 'do not ask')
    .option('--psk-dir <folder>', 'issue PSKs for new nodes, and write the environment file of each there')
    .option(
      '--wait',
      'wait until every node has applied or rejected it; exit code 1 when one rejected it or is offline',
    )
    .option('--timeout <seconds>', `how long to wait (${waitDefaultSeconds})`, wholeNumber('--timeout'))
    .addHelpText('after', '\nExample:\n  svcctl apply -f fleet.yaml --prune --yes')
    .action(async (_options, command: Command) => apply(command.optsWithGlobals<ApplyOptions>()));

  program
    .command('drift [set]')
    .summary('show what was changed by hand since a set was applied; exit code 2 when something was')
    .addHelpText('after', '\nExample:\n  svcctl drift default')
    .action(async (set: string | undefined, _options, command: Command) =>
      drift(set, command.optsWithGlobals<GlobalOptions>()),
    );

  program
    .command('export')
    .summary('write the current fleet as fleet files')
    .option('--set <set>', 'only this set; an empty name selects what no set owns')
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
    .option('--max-deletes <n>', 'how many resources may be deleted', wholeNumber('--max-deletes'))
    .option('--env <name>', 'a variable that {env: …} may read; may repeat', collect, [])
    .option('--no-secrets', 'leave private keys out, for a plan without them')
    .addOption(
      new Option('-o, --output <format>', 'json prints the answer of the service')
        .choices(['text', 'json'])
        .default('text'),
    );

/** Plans the documents. Their warnings go to stderr, in every format. */
async function planned(api: Api, options: FileOptions): Promise<readonly Planned[]> {
  const documents = readDocuments(options.file, fillSecrets(options.env, !options.secrets));
  const plans: Planned[] = [];
  for (const document of documents) {
    const body = { document: document.text, ...flagsOf(options) };
    const made = await patiently(() => dataOf(api.POST('/api/fleet/plan', { body })), isBusy).catch(
      withPlaces(document),
    );
    sayWarnings(made.warnings);
    plans.push({ document, plan: made });
  }
  return plans;
}

/** Replaces the places in a refusal with those in the files. */
const withPlaces =
  (document: FleetDocument) =>
  (error: unknown): never => {
    if (!(error instanceof Failure)) throw error;
    throw new Failure(error.exitCode, document.placed(error.message), error);
  };

function flagsOf({ prune, adopt, adoptFrom, maxDeletes }: FileOptions) {
  return {
    prune: prune ?? false,
    adopt: adopt ?? false,
    adopt_from: [...adoptFrom],
    ...(maxDeletes === undefined ? {} : { max_deletes: maxDeletes }),
  };
}

async function show(plans: readonly Planned[]): Promise<void> {
  for (const { document, plan: one } of plans) {
    if (plans.length > 1) await line(`set ${shown(document.set ?? 'none')}:`);
    await showPlan(one);
  }
  await line(summary(plans.map((one) => one.plan)));
}

async function plan(options: FileOptions): Promise<void> {
  const { api } = await openSession(options);
  const plans = await planned(api, options);
  if (plans.some((one) => one.plan.steps.length > 0)) process.exitCode = exitCodes.changes;
  if (options.output === 'text') await show(plans);
  else for (const one of plans) await printValue(one.plan, options.output);
  refuseObstacles(plans);
}

function refuseObstacles(plans: readonly Planned[]): void {
  const count = plans.reduce((sum, one) => sum + one.plan.obstacles.length, 0);
  if (count > 0) throw refused(`${count} obstacles are in the way of an apply`);
}

async function apply(options: ApplyOptions): Promise<void> {
  if (options.timeout !== undefined && options.wait !== true) throw usage('--timeout: expected --wait');
  const { api } = await openSession(options);
  const plans = await planned(api, options);
  const isText = options.output === 'text';
  leavesUndone(true);
  if (isText) await show(plans);
  refuseObstacles(plans);
  const all = plans.map((one) => one.plan);
  if (all.some(({ steps }) => steps.length > 0)) await confirm('Apply this?', options.yes);
  const endpoint = options.pskDir === undefined ? '' : await agentEndpoint(api);
  for (const planned of plans) {
    const psks = options.pskDir === undefined ? undefined : preparePsks(options.pskDir, planned.plan);
    const done = await applyOne(api, planned, options).catch((error: unknown) => {
      psks?.drop();
      throw error;
    });
    const kept = psks === undefined ? [] : await psks.keep(api, done, endpoint);
    sayRollout(done.rollout_id);
    if (isText) await line(`applied ${counted(done.commands.length, 'command')} (apply ${done.apply_id})`);
    else await printValue(withoutPsks(done), 'json');
    for (const path of kept) await (isText ? line : say)(`wrote ${path}`);
    if (done.incomplete !== null) {
      const { error, commands_left } = done.incomplete;
      throw refused(`incomplete, ${commands_left} commands are left: ${error}`);
    }
  }
  if (options.wait === true) {
    await waitForNodes(api, all, (options.timeout ?? waitDefaultSeconds) * 1_000, isText ? line : say);
  }
  leavesUndone(false);
}

/** The PSKs are in their files or were printed, so the printed answer holds none. */
const withoutPsks = (applied: Applied): Applied => ({
  ...applied,
  control_psks: applied.control_psks.map((one) => ({ ...one, control_psk: null })),
});

/** Repeats the apply with the same key until it is answered; the service carries it out once. */
async function applyOne(api: Api, { document, plan: one }: Planned, options: ApplyOptions): Promise<Applied> {
  const body = { document: document.text, ...flagsOf(options), issue_psks: options.pskDir !== undefined };
  const header = { 'idempotency-key': randomUUID(), 'if-match': `"${one.etag.replaceAll('"', '')}"` };
  const params = { header, query: rolloutQuery(options) };
  const given = (): Promise<Applied> => dataOf(api.POST('/api/fleet/apply', { params, body }));
  return patiently(given, isAway).catch(withPlaces(document));
}

async function drift(only: string | undefined, options: GlobalOptions): Promise<void> {
  const { api } = await openSession(options);
  const sets = only === undefined ? await driftedSets(api) : [only];
  for (const set of sets) {
    const { items } = await dataOf(api.GET('/api/fleet/sets/{set}/drift', { params: { path: { set } } }));
    if (items.length > 0) process.exitCode = exitCodes.changes;
    if (only === undefined && items.length > 0) await line(`set ${shown(set)}:`);
    await showDrift(items);
  }
  if (process.exitCode === undefined) await line('no drift');
}

async function driftedSets(api: Api): Promise<readonly string[]> {
  const { items } = await dataOf(api.GET('/api/fleet/sets'));
  return items.filter((one) => one.drift > 0).map(({ set }) => set);
}

interface ExportOptions extends GlobalOptions {
  readonly set?: string;
  readonly directory?: string;
}

async function exportFleet({ set, directory, ...options }: ExportOptions): Promise<void> {
  const { api } = await openSession(options);
  const query = set === undefined ? {} : { set };
  const { documents } = await dataOf(api.GET('/api/fleet/export', { params: { query } }));
  if (documents.length === 0) throw refused(`there is no set ${shown(set)}`);
  if (directory === undefined) {
    for (const [index, { document }] of documents.entries()) {
      await write(index === 0 ? document : `---\n${document}`);
    }
    return;
  }
  for (const { set: of, document } of documents) {
    const path = join(directory, of === null ? '_no-set.yaml' : fileNameOf(of, '.yaml'));
    try {
      mkdirSync(directory, { recursive: true });
      writeFileSync(path, document);
    } catch (error) {
      throw refused(`${path}: ${(error as Error).message}`);
    }
    say(`wrote ${path}`);
  }
}
