/**
 * Each row of the table of endpoints in `docs/contract/service-specification.txt`, read from there, and each route that
 * `docs/contract/rest.md` adds: who may call it, and that its success is as the OpenAPI document says.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createMaker, idlessPaths, sessionPaths, type Maker } from '../support/one-of-each.js';
import { operationsOf, type Operation } from '../support/openapi-document.js';
import { openApiAnswers, type OpenApiAnswers } from '../support/openapi-answers.js';
import { projectRoot } from '../support/project-root.js';
import { password, startRest, type Call, type JsonData, type RestFixture } from '../support/rest-fixture.js';

interface Row {
  readonly method: string;
  readonly path: string;
  readonly notes: string;
}

const specification = readFileSync(join(projectRoot, 'docs/contract/service-specification.txt'), 'utf8');
const section = specification.slice(specification.indexOf('### 4.1 REST'), specification.indexOf('### 4.2 '));
const specified: readonly Row[] = [...section.matchAll(/^\| (GET|POST|PUT|DELETE) \| (\S+) \| (.*) \|$/gm)].map(
  ([, method = '', path = '', notes = '']) => ({ method, path, notes }),
);

/** What `docs/contract/rest.md` calls an extension. */
const extensions: readonly Row[] = [
  ['GET', '/api/auth/users/{id}', 'admin only'],
  ['PUT', '/api/auth/users/{id}/password', 'admin only'],
  ['POST', '/api/auth/logout'],
  ['GET', '/api/auth/tokens', 'own'],
  ['POST', '/api/auth/tokens', 'own'],
  ['GET', '/api/auth/tokens/{id}', 'own'],
  ['DELETE', '/api/auth/tokens/{id}', 'own'],
  ['GET', '/api/nodes/{id}/config'],
  ['POST', '/api/nodes/{id}/commands'],
  ['GET', '/api/nodes/{id}/commands'],
  ['POST', '/api/nodes/labels'],
  ['POST', '/api/nodes/commands'],
  ['GET', '/api/nodes/{id}/metrics'],
  ['DELETE', '/api/nodes/{id}/psk/candidate'],
  ['GET', '/api/nodes/{id}/links'],
  ['GET', '/api/nodes/{id}/referrers'],
  ['GET', '/api/nodes/control-endpoint'],
  ['GET', '/api/nodes/{id}/history'],
  ['GET', '/api/l4-chains/{id}/history'],
  ['GET', '/api/l4-upstreams/{id}/history'],
  ['GET', '/api/l4-upstreams/{id}/health'],
  ['GET', '/api/l4-chains/{id}/deployments'],
  ['GET', '/api/l4-chains/{id}/plan'],
  ['DELETE', '/api/nodes/ports/policies'],
  ['GET', '/api/credentials/{id}'],
  ['GET', '/api/events'],
  ['GET', '/api/incidents'],
  ['GET', '/api/topology'],
  ['GET', '/api/nodes/labels'],
  ['GET', '/api/dashboard/history'],
  ['GET', '/api/rollout-policies'],
  ['POST', '/api/rollout-policies'],
  ['GET', '/api/rollout-policies/{id}'],
  ['PUT', '/api/rollout-policies/{id}'],
  ['DELETE', '/api/rollout-policies/{id}'],
  ['GET', '/api/rollouts'],
  ['GET', '/api/rollouts/{id}'],
  ['POST', '/api/rollouts/{id}/pause'],
  ['POST', '/api/rollouts/{id}/resume'],
  ['POST', '/api/rollouts/{id}/advance'],
  ['POST', '/api/rollouts/{id}/complete'],
  ['POST', '/api/rollouts/{id}/revert'],
  ['POST', '/api/audit/{id}/confirm'],
  ['GET', '/api/service/identity'],
  ['POST', '/api/service/identity/rotate', 'admin only'],
  ['POST', '/api/service/identity/retire', 'admin only'],
  ['GET', '/api/join-tokens'],
  ['POST', '/api/join-tokens'],
  ['GET', '/api/join-tokens/{id}'],
  ['DELETE', '/api/join-tokens/{id}'],
  ['GET', '/api/webhooks', 'admin only'],
  ['POST', '/api/webhooks', 'admin only'],
  ['GET', '/api/webhooks/{id}', 'admin only'],
  ['PUT', '/api/webhooks/{id}', 'admin only'],
  ['DELETE', '/api/webhooks/{id}', 'admin only'],
  ['POST', '/api/webhooks/{id}/resume', 'admin only'],
  ['POST', '/api/webhooks/{id}/ping', 'admin only'],
  ['GET', '/api/webhooks/{id}/deliveries', 'admin only'],
  ['GET', '/api/audit/{id}'],
  ['GET', '/api/audit/{id}/changes'],
  ['GET', '/api/nodes/{id}/free-ports'],
  ['GET', '/api/nodes/{id}/diagnostics', 'admin or operator only'],
  ['GET', '/api/l4-chains/{id}/links'],
  ['GET', '/api/l4-chains/transports'],
  ['GET', '/api/fleet/export'],
  ['POST', '/api/fleet/plan', 'viewers too'],
  ['POST', '/api/fleet/apply'],
  ['GET', '/api/fleet/applies/{id}'],
  ['POST', '/api/fleet/applies/{id}/revert'],
  ['GET', '/api/fleet/sets'],
  ['GET', '/api/fleet/sets/{set}/drift'],
  ['POST', '/api/fleet/sets/{set}/release'],
  ['GET', '/api/l3-networks'],
  ['POST', '/api/l3-networks'],
  ['GET', '/api/l3-networks/{id}'],
  ['PUT', '/api/l3-networks/{id}'],
  ['DELETE', '/api/l3-networks/{id}'],
  ['GET', '/api/l3-networks/{id}/nodes'],
].map(([method = '', path = '', notes = '']) => ({ method, path, notes }));

