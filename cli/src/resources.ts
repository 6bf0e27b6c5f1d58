/**
 * The resources of the API by their names on the command line, and the requests about them. One table serves get, create,
 * edit, delete and completion.
 */
import { refused, usage } from './exit.js';
import type { RolloutQuery } from './options.js';
import { shown, type Column, type Row } from './output.js';
import { deletePolicy, listenerOf, pagesOfPolicies, savePolicy } from './policies.js';
import { dataOf, doneOf, type Api, type paths } from './service.js';

/** Stands for every list of the API, because all have the same form. */
const anyList = '/api/nodes';
const anyOne = '/api/nodes/{id}';

export interface ResourceType {
  readonly plural: string;
  /** Names besides the plural without its layer, and the singular of each. */
  readonly aliases?: readonly string[];
  readonly path: string;
  readonly columns: readonly Column[];
  /** The API's filters for the list. */
  readonly filters: readonly string[];
  readonly nameField: 'name' | 'username';
  /** It has no id and no URL: see `policies.ts`. */
  readonly ofListener?: true;
  /** An API token may not change it: the password is asked for again. */
  readonly byPerson?: true;
}

const column = (title: string, field: string, wide?: true): Column => ({
  title,
  ...(wide === undefined ? {} : { wide }),
  of: (row) => at(row, field),
});

/** A field of a row, by a dotted path. */
function at(row: Row, path: string): unknown {
  return path.split('.').reduce<unknown>((value, key) => (isRow(value) ? value[key] : undefined), row);
}

const isRow = (value: unknown): value is Row => typeof value === 'object' && value !== null;

const id = column('ID', 'id', true);
const updated = column('UPDATED', 'updated_at', true);
const version = column('VERSION', 'version', true);
const meta = [id, version, updated];
const name = column('NAME', 'name');
const count = (title: string, field: string): Column => ({
  title,
  of: (row) => (Array.isArray(row[field]) ? row[field].length : row[field]),
});

/** A list with its filters, which the compiler checks against the published document. */
const listed = <Path extends keyof Lists>(path: Path, ...filters: readonly FilterOf<Path>[]) => ({ path, filters });

type Lists = {
  [
    Path in keyof paths as paths[Path] extends { readonly get: { readonly parameters: { readonly query?: object } } }
      ? Path
      : never
  ]: paths[Path];
};
type FilterOf<Path extends keyof Lists> = Lists[Path] extends {
  readonly get: { readonly parameters: { readonly query?: infer Query } };
}
  ? Exclude<keyof NonNullable<Query>, 'page' | 'page_size' | 'sort'>
  : never;

type Described = Omit<ResourceType, 'nameField'> & Partial<Pick<ResourceType, 'nameField'>>;

