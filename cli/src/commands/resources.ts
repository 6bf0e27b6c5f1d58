/** get, create, edit, delete: the same for every resource. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { env } from 'node:process';
import type { Command } from 'commander';
import { parse } from 'yaml';
import { confirm, hasTerminal, readStdin, utf8 } from '../ask.js';
import { Failure, exitCodes, refused, usage } from '../exit.js';
import {
  holdSecrets,
  line,
  printList,
  printValue,
  say,
  sayRollout,
  sayWarnings,
  shown,
  tellSecrets,
  yamlOf,
  type Format,
  type Row,
} from '../output.js';
import {
  collect,
  filterOption,
  filtersOf,
  formatOption,
  pair,
  rolloutQuery,
  type RolloutOptions,
  withRolloutOptions,
} from '../options.js';
import {
  byName,
  changeOne,
  createOne,
  deleteOne,
  filterHelp,
  findOne,
  labelOf,
  pagesOf,
  typeNames,
  typeOf,
  type ResourceType,
} from '../resources.js';
import { bodyOf, type Api } from '../service.js';
import { asPerson, openSession, type GlobalOptions, type Session } from '../session.js';

const typeHelp = `TYPE is one of ${typeNames.join(', ')}.`;
/** Secrets that an answer shows only once. */
const onceFields = ['control_psk', 'token', 'secret', 'command'];

interface GetOptions extends GlobalOptions {
  readonly output: Format;
  readonly filter: readonly string[];
  readonly sort?: string;
}

export function resourceCommands(program: Command): void {
  program
    .command('get <type> [name]')
    .summary('list resources, or show one by its name or id')
    .description(`${typeHelp}\n\n${filterHelp()}`)
    .addOption(formatOption())
    .addOption(filterOption('status=offline'))
    .option(
      '--sort <field>',
      'sort by this field; with a leading -, in reverse; default: tables by name, others by creation',
    )
    .addHelpText('after', '\nExample:\n  svcctl get nodes -o wide')
    .action(async (word: string, name: string | undefined, _options, command: Command) =>
      get(typeOf(word), name, command.optsWithGlobals<GetOptions>()),
    );

  program
    .command('create <type> [name]')
    .summary('create a resource from a file and options')
    .description(`${typeHelp} Fields are those of the API's POST.`)
    .option('-f, --file <file>', 'YAML or JSON of the fields; - is stdin')
    .option('--set <path=value>', 'a field, such as labels.region=eu; may repeat', collect, [])
    .addHelpText('after', '\nExample:\n  svcctl create l4-upstreams web --set endpoint=203.0.113.5:443')
    .action(async (word: string, name: string | undefined, _options, command: Command) =>
      create(typeOf(word), name, command.optsWithGlobals<CreateOptions>()),
    );

  withRolloutOptions(program.command('edit <type> <name>'))
    .summary('change a resource in $EDITOR, as YAML')
    .description(
      `${typeHelp} Only your changes are sent, null for a field whose line is gone; if somebody else has changed the resource meanwhile, nothing is.`,
    )
    .addHelpText('after', '\nExample:\n  svcctl edit l4-upstreams web')
    .action(async (word: string, name: string, _options, command: Command) =>
      edit(typeOf(word), name, command.optsWithGlobals<EditOptions>()),
    );

  program
    .command('delete <type> <name>')
    .summary('delete a resource')
    .description(typeHelp)
    .option('--yes', 'do not ask')
    .addHelpText('after', '\nExample:\n  svcctl delete l4-upstreams web --yes')
    .action(async (word: string, name: string, _options, command: Command) =>
      remove(typeOf(word), name, command.optsWithGlobals<GlobalOptions & { readonly yes?: true }>()),
    );
}

async function get(type: ResourceType, name: string | undefined, options: GetOptions): Promise<void> {
  const { api } = await openSession(options);
  const { output, filter, sort } = options;
  const nameOf = (row: Row): string => String(row[type.nameField]);
  if (name !== undefined) {
    const { fields } = await findOne(api, type, name);
    if (output === 'json' || output === 'yaml') return printValue(fields, output);
    return printList([[fields]], { format: output, columns: type.columns, nameOf });
  }
  const query = filtersOf(filter);
  if (sort !== undefined) query['sort'] = sort;
  const pages = pagesOf(api, type, query);
  const isForPeople = output === 'table' || output === 'wide';
  const shown = isForPeople && sort === undefined && type.ofListener !== true ? byName(pages, type) : pages;
  return printList(shown, { format: output, columns: type.columns, nameOf });
}

