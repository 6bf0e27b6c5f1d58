/**
 * Resources of every kind that the OpenAPI document can create, for tests of what holds for all of them: a new resource is
 * among them without a line.
 */
import { operationsOf, type Document, type Operation } from './openapi-document.js';
import { validValue } from './openapi-values.js';
import type { JsonData, RestFixture } from './rest-fixture.js';

export interface Maker {
  readonly document: Document;
  readonly operations: readonly Operation[];
  /** Ids of real resources by the name of the field that holds them. */
  readonly ids: { readonly node_id: string; readonly upstream_id: string } & Readonly<Record<string, string>>;
  /** A body that creates another resource there. */
  newBody(collection: string): JsonData;
  /** The path and body of a POST on a resource that is new. */
  onNew(post: Operation): Promise<{ readonly url: string; readonly id: string; readonly body?: unknown }>;
  /** Creates one, with a name and listeners of its own unless `fields` say otherwise. */
  create(collection: string, fields?: object): Promise<JsonData>;
}

/** They begin and end a session: they create nothing, and take no idempotency key. */
export const sessionPaths: readonly string[] = ['/api/auth/login', '/api/auth/logout'];

/** They take a document or are about several nodes or the service, and create nothing with an id of its own. */
export const idlessPaths: readonly string[] = [
  '/api/fleet/plan',
  '/api/fleet/apply',
  '/api/nodes/labels',
  '/api/nodes/commands',
  '/api/service/identity/rotate',
  '/api/service/identity/retire',
];

/** They look only, although they are sent a body. */
export const lookingPaths: readonly string[] = ['/api/fleet/plan'];

/** The paths where resources are created: `/api/nodes`. */
export function collectionsOf(operations: readonly Operation[]): readonly string[] {
  return operations
    .filter(({ method, path }) => method === 'POST' && operations.some((one) => one.path === `${path}/{id}`))
    .map(({ path }) => path);
}

export async function createMaker(rest: Pick<RestFixture, 'call' | 'data' | 'gateway'>): Promise<Maker> {
  const document = (await rest.call('GET', '/openapi.json')).json() as Document;
  return createMakerFor(document, rest.data, async (id) => {
    await rest.gateway.run({ type: 'ConvergeWave', id, version: 1, failed: [], lost: [] });
  });
}

/** @param data sends a request and answers the data of a success @param bake makes the first wave of a new rollout bake */
export async function createMakerFor(
  document: Document,
  data: RestFixture['data'],
  bake: (rolloutId: string) => Promise<void> = async () => undefined,
): Promise<Maker> {
  const operations = operationsOf(document);
  const make = async (path: string, body: object): Promise<string> => (await data('POST', path, { body })).id;
  const node = await make('/api/nodes', { name: 'maker 1' });
  const other = await make('/api/nodes', { name: 'maker 2' });
  const key = await make('/api/credentials', { name: 'maker key', key_type: 'x25519' });
  const identity = await make('/api/credentials', {
    name: 'maker identity',
    key_type: 'reality',
    x25519_credential_id: key,
    server_names: ['a.example'],
    short_ids: ['ab'],
    target_host: 'a.example',
    target_port: 443,
  });
  const ids = {
    node_id: node,
    nodeId: node,
    node_ids: node,
    listener_node_id: node,
    connector_node_id: other,
    credential_id: identity,
    x25519_credential_id: key,
    upstream_id: await make('/api/l4-upstreams', { name: 'maker', endpoint: 'a.example:443' }),
  };
  let number = 0;
  function newBody(collection: string): JsonData {
    number += 1;
    const { body } = operations.find(({ method, path }) => method === 'POST' && path === collection) ?? {};
    const valid = { ...(validValue(document, body ?? {}, '', ids) as { readonly [field: string]: unknown }) };
    const named = Object.fromEntries(
      ['name', 'username'].filter((key) => key in valid).map((key) => [key, `made.${number}`]),
    );
    const text = JSON.stringify({ ...valid, ...named });
    return JSON.parse(text.replaceAll(/("listen_port":)\d+/g, `$1${2_000 + number}`));
  }
  const create: Maker['create'] = (collection, fields = {}) =>
    data('POST', collection, { body: { ...newBody(collection), ...fields } });
  return {
    document,
    operations,
    ids,
    newBody,
    create,
    async onNew({ path, body }) {
      if (/^\/api\/fleet\/(applies|sets)\//.test(path)) {
        number += 1;
        const set = `made-${number}`;
        const document = `svc: 1\nset: ${set}\nnodes: {${set}: {}}\n`;
        const { apply_id: id } = await data('POST', '/api/fleet/apply', { body: { document } });
        return { url: path.replace('{id}', id).replace('{set}', set), id };
      }
      if (path.startsWith('/api/rollouts/')) {
        number += 1;
        const [name, multiplex_port] = [`made-${number}`, 7_000 + number];
        for (const { id: before, ended_at } of (await data('GET', '/api/rollouts')).items) {
          if (ended_at === null) await data('POST', `/api/rollouts/${before}/complete`);
        }
        await data('POST', '/api/rollout-policies', { body: { name, waves: [{ nodes: 1 }] } });
        const { rollout_id: id } = await data('PUT', `/api/settings/connectivity?rollout=${name}`, {
          body: { multiplex: true, multiplex_port },
        });
        if (path.endsWith('/resume')) await data('POST', `/api/rollouts/${id}/pause`);
        if (path.endsWith('/advance')) await bake(id);
        return { url: path.replace('{id}', id), id };
      }
      if (path === '/api/audit/{id}/confirm') {
        const made = newBody('/api/nodes');
        const { id: node } = await data('POST', '/api/nodes?confirm=manual&confirm_secs=86400', { body: made });
        const { items } = await data('GET', `/api/audit?action=node.create&resource_id=${node}`);
        return { url: path.replace('{id}', items[0].id), id: items[0].id };
      }
      const collection = path.slice(0, path.indexOf('/{'));
      // One that delivers goes on only where it is told to.
      const after = path.endsWith('/resume') ? { after: 'now' } : {};
      const valid =
        body === undefined ? {} : { body: { ...(validValue(document, body, '', ids) as object), ...after } };
      let { id } = await create(collection === '/api/audit' ? '/api/nodes' : collection);
      if (collection === '/api/audit') {
        const { items } = await data('GET', `/api/audit?action=node.create&resource_id=${id}`);
        ({ id } = items[0]);
      }
      return { url: path.replace('{id}', id), id, ...valid };
    },
  };
}