const described: readonly Described[] = [
  {
    plural: 'nodes',
    ...listed('/api/nodes', 'q', 'status', 'apply', 'listeners', 'label'),
    columns: [
      name,
      column('STATUS', 'status'),
      column('APPLY', 'apply.state'),
      column('GENERATION', 'generation'),
      column('ADDRESS', 'address'),
      column('AGENT', 'agent_version', true),
      column('LABELS', 'labels', true),
      ...meta,
    ],
  },
  {
    plural: 'l4-chains',
    ...listed('/api/l4-chains', 'q', 'status', 'health', 'node_id', 'upstream_id', 'credential_id'),
    columns: [
      name,
      column('STATUS', 'status'),
      column('HEALTH', 'health.state'),
      column('PAYLOAD', 'payload'),
      count('HOPS', 'hops'),
      column('ENABLED', 'enabled'),
      ...meta,
    ],
  },
  {
    plural: 'l4-upstreams',
    ...listed('/api/l4-upstreams', 'q', 'health'),
    columns: [
      name,
      column('ENDPOINT', 'endpoint'),
      column('ENABLED', 'enabled'),
      column('TLS', 'tls.server_name', true),
      ...meta,
    ],
  },
  {
    plural: 'routes',
    ...listed('/api/routes', 'q'),
    columns: [
      name,
      column('HOST', 'host'),
      column('PATH', 'path_prefix'),
      column('BACKEND', 'backend'),
      column('ENABLED', 'enabled'),
      ...meta,
    ],
  },
  {
    plural: 'credentials',
    ...listed('/api/credentials', 'q', 'key_type', 'expires_before'),
    columns: [
      name,
      column('TYPE', 'key_type'),
      column('ENDS', 'certificate.not_after'),
      column('PUBLIC KEY', 'public_key', true),
      ...meta,
    ],
  },
  {
    plural: 'l3-networks',
    ...listed('/api/l3-networks', 'q'),
    columns: [
      name,
      column('ENABLED', 'enabled'),
      count('MEMBERS', 'members'),
      count('TUNNELS', 'tunnels'),
      column('MTU', 'mtu', true),
      ...meta,
    ],
  },
  {
    plural: 'policies',
    aliases: ['listener-policies'],
    ...listed('/api/nodes/ports', 'node_id', 'transport', 'listen_port', 'running'),
    ofListener: true,
    columns: [name, column('ORDER', 'priorityOrder')],
  },
  {
    plural: 'join-tokens',
    ...listed('/api/join-tokens', 'q'),
    columns: [
      name,
      column('USED', 'used'),
      column('OF', 'uses'),
      column('ENDS', 'expires_at'),
      column('PREFIX', 'name_prefix'),
      column('BY', 'created_by.name', true),
      column('LABELS', 'labels', true),
      ...meta,
    ],
  },
  {
    plural: 'rollout-policies',
    ...listed('/api/rollout-policies', 'q'),
    columns: [
      name,
      count('WAVES', 'waves'),
      column('BAKE', 'bake_secs'),
      column('TIMEOUT', 'apply_timeout_secs'),
      column('MAX FAILED', 'max_failed'),
      column('MAX LOST', 'max_lost'),
      column('ON FAILURE', 'on_failure'),
      ...meta,
    ],
  },
  {
    plural: 'webhooks',
    ...listed('/api/webhooks', 'q'),
    columns: [
      name,
      column('STATE', 'state'),
      column('LAG', 'lag.seconds'),
      column('URL', 'url'),
      column('TYPES', 'types', true),
      ...meta,
    ],
  },
  {
    plural: 'users',
    ...listed('/api/auth/users', 'q'),
    nameField: 'username',
    byPerson: true,
    columns: [
      column('NAME', 'username'),
      column('ROLE', 'role'),
      column('DISPLAY NAME', 'display_name'),
      column('EMAIL', 'email', true),
      ...meta,
    ],
  },
  {
    plural: 'tokens',
    ...listed('/api/auth/tokens', 'q', 'user_id'),
    byPerson: true,
    columns: [
      name,
      column('ROLE', 'role'),
      column('ENDS', 'expires_at'),
      column('LAST USED', 'last_used_at'),
      column('FROM', 'last_used_from'),
      column('PREFIX', 'prefix', true),
      column('USER', 'user_id', true),
      ...meta,
    ],
  },
];

/** All but users are called by their `name`. */
const types = described.map((type): ResourceType => ({ nameField: 'name', ...type }));

export const incidentFilters = listed('/api/incidents', 'resource_type', 'resource_id', 'open', 'from', 'to').filters;
export const rolloutFilters = listed('/api/rollouts', 'state', 'node_id').filters;
export const auditFilters = listed(
  '/api/audit',
  'q',
  'actor',
  'action',
  'resource_type',
  'not_resource_type',
  'resource_id',
  'from',
  'to',
).filters;

/** All types, for help and completion. */
export const typeNames: readonly string[] = types.map(({ plural }) => plural);

/** One line of filters per type. */
export const filterHelp = (): string =>
  ['Filters:', ...types.map(({ plural, filters }) => `- ${plural}: ${filters.join(', ')}`)].join('\n');

const singularOf = (plural: string): string => plural.replace(/ies$/, 'y').replace(/s$/, '');

