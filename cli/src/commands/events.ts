/** events, audit, incidents: what happens, what was done, and what went wrong. */
import { Option, type Command } from 'commander';
import { EventSourceParserStream } from 'eventsource-parser/stream';
import { Failure, exitCodes } from '../exit.js';
import { line, printList, say, shown, type Column, type Format, type Row } from '../output.js';
import { filterOption, filtersOf, formatOption, wholeNumber } from '../options.js';
import { auditFilters, incidentFilters, pagesOf } from '../resources.js';
import { dataOf, refusalOf, type Api, type Schemas } from '../service.js';
import { openSession, type GlobalOptions } from '../session.js';

const again = { firstMs: 500, maxMs: 10_000 };
const itemsPerPage = 500;

/** An item of the feed, as pages and streams have it. */
export interface FeedItem {
  readonly type: string;
  readonly at: string;
  readonly data: Row;
  readonly cursor: string;
}

interface EventsOptions extends GlobalOptions {
  readonly follow?: true;
  readonly types?: string;
  readonly after?: string;
  readonly output: 'text' | 'json';
}

export function eventCommands(program: Command): void {
  program
    .command('events')
    .summary('show what happened, oldest first; with --follow, what happens from now on')
    .option('--follow', 'keep printing new items, also after a disconnect')
    .option('--types <types>', 'only these, comma-separated: command, sign_in, session, apply, status, rollout')
    .option('--after <cursor>', 'only after this cursor; default: start, or now with --follow')
    .addOption(new Option('-o, --output <format>', 'how to print it').choices(['text', 'json']).default('text'))
    .addHelpText('after', '\nExample:\n  svcctl events --types command,apply')
    .action(async (_options, command: Command) => events(command.optsWithGlobals<EventsOptions>()));

  const entries = program
    .command('audit')
    .summary('show who did what, newest first')
    .description(`Filters: ${auditFilters.join(', ')}.`)
    .addOption(formatOption())
    .addOption(filterOption('actor=ada or resource_type=node'))
    .option('--limit <n>', 'at most this many entries', wholeNumber('--limit'), 50)
    .addHelpText('after', '\nExample:\n  svcctl audit --filter resource_type=node --limit 10')
    .action(async (_options, command: Command) =>
      printFirst('/api/audit', auditColumns, command.optsWithGlobals<ListOptions>()),
    );
  entries
    .command('confirm <entry>')
    .summary('keep a change that was made with --confirm manual')
    .addHelpText('after', '\nExample:\n  svcctl audit confirm 01a21a4f-0c34-7b1e-a1c9-6d2a5b7c8d9e')
    .action(async (id: string, _options, command: Command) => confirm(id, command.optsWithGlobals<GlobalOptions>()));

  program
    .command('incidents')
    .summary('show what went wrong, from when until when, newest first')
    .description(`Filters: ${incidentFilters.join(', ')}.`)
    .addOption(formatOption())
    .addOption(filterOption('open=true or resource_type=l4_chain'))
    .option('--limit <n>', 'at most this many incidents', wholeNumber('--limit'), 50)
    .addHelpText('after', '\nExample:\n  svcctl incidents --filter open=true')
    .action(async (_options, command: Command) =>
      printFirst('/api/incidents', incidentColumns, command.optsWithGlobals<ListOptions>()),
    );
}

async function confirm(id: string, options: GlobalOptions): Promise<void> {
  const { api } = await openSession(options);
  const params = { path: { id } };
  const { action, resource } = await dataOf(api.POST('/api/audit/{id}/confirm', { params }));
  await line(`confirmed: ${action} ${shown(resource.name)} (entry ${id})`);
}

async function events(options: EventsOptions): Promise<void> {
  const { api } = await openSession(options);
  const { follow, types, output } = options;
  const filter = types === undefined ? {} : { types };
  const print = (item: FeedItem): Promise<void> => line(output === 'json' ? JSON.stringify(item) : describeItem(item));
  const after = options.after ?? (follow === true ? 'now' : 'start');
  if (follow === true) return followFeed(api, { ...filter, after }, print);
  for await (const page of feedPages(api, { ...filter, after })) for (const item of page) await print(item);
}

/** Pages of the feed up to its end. @throws Failure */
export async function* feedPages(
  api: Api,
  { after, ...filter }: Readonly<Record<string, string>>,
): AsyncGenerator<readonly FeedItem[]> {
  for (let cursor = after; ;) {
    const query = { ...filter, after: cursor, page_size: itemsPerPage } as never;
    // The answer could only be a stream if one had been requested.
    const page = await dataOf<Schemas['EventsPage']>(api.GET('/api/events', { params: { query } }) as never);
    yield page.items as readonly FeedItem[];
    if (page.caught_up) return;
    cursor = page.cursor;
  }
}

/**
 * Follows the feed from a cursor until the process ends; after a disconnect, it continues after the last item.
 * @param tell called with the reason of each disconnect
 * @throws Failure
 */