const besideTheApi = ['/healthz', '/readyz', '/metrics', '/openapi.json', '/docs'];

/** Bodies that do not follow from the document, because they are changes, or depend on what is there. */
const bodies: { readonly [row: string]: object } = {
  'POST /api/auth/login': { username: 'viewer', password },
  'PUT /api/auth/me': { display_name: 'Ada Lovelace' },
  'PUT /api/auth/password': { current_password: password, new_password: 'another correct horse' },
  'PUT /api/auth/users/{id}/password': { new_password: 'another correct horse' },
  'PUT /api/nodes/{id}': { description: 'rack 4' },
  'POST /api/nodes/{id}/commands': { command: 'RUN_DIAGNOSTICS' },
  'PUT /api/routes/{id}': { enabled: false },
  'PUT /api/l4-chains/{id}': { description: 'customers' },
  'PUT /api/l4-upstreams/{id}': { enabled: false },
  'PUT /api/credentials/{id}': { name: 'renamed' },
  'PUT /api/l3-networks/{id}': { mtu: 1400 },
  'PUT /api/rollout-policies/{id}': { bake_secs: 90 },
  'PUT /api/webhooks/{id}': { enabled: false },
  'POST /api/webhooks/{id}/resume': { after: 'now' },
  'POST /api/fleet/plan': { document: 'svc: 1' },
  'POST /api/fleet/apply': { document: 'svc: 1\nnodes: {new-node: {}}' },
  'POST /api/service/identity/retire': { force: true },
  'PUT /api/settings/connectivity': { metrics_interval_secs: 90 },
};

let rest: RestFixture;
let maker: Maker;
let answers: OpenApiAnswers;
beforeAll(async () => {
  rest = await startRest();
  maker = await createMaker(rest);
  answers = openApiAnswers((await rest.call('GET', '/openapi.json')).json());
});
afterAll(() => rest.close());

