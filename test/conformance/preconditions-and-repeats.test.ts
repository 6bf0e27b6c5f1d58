/** Versions, ETag and If-Match, positions and idempotency keys: `docs/contract/rest.md#consistency`. */
import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createMakerFor, lookingPaths, sessionPaths } from '../support/one-of-each.js';
import type { Document } from '../support/openapi-document.js';
import { createChain, createNode, createUpstream, fresh, port, rawHop, rfc3339 } from './support/resources.js';
import type { Deployed, ListOf, NewNode, NodeData, Settings, Upstream } from './support/resources.js';
import { refused } from './support/rest.js';
import type { Sent } from './support/rest.js';
import { sharedService } from './support/running.js';

const shared = sharedService();
const entries = async (): Promise<number> => (await shared.api.ok<ListOf<unknown>>('GET', '/api/audit')).total;

describe('If-Match', () => {
  it('is honoured by PUT, DELETE and deploy of every resource', async () => {
    const { api } = shared;
    const node = await createNode(api);
    const upstream = await createUpstream(api);
    const chain = await createChain(api, { hops: [rawHop(node.id, port())] });
    for (const [path, json, version] of [
      [`/api/nodes/${node.id}`, { description: 'x' }, node.version],
      [`/api/l4-upstreams/${upstream.id}`, { enabled: false }, upstream.version],
      [`/api/l4-chains/${chain.id}`, { description: 'x' }, chain.version],
    ] as const) {
      refused(await api.send('PUT', path, { json, headers: { 'if-match': `"${version + 1}"` } }), 412);
      const answer = await api.send<{ version: number }>('PUT', path, {
        json,
        headers: { 'if-match': `"${version}"` },
      });
      expect(answer.status).toBe(200);
      expect(answer.headers.etag ?? `"${answer.data.version}"`).toBe(`"${answer.data.version}"`);
      refused(await api.send('PUT', path, { json, headers: { 'if-match': `"${version}"` } }), 412);
      refused(await api.send('DELETE', path, { headers: { 'if-match': `"${version}"` } }), 412);
      expect((await api.send('PUT', path, { json, headers: { 'if-match': '*' } })).status).toBe(200);
    }
    const deployPath = `/api/l4-chains/${chain.id}/deploy`;
    refused(await api.send('POST', deployPath, { headers: { 'if-match': `"${chain.version}"` } }), 412);
    expect((await api.send('POST', deployPath, { headers: { 'if-match': '*' } })).status).toBe(200);
  });

  it('accepts a list of tags; a weak tag never matches', async () => {
    const { api } = shared;
    const node = await createNode(api);
    const path = `/api/nodes/${node.id}`;
    const send = (tag: string) => api.send('PUT', path, { json: { labels: {} }, headers: { 'if-match': tag } });
    expect((await send(`"77777", "${node.version}"`)).status).toBe(200);
    refused(await send(`W/"${node.version}"`), 412);
  });

  it('is checked even if nothing would change', async () => {
    const { api } = shared;
    const node = await createNode(api);
    const stale = { headers: { 'if-match': '"1000000"' } };
    refused(await api.send('PUT', `/api/nodes/${node.id}`, { json: {}, ...stale }), 412);
  });

  it('is honoured by the settings, whose GET answers the ETag', async () => {
    const { api } = shared;
    const got = await api.send<Settings>('GET', '/api/settings/connectivity');
    expect(got.headers.etag).toBe(`"${got.data.version}"`);
    const send = (tag: string, json: object) =>
      api.send<Settings>('PUT', '/api/settings/connectivity', { json, headers: { 'if-match': tag } });
    refused(await send(`"${got.data.version + 1}"`, { metrics_interval_secs: 61 }), 412);
    const put = await send(`"${got.data.version}"`, { metrics_interval_secs: 61 });
    expect(put.data.version).toBeGreaterThan(got.data.version);
    expect((await send('*', { metrics_interval_secs: 60 })).status).toBe(200);
  });

  it('has no counterpart for GET: If-None-Match never gives a 304', async () => {
    const { api } = shared;
    const node = await createNode(api);
    const answer = await api.send('GET', `/api/nodes/${node.id}`, {
      headers: { 'if-none-match': `"${node.version}"` },
    });
    expect(answer.status).toBe(200);
  });
});

describe('version and updated_at', () => {
  it('do not change with events of another resource', async () => {
    const { api } = shared;
    const [node, other] = [await createNode(api), await createNode(api)];
    await api.ok('PUT', `/api/nodes/${other.id}`, { description: 'x' });
    const same = await api.ok<NodeData>('GET', `/api/nodes/${node.id}`);
    expect(same.version).toBe(node.version);
    expect(same.updated_at).toBe(node.updated_at);
    expect(same.created_at).toMatch(rfc3339);
  });
});