/** Signs in as the person where an API token has no access. */
function withRights<T>(
  session: Session,
  type: ResourceType,
  options: GlobalOptions,
  run: (api: Api) => Promise<T>,
): Promise<T> {
  return type.byPerson === true ? asPerson(session, options, run) : run(session.api);
}

interface CreateOptions extends GlobalOptions {
  readonly file?: string;
  readonly set: readonly string[];
}

async function create(type: ResourceType, name: string | undefined, options: CreateOptions): Promise<void> {
  const session = await openSession(options);
  const fields =
    options.file === undefined
      ? {}
      : fieldsOf(options.file, options.file === '-' ? await readStdin() : fileText(options.file));
  for (const given of options.set) {
    const [path, value] = pair(given, '--set');
    setAt(fields, path, valueOf(`--set ${path}`, value));
  }
  const row = await withRights(session, type, options, (api) => createOne(api, type, name, fields));
  const secrets = secretsIn(row);
  holdSecrets(secrets);
  warn(row);
  await line(`created ${labelOf(type, row[type.nameField], row['id'])}`);
  if (secrets.length > 0) await tellSecrets(secrets);
}

/** What only the answer of a save has, a line each. */
const secretsIn = (row: Row): readonly string[] =>
  onceFields.flatMap((field) => (typeof row[field] === 'string' ? [`${field}: ${row[field]}`] : []));

/** Says what the answer of a save warns of, and which rollout it has started. */
function warn({ warnings, rollout_id }: Row): void {
  sayRollout(rollout_id);
  if (Array.isArray(warnings)) sayWarnings(warnings.map(String));
}

function fileText(path: string): string {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (error) {
    throw usage(`${path}: ${(error as Error).message}`);
  }
  return utf8(bytes, path);
}

/** A value in YAML. @throws Failure usage */
function valueOf(from: string, text: string): unknown {
  try {
    return parse(text, { version: '1.2' });
  } catch (error) {
    // The lines after the first repeat the place in the text.
    throw usage(`${from}: ${(error as Error).message.split('\n', 1)[0]}`);
  }
}

function fieldsOf(from: string, text: string): Record<string, unknown> {
  const value = valueOf(from, text);
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw usage(`${from}: expected fields and their values`);
  return value as Record<string, unknown>;
}