/** Who may call, by the notes of the row, else by `docs/contract/rest.md#authentication-and-roles`. */
function rolesOf({ method, path, notes }: Row): {
  readonly may: Call['role'];
  readonly mayNot: readonly Call['role'][];
} {
  if (notes === 'public') return { may: 'nobody', mayNot: [] };
  // Everybody's own; those that a test makes are the admin's.
  if (notes === 'own') return { may: 'admin', mayNot: [] };
  if (notes === 'admin only') return { may: 'admin', mayNot: ['viewer', 'operator'] };
  if (notes.startsWith('admin or operator only')) return { may: 'operator', mayNot: ['viewer'] };
  if (notes === 'viewers too') return { may: 'viewer', mayNot: [] };
  const own = ['/api/auth/me', '/api/auth/password', '/api/auth/logout'].includes(path);
  return method === 'GET' || own ? { may: 'viewer', mayNot: [] } : { may: 'operator', mayNot: ['viewer'] };
}

const policy = () => ({ nodeId: maker.ids.node_id, transport: 'tcp', listenAddr: '192.0.2.1', listenPort: 1_500 });

/** A request of the row that succeeds, on a resource of its own. */
async function requestOf({ method, path }: Row): Promise<{ readonly url: string; readonly body?: object }> {
  if (path === '/api/nodes/ports/policies') {
    const body = { ...policy(), priorityOrder: ['tls'] };
    if (method === 'PUT') return { url: path, body };
    await rest.data('PUT', path, { body });
    const query = Object.entries(policy()).map(([key, value]) => `${key}=${value}`);
    return { url: `${path}?${query.join('&')}` };
  }
  if (/^\/api\/fleet\/(applies|sets)\//.test(path)) {
    const set = `set-${method}-${path.split('/').at(-1)}`;
    const document = `svc: 1\nset: "${set}"\nnodes: {"${set}": {}}\n`;
    const { apply_id } = await rest.data('POST', '/api/fleet/apply', { body: { document } });
    return { url: path.replace('{id}', apply_id).replace('{set}', encodeURIComponent(set)) };
  }
  if (path.startsWith('/api/rollouts/') || path.endsWith('/confirm'))
    return { url: (await maker.onNew({ method, path } as Operation)).url };
  const collection = path.replace(/\/\{id\}.*$/, '');
  const body =
    bodies[`${method} ${path}`] ?? (method === 'POST' && collection === path ? maker.newBody(path) : undefined);
  const url = path.replace('{id}', path === collection ? '' : await idOf(collection));
  if (path.endsWith('/psk/candidate')) await rest.data('POST', url.replace('/candidate', '?mode=candidate'));
  return body === undefined ? { url } : { url, body };
}

async function idOf(collection: string): Promise<string> {
  if (collection !== '/api/audit') return (await maker.create(collection)).id;
  await maker.create('/api/l4-upstreams');
  const { items } = await rest.data('GET', '/api/audit?action=l4_upstream.create&page_size=1');
  return items[0].id;
}

const rowsOf = (rows: readonly Row[]) => rows.map((row) => [`${row.method} ${row.path}`, row] as const);

async function meetsItsRow(row: Row): Promise<void> {
  const { url, body } = await requestOf(row);
  const { may, mayNot } = rolesOf(row);
  const call = (role: Call['role']) =>
    rest.call(row.method, url, { ...(role === undefined ? {} : { role }), ...(body === undefined ? {} : { body }) });
  if (may !== 'nobody') expect((await call('nobody')).statusCode).toBe(401);
  for (const role of mayNot) expect([role, (await call(role)).statusCode]).toEqual([role, 403]);
  const answer = await call(may);
  const created =
    row.method === 'POST' && !row.path.includes('{') && ![...sessionPaths, ...idlessPaths].includes(row.path);
  expect([answer.statusCode, answer.json().error]).toEqual([created ? 201 : 200, null]);
  expect(Object.keys(answer.json())).toEqual(['success', 'data', 'error']);
  answers.check(row.method, url, answer);
}