describe('x-position', () => {
  it('is answered by every command, and x-min-position makes a GET wait for it', async () => {
    const { api } = shared;
    const made = await api.send<NewNode>('POST', '/api/nodes', { json: { name: fresh('node') } });
    const path = `/api/nodes/${made.data.id}`;
    const answers = [
      made,
      await api.send('PUT', path, { json: { description: 'x' } }),
      await api.send('PUT', path, { json: { description: 'x' } }),
      await api.send('POST', `${path}/psk`),
      await api.send('POST', `${path}/config`),
      await api.send('PUT', '/api/settings/connectivity', { json: {} }),
      await api.send('PUT', '/api/auth/me', { json: { display_name: 'x' } }),
    ];
    for (const answer of answers) {
      const position = answer.headers['x-position'];
      expect(position).toEqual(expect.stringMatching(/\S/));
      expect(answer.headers['x-projection-lag']).toBeUndefined();
      const read = await api.send('GET', path, { headers: { 'x-min-position': String(position) } });
      expect(read.status).toBe(200);
    }
    const gone = await api.send('DELETE', path);
    expect(gone.headers['x-position']).toEqual(expect.stringMatching(/\S/));
    refused(await api.send('GET', path, { headers: { 'x-min-position': String(gone.headers['x-position']) } }), 404);
  });

  it('in the future makes a GET wait 2 s and answer 503; a malformed one is a 400', async () => {
    const { api } = shared;
    const made = await api.send<NewNode>('POST', '/api/nodes', { json: { name: fresh('node') } });
    const later = String(made.headers['x-position']).replace(/\d+$/, (digits) => String(Number(digits) + 1_000_000));
    const started = performance.now();
    refused(await api.send('GET', `/api/nodes/${made.data.id}`, { headers: { 'x-min-position': later } }), 503);
    expect(performance.now() - started).toBeGreaterThan(1_500);
    refused(await api.send('GET', '/api/nodes', { headers: { 'x-min-position': 'nonsense!' } }), 400, 'x-min-position');
  });
});