/** Sets a value at a path such as `hops[0].listen_port`. @throws Failure usage */
function setAt(fields: Record<string, unknown>, path: string, value: unknown): void {
  const keys = path.split(/\.|(?=\[)/).map((key) => (/^\[\d{1,3}\]$/.test(key) ? Number(key.slice(1, -1)) : key));
  let here: Record<string | number, unknown> = fields;
  for (const [index, key] of keys.entries()) {
    if (key === '' || key === '__proto__') throw usage(`--set ${path}: expected a path such as hops[0].listen_port`);
    if (index === keys.length - 1) here[key] = value;
    else {
      if (typeof here[key] !== 'object' || here[key] === null)
        here[key] = typeof keys[index + 1] === 'number' ? [] : {};
      here = here[key] as Record<string | number, unknown>;
    }
  }
}

type EditOptions = GlobalOptions & RolloutOptions;

async function edit(type: ResourceType, name: string, options: EditOptions): Promise<void> {
  const session = await openSession(options);
  const { api } = session;
  const [found, editable] = await Promise.all([findOne(api, type, name), editableFields(api, type)]);
  const { fields } = found;
  const before = Object.fromEntries(editable.filter((field) => field in fields).map((field) => [field, fields[field]]));
  const emptied = Object.fromEntries(Object.keys(before).map((field) => [field, null]));
  const folder = mkdtempSync(join(tmpdir(), 'svcctl-'));
  const file = join(folder, `${type.plural}.yaml`);
  writeFileSync(file, yamlOf(before), { mode: 0o600 });
  const keep = (error: unknown): never => {
    say(`svcctl: what you wrote is in ${file}`);
    throw error;
  };
  let secrets: readonly string[] = [];
  const send = async (): Promise<readonly string[]> => {
    // Who deletes a line wants its field empty; where it cannot be, the service says so.
    const after = { ...emptied, ...fieldsOf(file, readFileSync(file, 'utf8')) };
    const changes = Object.entries(after).filter(
      ([field, value]) => JSON.stringify(value) !== JSON.stringify(before[field]),
    );
    const sent = Object.fromEntries(changes);
    if (changes.length > 0) {
      const row = await withRights(session, type, options, (allowed) =>
        changeOne(allowed, type, found, sent, rolloutQuery(options)),
      );
      // Such as the secret of a webhook whose format has become standard.
      secrets = secretsIn(row);
      holdSecrets(secrets);
      warn(row);
    }
    return Object.keys(sent);
  };
  const changed = await editUntilTaken(file, send).catch(keep);
  rmSync(folder, { recursive: true, force: true });
  const what = changed.join(', ');
  await line(changed.length === 0 ? 'nothing was changed' : `changed ${what} of ${type.plural}/${shown(name)}`);
  if (secrets.length > 0) await tellSecrets(secrets);
}

const mistakeMark = '# svcctl: ';

/**
 * Opens the editor; on a terminal again, with the mistake above the text, until the text is accepted or left unchanged.
 * @throws Failure the last one
 */
async function editUntilTaken<T>(file: string, send: () => Promise<T>): Promise<T> {
  for (let refused = ''; ;) {
    openEditor(file);
    const text = utf8(readFileSync(file), file)
      .split('\n')
      .filter((one) => !one.startsWith(mistakeMark))
      .join('\n');
    // Earlier mistakes are removed first, so that line numbers match the text.
    writeFileSync(file, text);
    try {
      return await send();
    } catch (error) {
      if (!(error instanceof Failure) || !isMistake(error) || text === refused || !hasTerminal()) throw error;
      refused = text;
      writeFileSync(file, `${mistakeMark}${shown(error.message)}\n${text}`);
    }
  }
}

/** Whether the text is at fault, not a concurrent change. */
const isMistake = ({ exitCode, status }: Failure): boolean =>
  exitCode === exitCodes.usage || status === 400 || status === 409;

/** @throws Failure usage */
function openEditor(file: string): void {
  const [program = 'vi', ...given] = (env['VISUAL'] || env['EDITOR'] || 'vi').split(' ');
  const { status, error } = spawnSync(program, [...given, file], { stdio: 'inherit' });
  if (error !== undefined || status !== 0) {
    throw usage(`${program} failed: ${error?.message ?? `exit code ${status}`}`);
  }
}

interface DocumentPart {
  readonly $ref?: string;
  readonly properties?: Readonly<Record<string, unknown>>;
}

/** The fields of the resource's PUT in the published document. */
async function editableFields(api: Api, { path, plural, ofListener }: ResourceType): Promise<readonly string[]> {
  // The other fields identify the listener.
  if (ofListener === true) return ['priorityOrder'];
  const { body } = await bodyOf(api.GET('/openapi.json', { parseAs: 'json' }));
  const document = body as unknown as {
    readonly paths: Readonly<
      Record<
        string,
        {
          readonly put?: {
            readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: DocumentPart }>> };
          };
        }
      >
    >;
    readonly components: { readonly schemas: Readonly<Record<string, DocumentPart>> };
  };
  const schema = document.paths[`${path}/{id}`]?.put?.requestBody?.content['application/json']?.schema;
  if (schema === undefined) throw usage(`${plural} cannot be edited`);
  const { properties = {} } =
    schema.$ref === undefined ? schema : (document.components.schemas[schema.$ref.split('/').at(-1) ?? ''] ?? {});
  return Object.keys(properties);
}

async function remove(
  type: ResourceType,
  name: string,
  options: GlobalOptions & { readonly yes?: true },
): Promise<void> {
  const session = await openSession(options);
  const found = await findOne(session.api, type, name);
  if (type.plural === 'users') throw refused('users are not deleted; reset the password to shut somebody out');
  const label = labelOf(type, found.name, found.id);
  await confirm(`Delete ${label}?`, options.yes);
  const own = type.plural === 'tokens' && found.id === session.context.token_id;
  const run = (api: Api): Promise<void> => deleteOne(api, type, found);
  await (own ? run(session.api) : withRights(session, type, options, run));
  await line(`deleted ${label}`);
}
