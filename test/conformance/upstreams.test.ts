/** Upstreams: `docs/contract/rest.md#l4-upstreams`. */
import { randomBytes, randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import {
  createChain,
  createNode,
  createUpstream,
  fresh,
  hasExactly,
  port,
  rawHop,
  upstreamFields,
  uuid,
} from './support/resources.js';
import type { ListOf, Upstream } from './support/resources.js';
import { refused } from './support/rest.js';
import { sharedService } from './support/running.js';

const shared = sharedService();
const post = (json: object) => shared.api.send<Upstream>('POST', '/api/l4-upstreams', { json });
const put = (id: string, json: object) => shared.api.send<Upstream>('PUT', `/api/l4-upstreams/${id}`, { json });
const pin = (): string => randomBytes(32).toString('base64');
const key = (): string => randomBytes(32).toString('base64url');

describe('creating an upstream', () => {
  it('answers 201 with every field and the defaults', async () => {
    const name = fresh('upstream');
    const answer = await post({ name, endpoint: '192.0.2.1:443' });
    expect(answer.status).toBe(201);
    expect(answer.headers.location).toBe(`/api/l4-upstreams/${answer.data.id}`);
    hasExactly(answer.data, upstreamFields);
    expect(answer.data).toMatchObject({
      name,
      endpoint: '192.0.2.1:443',
      server_names: [],
      health_check_interval_ms: 10_000,
      enabled: true,
      tls: null,
      reality: null,
    });
    expect(answer.data.id).toMatch(uuid);
    const got = await shared.api.send<Upstream>('GET', `/api/l4-upstreams/${answer.data.id}`);
    expect(got.data).toEqual(answer.data);
    expect(got.headers.etag).toBe(`"${answer.data.version}"`);
  });

  it('requires name and endpoint, and refuses enabled, health_check_path and unknown fields by name', async () => {
    refused(await post({ endpoint: '192.0.2.1:443' }), 400, 'name');
    refused(await post({ name: 'x' }), 400, 'endpoint');
    for (const field of ['enabled', 'health_check_path', 'id', 'version', 'status', 'port']) {
      refused(await post({ name: 'x', endpoint: '192.0.2.1:443', [field]: true }), 400, field);
    }
  });

  it('accepts every valid notation of an endpoint and answers the canonical one', async () => {
    for (const [given, answered] of [
      ['[2001:DB8:0:0::1]:80', '[2001:db8::1]:80'],
      ['Web.Example.ORG:8080', 'web.example.org:8080'],
      ['[::1]:1', '[::1]:1'],
      ['localhost:65535', 'localhost:65535'],
    ] as const) {
      expect((await createUpstream(shared.api, { endpoint: given })).endpoint).toBe(answered);
    }
    for (const endpoint of [
      '192.0.2.1',
      '192.0.2.1:0',
      '192.0.2.1:65536',
      '192.0.2.1:+80',
      '192.0.2.1:8e1',
      ':80',
      '2001:db8::1:80',
      '[::1]',
      'http://a:80',
      'a b:80',
      '',
      'a.example:80/path',
      '[a.example]:80',
      '300.1.1.1:80',
      80,
      null,
    ]) {
      refused(await post({ name: 'bad', endpoint }), 400, 'endpoint');
    }
  });

  it('limits the health check interval and answers server names in lower case', async () => {
    for (const interval of [99, 3_600_001, 100.5, '100', null]) {
      refused(
        await post({ name: 'x', endpoint: 'a.b:1', health_check_interval_ms: interval }),
        400,
        'health_check_interval_ms',
      );
    }
    const [low, high] = [100, 3_600_000];
    expect((await createUpstream(shared.api, { health_check_interval_ms: low })).health_check_interval_ms).toBe(low);
    expect((await createUpstream(shared.api, { health_check_interval_ms: high })).health_check_interval_ms).toBe(high);
    const named = await createUpstream(shared.api, { server_names: ['B.Example', 'a.example'] });
    expect(named.server_names).toEqual(['b.example', 'a.example']);
    refused(await post({ name: 'x', endpoint: 'a.b:1', server_names: null }), 400, 'server_names');
    refused(await post({ name: 'x', endpoint: 'a.b:1', server_names: [''] }), 400, 'server_names[0]');
    refused(await post({ name: 'x', endpoint: 'a.b:1', server_names: 'a.b' }), 400, 'server_names');
  });

  it('accepts TLS with at least one pin of 32 bytes', async () => {
    const tls = { server_name: 'Secure.Example', spki_pins_sha256: [pin()] };
    const upstream = await createUpstream(shared.api, { tls });
    expect(upstream.tls).toEqual({ ...tls, server_name: 'secure.example' });
    for (const bad of [
      { server_name: 'a.b', spki_pins_sha256: [] },
      { server_name: 'a.b' },
      { spki_pins_sha256: [pin()] },
      { server_name: 'a.b', spki_pins_sha256: ['AAAA'] },
      { server_name: 'a.b', spki_pins_sha256: ['not base64!'] },
      { server_name: 'a.b', spki_pins_sha256: [pin()], insecure: true },
    ]) {
      refused(await post({ name: 'x', endpoint: 'a.b:1', tls: bad }), 400, 'tls');
    }
    expect((await put(upstream.id, { tls: null })).data.tls).toBeNull();
    expect((await put(upstream.id, { tls })).data.tls).toEqual(upstream.tls);
  });

  it("accepts somebody's REALITY server, all four fields of it, and never beside TLS", async () => {
    const reality = { outer: 'tcp', public_key: key(), server_name: 'Www.Example', short_id: 'A1B2' };
    const upstream = await createUpstream(shared.api, { reality });
    expect(upstream.reality).toEqual({ ...reality, server_name: 'www.example', short_id: 'a1b2' });
    expect((await createUpstream(shared.api, { reality: { ...reality, short_id: '' } })).reality?.short_id).toBe('');
    for (const bad of [
      { ...reality, outer: 'udp' },
      { ...reality, public_key: pin() },
      { ...reality, server_name: '*.example' },
      { ...reality, short_id: 'abc' },
      { ...reality, short_id: 'a1b2c3d4e5f60718aa' },
      ...Object.keys(reality).map((field) => ({ ...reality, [field]: undefined })),
    ]) {
      refused(await post({ name: 'x', endpoint: 'a.b:1', reality: bad }), 400, 'reality');
    }
    const tls = { server_name: 'secure.example', spki_pins_sha256: [pin()] };
    refused(await post({ name: 'x', endpoint: 'a.b:1', tls, reality }), 400, 'tls and reality');
    refused(await put(upstream.id, { tls }), 400, 'tls and reality');
    expect((await put(upstream.id, { tls, reality: null })).data).toMatchObject({ tls, reality: null });
  });
});

describe('updating an upstream', () => {
  it('accepts a part of the fields, but not the name', async () => {
    const upstream = await createUpstream(shared.api, { server_names: ['a.example'] });
    refused(await put(upstream.id, { name: 'other' }), 400, 'name');
    refused(await put(upstream.id, { health_check_path: '/' }), 400, 'health_check_path');
    for (const field of ['endpoint', 'server_names', 'health_check_interval_ms', 'enabled']) {
      refused(await put(upstream.id, { [field]: null }), 400, field);
    }
    const changed = (await put(upstream.id, { enabled: false })).data;
    expect(changed).toMatchObject({
      ...upstream,
      enabled: false,
      version: changed.version,
      updated_at: changed.updated_at,
    });
    expect(changed.version).toBeGreaterThan(upstream.version);
    expect((await put(upstream.id, { server_names: [] })).data.server_names).toEqual([]);
  });

  it('without a change answers 200, writes no event and keeps the version', async () => {
    const { api } = shared;
    const upstream = await createUpstream(api, { endpoint: '[2001:db8::5]:80', server_names: ['a.example'] });
    const entries = async () => (await api.ok<ListOf<unknown>>('GET', `/api/audit?resource_id=${upstream.id}`)).total;
    const before = await entries();
    const { endpoint, server_names, health_check_interval_ms, enabled, tls } = upstream;
    for (const json of [
      {},
      { endpoint, server_names, health_check_interval_ms, enabled, tls },
      { endpoint: '[2001:DB8:0::5]:80' },
      { server_names: ['A.EXAMPLE'] },
    ]) {
      const answer = await put(upstream.id, json);
      expect(answer.status).toBe(200);
      expect(answer.data).toEqual(upstream);
    }
    expect(await entries()).toBe(before);
  });
});

describe('deleting an upstream', () => {
  it('is a 409 that names the chain while one uses it, also in its deployed definition', async () => {
    const { api } = shared;
    const upstream = await createUpstream(api);
    const node = await createNode(api);
    const chain = await createChain(api, { hops: [rawHop(node.id, port())], target: { upstream_id: upstream.id } });
    refused(await api.send('DELETE', `/api/l4-upstreams/${upstream.id}`), 409, chain.name);
    await api.ok('POST', `/api/l4-chains/${chain.id}/deploy`);
    await api.ok('PUT', `/api/l4-chains/${chain.id}`, { target: { endpoint: '192.0.2.1:1' } });
    refused(await api.send('DELETE', `/api/l4-upstreams/${upstream.id}`), 409, chain.name);
    await api.ok('PUT', `/api/l4-chains/${chain.id}`, { enabled: false });
    refused(await api.send('DELETE', `/api/l4-upstreams/${upstream.id}`), 409, chain.name);
    await api.ok('DELETE', `/api/l4-chains/${chain.id}`);
    expect(await api.ok('DELETE', `/api/l4-upstreams/${upstream.id}`)).toEqual({});
    refused(await api.send('GET', `/api/l4-upstreams/${upstream.id}`), 404);
  });
});

describe('the list of upstreams', () => {
  it('is paged and searched by a part of the name', async () => {
    const { api } = shared;
    const tag = randomUUID();
    const made = [];
    for (const name of ['x', 'Y', 'w']) made.push(await createUpstream(api, { name: `${name} ${tag}` }));
    const list = await api.ok<ListOf<Upstream>>('GET', `/api/l4-upstreams?q=${tag.toUpperCase()}&page_size=2`);
    hasExactly(list, ['items', 'total', 'page', 'page_size']);
    expect(list).toMatchObject({ total: 3, page: 1, page_size: 2 });
    expect(list.items).toEqual([made[2], made[0]]);
    refused(await api.send('POST', '/api/l4-upstreams', { json: { name: `y ${tag}`, endpoint: 'a.b:1' } }), 409);
    const percent = await api.ok<ListOf<Upstream>>('GET', `/api/l4-upstreams?q=${encodeURIComponent('.*')}`);
    expect(percent.total).toBe(0);
  });

  it('is sorted by the time of the last change', async () => {
    const { api } = shared;
    const tag = randomUUID();
    const [a, b] = [await createUpstream(api, { name: `1 ${tag}` }), await createUpstream(api, { name: `2 ${tag}` })];
    await put(a.id, { enabled: false });
    const ids = async (sort: string) =>
      (await api.ok<ListOf<Upstream>>('GET', `/api/l4-upstreams?q=${tag}&sort=${sort}`)).items.map(({ id }) => id);
    expect(await ids('updated_at')).toEqual([b.id, a.id]);
    expect(await ids('-updated_at')).toEqual([a.id, b.id]);
  });
});