describe('an idempotency key', () => {
  const withKey = (key: string, more: Sent = {}): Sent => ({
    ...more,
    headers: { ...more.headers, 'idempotency-key': key },
  });

  it('repeats the first status with the resource as it is now, secrets null, and writes nothing', async () => {
    const { api } = shared;
    const key = randomUUID();
    const json = { name: fresh('once') };
    const first = await api.send<NewNode>('POST', '/api/nodes', withKey(key, { json }));
    expect(first.status).toBe(201);
    expect(first.data.control_psk).not.toBeNull();
    await api.ok('PUT', `/api/nodes/${first.data.id}`, { description: 'later' });
    const before = await entries();
    const again = await api.send<NewNode>('POST', '/api/nodes', withKey(key, { json }));
    expect(again.status).toBe(201);
    expect(again.headers.location).toBe(first.headers.location);
    expect(again.data).toMatchObject({ id: first.data.id, description: 'later', control_psk: null });
    expect(await entries()).toBe(before);
    await api.ok('DELETE', `/api/nodes/${first.data.id}`);
    refused(await api.send('POST', '/api/nodes', withKey(key, { json })), 404);
  });

  it('is a 409 with another body, compared byte by byte', async () => {
    const { api } = shared;
    const key = randomUUID();
    const name = fresh('bytes');
    const first = await api.send('POST', '/api/nodes', withKey(key, { raw: `{"name":"${name}"}` }));
    expect(first.status).toBe(201);
    refused(await api.send('POST', '/api/nodes', withKey(key, { raw: `{"name": "${name}"}` })), 409);
    refused(await api.send('POST', '/api/nodes', withKey(key, { raw: `{"name":"${name} 2"}` })), 409);
    expect((await api.send('POST', '/api/nodes', withKey(key, { raw: `{"name":"${name}"}` }))).status).toBe(201);
  });

  it('counts per path', async () => {
    const { api } = shared;
    const key = randomUUID();
    const name = fresh('both');
    expect((await api.send('POST', '/api/nodes', withKey(key, { json: { name } }))).status).toBe(201);
    const json = { name, endpoint: '192.0.2.1:1' };
    expect((await api.send('POST', '/api/l4-upstreams', withKey(key, { json }))).status).toBe(201);
  });

  it('is not used up by a refused command and is looked up after the checks of the body', async () => {
    const { api } = shared;
    const key = randomUUID();
    const taken = await createUpstream(api);
    const json = { name: taken.name, endpoint: '192.0.2.1:1' };
    refused(await api.send('POST', '/api/l4-upstreams', withKey(key, { json })), 409);
    const other = await api.send<Upstream>(
      'POST',
      '/api/l4-upstreams',
      withKey(key, { json: { ...json, name: fresh('free') } }),
    );
    expect(other.status).toBe(201);
    refused(await api.send('POST', '/api/l4-upstreams', withKey(key, { json: { ...json, nope: 1 } })), 400, 'nope');
  });

  it('must be 1..128 visible ASCII characters', async () => {
    const { api } = shared;
    for (const key of ['', 'x'.repeat(129), 'with space', 'caf\u00e9']) {
      const answer = await api.send('POST', '/api/nodes', withKey(key, { json: { name: fresh('k') } }));
      refused(answer, 400, 'dempotency-');
    }
    const longest = '!'.repeat(127) + '~';
    expect((await api.send('POST', '/api/nodes', withKey(longest, { json: { name: fresh('k') } }))).status).toBe(201);
  });

  it('makes a deploy, a refresh and a PSK reset happen once', async () => {
    const { api } = shared;
    const node = await createNode(api);
    const chain = await createChain(api, { hops: [rawHop(node.id, port())] });
    const [deployKey, configKey, pskKey] = [randomUUID(), randomUUID(), randomUUID()];
    const path = `/api/l4-chains/${chain.id}/deploy`;
    const first = await api.send<Deployed>('POST', path, withKey(deployKey));
    const again = await api.send<Deployed>('POST', path, withKey(deployKey));
    expect(again.status).toBe(200);
    expect(again.data.deployment.id).toBe(first.data.deployment.id);
    expect(again.data.chain).toEqual(first.data.chain);
    refused(await api.send('POST', path, withKey(deployKey, { raw: '{}' })), 409);
    const config = `/api/nodes/${node.id}/config`;
    const refreshed = await api.send<{ generation: number }>('POST', config, withKey(configKey));
    const before = await entries();
    const repeated = await api.send<{ generation: number }>('POST', config, withKey(configKey));
    expect(repeated.data.generation).toBe(refreshed.data.generation);
    const psk = `/api/nodes/${node.id}/psk`;
    const issued = await api.send<Record<string, unknown>>('POST', psk, withKey(pskKey));
    expect(issued.data.control_psk).toEqual(expect.stringMatching(/^svcpsk1_/));
    const once = await api.send<Record<string, unknown>>('POST', psk, withKey(pskKey));
    expect(once.status).toBe(200);
    expect(once.data).toMatchObject({
      node_id: node.id,
      control_psk: null,
      psk_fingerprint: issued.data.psk_fingerprint,
    });
    expect(await entries()).toBe(before + 1);
  });

  it('lets only one of many simultaneous repeats write', async () => {
    const { api } = shared;
    const key = randomUUID();
    const json = { name: fresh('race') };
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => api.send<NewNode>('POST', '/api/nodes', withKey(key, { json }))),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 8 }, () => 201));
    expect(new Set(answers.map(({ data }) => data.id)).size).toBe(1);
    expect(answers.filter(({ data }) => data.control_psk !== null)).toHaveLength(1);
  });

  it('survives a kill of the service, on every POST', async () => {
    const { api, service } = shared;
    const key = randomUUID();
    const document = JSON.parse((await api.send('GET', '/openapi.json')).text) as Document;
    const maker = await createMakerFor(document, (method, path, given) => api.ok(method, path, given?.body));
    const sent = await Promise.all(
      maker.operations
        .filter(({ method, path }) => method === 'POST' && ![...sessionPaths, ...lookingPaths].includes(path))
        .map(async (post): Promise<{ readonly url: string; readonly body?: unknown }> => {
          return post.path.includes('{') ? maker.onNew(post) : { url: post.path, body: maker.newBody(post.path) };
        }),
    );
    const send = ({ url, body }: (typeof sent)[number]) =>
      api.send<Record<string, unknown>>('POST', url, withKey(key, body === undefined ? {} : { json: body }));
    const first = await Promise.all(sent.map(send));
    expect(first.filter(({ status }) => status >= 300).map(({ error }) => error)).toEqual([]);
    const before = await entries();
    await service.kill();
    await service.start();
    for (const [index, one] of sent.entries()) {
      const [was, again] = [first[index]!, await send(one)];
      expect([one.url, again.status, again.headers.location]).toEqual([one.url, was.status, was.headers.location]);
      // What a webhook has delivered meanwhile is in its answer, and a ping is sent anew.
      if (one.url.startsWith('/api/webhooks')) continue;
      const once = Object.keys(was.data).filter((field) => field === 'control_psk' || field === 'token');
      expect(again.data).toEqual({ ...was.data, ...Object.fromEntries(once.map((field) => [field, null])) });
    }
    expect(await entries()).toBe(before);
    expect(first.length).toBeGreaterThan(10);
  });
});