export async function followFeed(
  api: Api,
  { after, ...filter }: Readonly<Record<string, string>>,
  take: (item: FeedItem) => void | Promise<void>,
  tell: (sentence: string) => void = (sentence) => say(`svcctl: ${shown(sentence)}; trying again`),
): Promise<never> {
  let cursor = after;
  for (let failures = 0; ;) {
    try {
      const { data, error, response } = await api.GET('/api/events', {
        parseAs: 'stream',
        headers: { accept: 'text/event-stream' },
        params: { query: { ...filter, after: cursor } as never },
      });
      if (!response.ok || data === undefined) throw refusalOf(response, error);
      const stream = data as ReadableStream<Uint8Array>;
      for await (const { id, event = '', data: json } of stream
        .pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>)
        .pipeThrough(new EventSourceParserStream())) {
        failures = 0;
        if (event === 'end') break;
        const { at, ...rest } = JSON.parse(json) as Row & { readonly at: string };
        if (event !== 'ready') await take({ type: event, at, data: rest, cursor: id ?? '' });
        if (id !== undefined) cursor = id;
      }
    } catch (error) {
      const refused = error instanceof Failure && error.exitCode !== exitCodes.unreachable && error.status < 500;
      if (refused && error.status !== 429) throw error;
      if (failures === 0) tell(error instanceof Error ? error.message : String(error));
    }
    failures += 1;
    await new Promise((resolve) =>
      setTimeout(resolve, Math.min(again.maxMs, again.firstMs * 2 ** Math.min(failures, 6))),
    );
  }
}

const nameOf = (of: unknown): string => {
  const { name, id } = (of ?? {}) as { readonly name?: unknown; readonly id?: unknown };
  return shown(name ?? id);
};

/** One item as a line. */
export function describeItem({ type, at, data }: FeedItem): string {
  const head = `${at}  ${type.padEnd(7)}  `;
  switch (type) {
    case 'command':
    case 'sign_in':
      return `${head}${actorOf(data)}  ${shown(data['action'])}  ${nameOf(data['resource'])}`;
    case 'session':
      return `${head}${shown(data['node_name'])}  connected, version ${shown(data['agent_version'])}`;
    case 'apply': {
      const errors = Array.isArray(data['errors']) ? (data['errors'] as readonly Row[]) : [];
      const why = errors.map(({ path, message }) => `  ${shown(path)}: ${shown(message)}`).join('');
      return `${head}${shown(data['node_name'])}  ${shown(data['state'])} generation ${shown(data['generation'])}${why}`;
    }
    case 'rollout':
      return `${head}${shown(data['policy'])}  ${shown(data['was'] ?? 'none')} → ${shown(data['state'])}, wave ${shown(data['wave'])}`;
    case 'status':
      return `${head}${nameOf(data['resource'])}  ${shown(data['was'])} → ${shown(data['status'])}`;
    default:
      return `${head}${shown(data)}`;
  }
}

const actorOf = ({ actor, token }: Row): string =>
  nameOf(actor) + (token === null || token === undefined ? '' : ` by ${nameOf(token)}`);

export interface ListOptions extends GlobalOptions {
  readonly output: Format;
  readonly filter: readonly string[];
  readonly limit: number;
}

const auditColumns: readonly Column[] = [
  { title: 'AT', of: ({ at }) => at, brief: ({ at }) => ageOf(String(at)) },
  { title: 'WHO', of: actorOf },
  { title: 'ACTION', of: ({ action }) => action },
  { title: 'RESOURCE', of: ({ resource }) => nameOf(resource) },
  { title: 'ENTRY', whole: true, of: ({ id }) => id },
  { title: 'CHANGED', spare: true, of: ({ changes }) => pathsOf(changes as readonly Row[]) },
  { title: 'REQUEST', wide: true, of: ({ request_id }) => request_id },
];

/** Names each path once: an apply changes the same field of many resources. */
const pathsOf = (changes: readonly Row[]): string => [...new Set(changes.map(({ path }) => path))].join(' ');

const incidentColumns: readonly Column[] = [
  { title: 'BEGAN', of: ({ began_at }) => began_at, brief: ({ began_at }) => ageOf(String(began_at)) },
  { title: 'LASTED', of: ({ duration_secs }) => spanOf(Number(duration_secs)) },
  {
    title: 'ENDED',
    of: ({ ended_at }) => ended_at ?? 'lasts',
    brief: ({ ended_at }) => (ended_at === null ? 'lasts' : 'over'),
  },
  { title: 'RESOURCE', of: ({ resource }) => nameOf(resource) },
  { title: 'STATUS', of: ({ status }) => status },
  { title: 'REASON', spare: true, of: ({ reason }) => reason ?? '' },
  { title: 'INCIDENT', wide: true, of: ({ id }) => id },
];

/** Prints the first rows of a list, by the API's order and the filters of the command. @throws Failure */
export async function printFirst(path: string, columns: readonly Column[], options: ListOptions): Promise<void> {
  const { filter, limit, output, ...global } = options;
  const query = filtersOf(filter);
  const { api } = await openSession(global);
  const pages = first(limit, pagesOf(api, { path }, query));
  await printList(pages, { format: output, columns, nameOf: ({ id }) => String(id) });
}

/** `5m`: how long ago. */
export const ageOf = (at: string): string => spanOf((Date.now() - Date.parse(at)) / 1_000);

function spanOf(lasting: number): string {
  const seconds = Math.max(0, lasting);
  const [size, unit] = (
    [
      [86_400, 'd'],
      [3_600, 'h'],
      [60, 'm'],
    ] as const
  ).find(([one]) => seconds >= one) ?? [1, 's'];
  return `${Math.floor(seconds / size)}${unit}`;
}

/** The first rows of a list. */
async function* first(rows: number, pages: AsyncIterable<readonly Row[]>): AsyncGenerator<readonly Row[]> {
  let left = rows;
  for await (const page of pages) {
    yield page.slice(0, left);
    left -= page.length;
    if (left <= 0) return;
  }
}