/** @throws Failure usage */
export function typeOf(word: string): ResourceType {
  const found = types.find(({ plural, aliases = [] }) =>
    [plural, plural.replace(/^l[34]-/, ''), ...aliases].some((many) => word === many || word === singularOf(many)),
  );
  if (found === undefined) throw usage(`${word}: expected a type of resource: ${typeNames.join(', ')}`);
  return found;
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const pageSize = 200;

/** A repeated filter becomes a list. */
export type Query = Readonly<Record<string, string | readonly string[]>>;

/**
 * All of a list, walked: what exists throughout comes exactly once, whatever changes meanwhile. An order that cannot be
 * walked comes in numbered pages.
 * @param query the API's own filters, and `sort`
 * @throws Failure
 */
export async function* pagesOf(
  api: Api,
  { path, ofListener }: Pick<ResourceType, 'path' | 'ofListener'>,
  query: Query = {},
): AsyncGenerator<readonly Row[]> {
  if (ofListener === true) return yield* pagesOfPolicies(api, query);
  const { sort = 'created_at' } = query;
  if (sort !== 'created_at' && sort !== '-created_at') return yield* numberedPagesOf(api, path, query);
  for (let after: string | null = 'start'; after !== null;) {
    const asked = { page_size: pageSize, ...query, after } as never;
    const { items, next = null } = await dataOf(api.GET(path as typeof anyList, { params: { query: asked } }));
    yield items as readonly Row[];
    after = next;
  }
}

/** All of a list that cannot be walked, or does not change. @throws Failure */
export async function* numberedPagesOf(api: Api, path: string, query: Query = {}): AsyncGenerator<readonly Row[]> {
  for (let page = 1, seen = 0; ; page += 1) {
    const asked = { page_size: pageSize, ...query, page } as never;
    const { items, total } = await dataOf(api.GET(path as typeof anyList, { params: { query: asked } }));
    yield items as readonly Row[];
    seen += items.length;
    if (items.length === 0 || seen >= total) return;
  }
}

const natural = new Intl.Collator('en', { numeric: true });

/** All of a list by name, on one page. @throws Failure */
export async function* byName(
  pages: AsyncIterable<readonly Row[]>,
  { nameField }: Pick<ResourceType, 'nameField'>,
): AsyncGenerator<readonly Row[]> {
  const rows: Row[] = [];
  for await (const page of pages) rows.push(...page);
  yield rows.sort((a, b) => natural.compare(String(a[nameField]), String(b[nameField])));
}

/** The first rows of a list. @throws Failure */
export async function firstPageOf(
  api: Api,
  type: Pick<ResourceType, 'path' | 'ofListener'>,
  query: Query,
): Promise<readonly Row[]> {
  for await (const page of pagesOf(api, type, query)) return page;
  return [];
}

export interface Found {
  /** The name if there is no id. */
  readonly id: string;
  readonly name: string;
  readonly fields: Row;
  readonly etag: string | null;
}

/** Finds a resource by name or id. @throws Failure when there is none */
export async function findOne(api: Api, type: ResourceType, nameOrId: string): Promise<Found> {
  if (type.ofListener === true) return findPolicy(api, type, nameOrId);
  const wanted = uuid.test(nameOrId) ? nameOrId : await idOfName(api, type, nameOrId);
  const { data, etag } = await doneOf(
    api.GET(`${type.path}/{id}` as typeof anyOne, { params: { path: { id: wanted } } }),
  );
  const fields = data as Row;
  return { id: wanted, name: String(fields[type.nameField]), fields, etag };
}

async function findPolicy(api: Api, { plural, path }: ResourceType, wanted: string): Promise<Found> {
  for await (const page of pagesOf(api, { path, ofListener: true })) {
    const fields = page.find((row) => nameKey(String(row['name'])) === nameKey(wanted));
    if (fields !== undefined) return { id: wanted, name: String(fields['name']), fields, etag: null };
  }
  throw refused(`none of the ${plural} is of the listener ${wanted}`);
}

/** @param called the name; undefined if it is among the fields @returns the new resource @throws Failure */
export async function createOne(
  api: Api,
  { path, nameField, ofListener }: ResourceType,
  called: string | undefined,
  given: Row,
): Promise<Row> {
  if (ofListener === true) {
    const fields = called === undefined ? given : { ...given, ...(await listenerOf(api, called)) };
    await savePolicy(api, fields);
    return { name: called, ...fields };
  }
  const body = (called === undefined ? given : { ...given, [nameField]: called }) as never;
  return (await dataOf(api.POST(path as typeof anyList, { body }))) as Row;
}

/** @returns the changed resource @throws Failure, a 412 when it was changed since it was read */
export async function changeOne(
  api: Api,
  { path, ofListener }: ResourceType,
  found: Found,
  changes: Row,
  query: RolloutQuery = {},
): Promise<Row> {
  if (ofListener === true) {
    const { name: _, ...fields } = found.fields;
    return savePolicy(api, { ...fields, ...changes }, query);
  }
  const params = { ...paramsOf(found), query };
  const sent = api.PUT(`${path}/{id}` as typeof anyOne, { params, body: changes as never });
  return (await dataOf(sent)) as Row;
}

/** @throws Failure, a 412 when it was changed since it was read */
export async function deleteOne(api: Api, { path, ofListener }: ResourceType, found: Found): Promise<void> {
  if (ofListener === true) return deletePolicy(api, found.fields);
  await dataOf(api.DELETE(`${path}/{id}` as typeof anyOne, { params: paramsOf(found) }));
}

const paramsOf = ({ id: of, etag }: Found) => ({ path: { id: of }, header: etag === null ? {} : { 'if-match': etag } });

/** The resource's name in messages. */
export const labelOf = ({ plural, ofListener }: ResourceType, called: unknown, of: unknown): string =>
  `${plural}/${shown(called)}${ofListener === true ? '' : ` (${shown(of)})`}`;

/** The same for names that the service takes for equal. */
export const nameKey = (text: string): string => text.normalize('NFC').toLowerCase();

async function idOfName(api: Api, type: ResourceType, wanted: string): Promise<string> {
  const found: string[] = [];
  for await (const page of pagesOf(api, type, { q: wanted })) {
    for (const row of page) if (nameKey(String(row[type.nameField])) === nameKey(wanted)) found.push(String(row['id']));
  }
  const [only, ...others] = found;
  if (only === undefined) throw refused(`none of the ${type.plural} has the name ${wanted}`);
  if (others.length > 0)
    throw refused(`${found.length} ${type.plural} are named ${wanted}; expected an id: ${found.join(', ')}`);
  return only;
}