describe('the endpoints of the specification', () => {
  test('are 43', () => {
    expect(specified).toHaveLength(43);
  });

  // That one ends the tokens of its caller, so it comes last.
  test.each(rowsOf(specified.filter(({ path }) => path !== '/api/auth/password')))('%s', (_, row) => meetsItsRow(row));

  test.each(rowsOf(extensions.filter(({ path }) => path !== '/api/auth/logout')))(
    'and of the extensions: %s',
    (_, row) => meetsItsRow(row),
  );

  test('are, with the extensions, all that the OpenAPI document has', () => {
    const rows = [
      ...specified,
      ...extensions,
      ...besideTheApi.flatMap((path) => [
        { method: 'GET', path },
        { method: 'HEAD', path },
      ]),
    ];
    expect(
      operationsOf(maker.document)
        .map(({ method, path }) => `${method} ${path}`)
        .toSorted(),
    ).toEqual(rows.map(({ method, path }) => `${method} ${path}`).toSorted());
  });

  test('are without /api/certs, and without a way to delete, disable or change a user', async () => {
    expect((await rest.call('GET', '/api/certs')).statusCode).toBe(404);
    const { id } = await maker.create('/api/auth/users');
    for (const method of ['PUT', 'DELETE', 'POST', 'PATCH']) {
      const answer = await rest.call(method, `/api/auth/users/${id}`);
      expect([method, answer.statusCode, answer.headers.allow]).toEqual([method, 405, 'GET']);
    }
  });

  test('take a word of a path for itself, not for the id of a resource', async () => {
    for (const path of ['/api/nodes/links', '/api/nodes/ports']) {
      const answer = await rest.call('DELETE', path);
      expect([path, answer.statusCode, answer.headers.allow]).toEqual([
        path,
        405,
        expect.not.stringContaining('DELETE'),
      ]);
    }
  });

  test('take for a policy the fields of the table, all of them required', () => {
    const rows = [...section.matchAll(/^\| ([a-z]+[A-Z]?[A-Za-z]+) \| (string|integer|list of strings) \|/gm)];
    const schema = (maker.document.components?.schemas ?? {})['NewListenerPolicy'];
    const types = Object.entries(schema?.properties ?? {}).map(([name, { type, items }]) => [
      name,
      type === 'array' ? `list of ${String(items?.type)}s` : type,
    ]);
    expect(types).toEqual(rows.map(([, name, type]) => [name, type]));
    expect(schema?.required).toEqual(rows.map(([, name]) => name));
  });
});

test.each(besideTheApi)('GET %s is as the document says, for everybody', async (url) => {
  const answer = await rest.call('GET', url, { role: 'nobody' });
  expect(answer.statusCode).toBe(200);
  answers.check('GET', url, answer);
});

test('PUT /api/auth/password', async () => {
  const row = specified.find(({ path }) => path === '/api/auth/password');
  expect(row).toBeDefined();
  await meetsItsRow(row!);
  const data: JsonData = await rest.data('POST', '/api/auth/login', {
    role: 'nobody',
    body: { username: 'viewer', password: 'another correct horse' },
  });
  expect(data.token_type).toBe('Bearer');
});

// It ends the token that the other tests use.
test('POST /api/auth/logout', async () => {
  const data = await rest.data('POST', '/api/auth/login', {
    role: 'nobody',
    body: { username: 'viewer', password: 'another correct horse' },
  });
  const headers = { authorization: `Bearer ${data.token}` };
  expect((await rest.call('POST', '/api/auth/logout', { role: 'nobody' })).statusCode).toBe(401);
  const answer = await rest.call('POST', '/api/auth/logout', { role: 'nobody', headers });
  expect([answer.statusCode, answer.json().data]).toEqual([200, {}]);
  answers.check('POST', '/api/auth/logout', answer);
});
