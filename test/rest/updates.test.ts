/**
 * `docs/contract/rest.md#envelope`: what a PUT changes and leaves, what answers show, canonical addresses. For every
 * resource and each of its fields.
 */
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { alternativesOf } from '../support/openapi-values.js';
import { resolved } from '../support/openapi-document.js';
import { collectionsOf, createMaker, type Maker } from '../support/one-of-each.js';
import { startRest, type JsonData, type RestFixture } from '../support/rest-fixture.js';

let rest: RestFixture;
let maker: Maker;
/** Nodes that nothing else stands on. */
let spare: string;
let identity: string;
let key: string;
beforeAll(async () => {
  rest = await startRest();
  maker = await createMaker(rest);
  ({ id: spare } = await maker.create('/api/nodes'));
  ({ id: key } = await maker.create('/api/credentials'));
  ({ id: identity } = await maker.create('/api/credentials', {
    key_type: 'reality',
    x25519_credential_id: key,
    server_names: ['a.example', 'b.example'],
    short_ids: ['cd'],
    target_host: 'a.example',
    target_port: 443,
  }));
});
afterAll(() => rest.close());

const pin = randomBytes(32).toString('base64');
const realityKey = randomBytes(32).toString('base64url');
const tls = { server_name: 'tls.example', spki_pins_sha256: [pin] };
const settings = '/api/settings/connectivity';
const reality = (): object => ({
  key_type: 'reality',
  x25519_credential_id: maker.ids['x25519_credential_id'],
  server_names: ['a.example'],
  short_ids: ['ab'],
  target_host: 'a.example',
  target_port: 443,
});

interface Updated {
  readonly what: string;
  readonly collection: string;
  /** Of the create, beside what it requires. */
  readonly created?: () => object;
  /** A value of each field that an update may set, other than that of the create. */
  readonly changes: () => Readonly<Record<string, unknown>>;
  /** Fields of the answer that follow from others. */
  readonly follows?: readonly string[];
  /** What a create that leaves out everything optional answers. */
  readonly unset: object;
}

const updated: readonly Updated[] = [
  {
    what: 'a node',
    collection: '/api/nodes',
    changes: () => ({ name: 'renamed', description: 'said', address: 'n.example', labels: { site: 'b' } }),
    unset: {
      description: null,
      address: null,
      labels: {},
      agent_version: null,
      public_ipv4: null,
      public_ipv6: null,
      detected_addresses: [],
      cpu_usage: null,
      memory_usage: null,
      uptime_seconds: null,
      last_seen_at: null,
      reported_multiplex: null,
      reported_multiplex_port: null,
      version_conflict_at: null,
      multiplex_port: null,
      applied_generation: null,
      apply: { state: 'none', generation: null, at: null, errors: [] },
    },
  },
  {
    what: 'an upstream',
    collection: '/api/l4-upstreams',
    changes: () => ({
      endpoint: '[2001:db8::1]:9',
      server_names: ['x.example'],
      health_check_interval_ms: 100,
      enabled: false,
      tls,
    }),
    unset: { server_names: [], health_check_interval_ms: 10_000, enabled: true, tls: null, reality: null },
  },
  {
    what: 'an upstream that is a REALITY server',
    collection: '/api/l4-upstreams',
    changes: () => ({
      reality: { outer: 'quic', public_key: realityKey, server_name: 'www.example', short_id: 'ab' },
    }),
    unset: {},
  },
  {
    what: 'an X25519 credential',
    collection: '/api/credentials',
    created: () => ({ key_type: 'x25519' }),
    changes: () => ({ name: 'renamed key', private_key: randomBytes(32).toString('base64url') }),
    follows: ['public_key'],
    unset: {
      x25519_credential_id: null,
      server_names: [],
      short_ids: [],
      target_host: null,
      target_port: null,
      certificate: null,
      in_use_by: [],
    },
  },
  {
    what: 'a REALITY credential',
    collection: '/api/credentials',
    created: reality,
    changes: () => ({
      name: 'renamed identity',
      x25519_credential_id: key,
      server_names: ['c.example', 'a.example'],
      short_ids: ['', '0011'],
      target_host: '2001:db8::2',
      target_port: 8_443,
    }),
    follows: ['public_key'],
    unset: { certificate: null, in_use_by: [] },
  },
  {
    what: 'a certificate',
    collection: '/api/credentials',
    created: () => ({ key_type: 'tls_cert', self_signed: { common_name: 'a.example' } }),
    changes: () => ({ name: 'renamed certificate', self_signed: { common_name: 'b.example' } }),
    follows: ['certificate', 'public_key', 'server_names'],
    unset: { x25519_credential_id: null, short_ids: [], target_host: null, target_port: null, in_use_by: [] },
  },
  {
    what: 'a chain',
    collection: '/api/l4-chains',
    changes: () => ({
      name: 'renamed chain',
      description: 'said',
      enabled: false,
      hops: [{ node_id: spare, listen_addr: '::1', listen_port: 81, outer: 'tcp', security: 'raw' }],
      target: { endpoint: 'z.example:9', tls },
    }),
    follows: ['status', 'health', 'hop_status'],
    unset: { description: null, enabled: true, status: 'draft', deployed_version: null, deployed_at: null },
  },
  {
    what: 'a route',
    collection: '/api/routes',
    changes: () => ({
      name: 'renamed route',
      host: 'h.example',
      path_prefix: '/p',
      enabled: false,
      hops: [{ node_id: spare, listen_addr: '::1', listen_port: 82 }],
      backend: 'z.example:9',
    }),
    unset: { path_prefix: '/', enabled: true },
  },
  {
    what: 'an L3 network',
    collection: '/api/l3-networks',
    changes: () => ({
      name: 'renamed network',
      enabled: false,
      mtu: 1_300,
      credential_id: identity,
      server_name: 'b.example',
      tunnels: [
        {
          listener_node_id: maker.ids['listener_node_id'],
          listen_addr: '0.0.0.0',
          listen_port: 9_000,
          connector_node_id: maker.ids['connector_node_id'],
          context_id: 7,
        },
      ],
      members: [
        { node_id: maker.ids['listener_node_id'], interface_name: 'l3', addresses: ['10.7.0.1/24'], routes: [] },
        {
          node_id: maker.ids['connector_node_id'],
          interface_name: 'l3',
          addresses: ['10.7.0.2/24'],
          routes: ['10.8.0.0/16'],
        },
      ],
    }),
    unset: { enabled: true, tunnels: [] },
  },
];

/** The answer of a command as a GET has it. */
const asShown = ({ warnings: _, ...shown }: JsonData): JsonData => shown;

/** What every change of a resource changes. */
const always = ['version', 'updated_at', 'generation', 'apply'];

async function create({ collection, created }: Updated): Promise<JsonData> {
  const { name } = maker.newBody(collection);
  if (created !== undefined) return rest.data('POST', collection, { body: { name, ...created() } });
  return maker.create(collection);
}

function updateSchemaOf(collection: string): readonly string[] {
  const path = collection === settings || collection === '/api/auth/me' ? collection : `${collection}/{id}`;
  const { body } = maker.operations.find((one) => one.method === 'PUT' && one.path === path) ?? {};
  return Object.keys(resolved(maker.document, body ?? {}).properties ?? {});
}

describe('PUT bodies are partial: an absent field stays', () => {
  test.each(updated.map((one) => [one.what, one] as const))('%s', async (_what, one) => {
    const { id } = await create(one);
    const url = `${one.collection}/${id}`;
    for (const [field, value] of Object.entries(one.changes())) {
      const before = await rest.data('GET', url);
      const after = await rest.data('PUT', url, { body: { [field]: value } });
      expect(after.version).toBe(before.version + 1);
      const same = Object.keys(before).filter((key) => !always.includes(key) && key !== field);
      for (const other of same) {
        if (one.follows?.includes(other) !== true)
          expect([field, other, after[other]]).toEqual([field, other, before[other]]);
      }
      if (field in after) expect([field, after[field]]).toEqual([field, value]);
      else expect([field, 'private_key', 'self_signed'].slice(1)).toContain(field);
      expect(await rest.data('GET', url)).toEqual(asShown(after));
    }
    await rest.data('DELETE', url);
  });

  test('every field that an update takes is tried above', () => {
    for (const collection of new Set(updated.map((one) => one.collection))) {
      const tried = updated.filter((one) => one.collection === collection).flatMap((one) => Object.keys(one.changes()));
      // A payload changes with the hops that carry it, and PEM comes in pairs of key and certificate.
      const together = ['payload', 'certificate_pem', 'private_key_pem'];
      const missing = updateSchemaOf(collection).filter((field) => !tried.includes(field) && !together.includes(field));
      expect([collection, missing]).toEqual([collection, []]);
    }
  });

  test('the account and the settings', async () => {
    const policy = await maker.create('/api/rollout-policies');
    const values = {
      '/api/auth/me': { display_name: 'A', email: 'a@b.example' },
      [settings]: {
        multiplex_port: 4_000,
        multiplex: true,
        heartbeat_interval_secs: 7,
        metrics_interval_secs: 77,
        offline_after_secs: 70,
        nodes: [{ node_id: spare, multiplex: false, multiplex_port: 5 }],
        rollout_policy: policy.name,
        upgrade_rollout_policy: policy.name,
      },
    };
    for (const [url, changes] of Object.entries(values)) {
      expect(Object.keys(changes).toSorted()).toEqual([...updateSchemaOf(url)].toSorted());
      for (const [field, value] of Object.entries(changes)) {
        const before = await rest.data('GET', url);
        const after = await rest.data('PUT', url, { body: { [field]: value } });
        const { updated_at: _at, ...rest_ } = { ...before, [field]: value, version: before.version + 1 };
        expect(after).toMatchObject(rest_);
      }
    }
    await rest.data('PUT', settings, { body: { rollout_policy: null, upgrade_rollout_policy: null } });
    // Other nodes' overrides stay.
    const { node_id } = maker.ids;
    await rest.data('PUT', settings, { body: { nodes: [{ node_id, multiplex: true }] } });
    const { nodes } = await rest.data('GET', settings);
    expect(nodes).toHaveLength(2);
    expect(nodes).toContainEqual({ node_id, multiplex: true, multiplex_port: null });
    await rest.data('PUT', settings, { body: { nodes: [{ node_id, multiplex: null }] } });
    expect((await rest.data('GET', settings)).nodes).toHaveLength(1);
  });
});

describe('null clears a nullable field, and which those are', () => {
  const nullable = [
    'description',
    'address',
    'display_name',
    'email',
    'tls',
    'reality',
    'multiplex_port',
    'offline_after_secs',
    'chat_id',
    'confirm_secs',
    'rollout_policy',
    'upgrade_rollout_policy',
  ];

  test('the fields that may be null are those that the contract lists', () => {
    const found = maker.operations.flatMap(({ method, path, body }) =>
      body === undefined || !['POST', 'PUT'].includes(method)
        ? []
        : alternativesOf(maker.document, body).flatMap(({ properties = {} }) =>
            Object.entries(properties)
              .filter(([, one]) => alternativesOf(maker.document, one).some(({ type }) => type === 'null'))
              // Null generates a new key, and lets a token live for ever.
              .filter(([field]) => field !== 'private_key' && field !== 'expires_in_days')
              .map(([field]) => `${path} ${field}`),
          ),
    );
    for (const one of found) expect(nullable).toContain(one.split(' ')[1]);
    expect(new Set(found.map((one) => one.split(' ')[1]))).toEqual(new Set(nullable));
  });

  test('it is answered as null', async () => {
    const node = await maker.create('/api/nodes', { description: 'x', address: 'a.example' });
    const upstream = await maker.create('/api/l4-upstreams', { tls });
    const reality = { outer: 'tcp', public_key: realityKey, server_name: 'www.example', short_id: '' };
    const server = await maker.create('/api/l4-upstreams', { reality });
    const chain = await maker.create('/api/l4-chains', { description: 'x' });
    await rest.data('PUT', '/api/auth/me', { body: { display_name: 'x', email: 'x@y.example' } });
    await rest.data('PUT', settings, { body: { multiplex: false, nodes: [], offline_after_secs: 90 } });
    for (const [url, field] of [
      [`/api/nodes/${node.id}`, 'description'],
      [`/api/nodes/${node.id}`, 'address'],
      [`/api/l4-upstreams/${upstream.id}`, 'tls'],
      [`/api/l4-upstreams/${server.id}`, 'reality'],
      [`/api/l4-chains/${chain.id}`, 'description'],
      ['/api/auth/me', 'display_name'],
      ['/api/auth/me', 'email'],
      [settings, 'multiplex_port'],
      [settings, 'offline_after_secs'],
    ] as const) {
      const before = await rest.data('GET', url);
      const after = await rest.data('PUT', url, { body: { [field]: null } });
      expect([url, field, before[field] === null, after[field]]).toEqual([url, field, false, null]);
      const again = await rest.call('PUT', url, { body: { [field]: null } });
      expect([again.statusCode, again.json().data.version]).toEqual([200, after.version]);
    }
    const { public_key, id } = await maker.create('/api/credentials');
    const renewed = await rest.data('PUT', `/api/credentials/${id}`, { body: { private_key: null } });
    expect([typeof renewed.public_key, renewed.public_key === public_key]).toEqual(['string', false]);
  });
});

describe('a PUT that changes nothing is a 200, writes no event and leaves the version as it is', () => {
  test.each(updated.map((one) => [one.what, one] as const))(
    '%s, also with every field as its answer holds it',
    async (_what, one) => {
      const { id } = await create(one);
      const url = `${one.collection}/${id}`;
      const { private_key: _key, self_signed: _made, ...changes } = one.changes();
      await rest.data('PUT', url, { body: changes });
      await unchanged(url, one.collection);
      await rest.data('DELETE', url);
    },
  );

  test('the account and the settings', async () => {
    await unchanged('/api/auth/me', '/api/auth/me');
    await unchanged(settings, settings);
  });

  async function unchanged(url: string, collection: string): Promise<void> {
    const shown = await rest.data('GET', url);
    const of = shown.key_type === undefined ? () => true : (field: string) => notOfType(shown, field);
    const whole = Object.fromEntries(
      updateSchemaOf(collection)
        .filter((field) => field in shown && of(field))
        .map((field) => [field, shown[field]]),
    );
    expect(Object.keys(whole).length).toBeGreaterThan(0);
    const before = await rest.position();
    for (const body of [{}, whole]) {
      const answer = await rest.call('PUT', url, { body });
      expect([url, answer.statusCode, answer.json().error]).toEqual([url, 200, null]);
      expect(asShown(answer.json().data)).toEqual(shown);
      // That of the stream which the resource is in.
      expect(Number(answer.headers['x-position'])).toBeLessThanOrEqual(before);
    }
    expect(await rest.position()).toBe(before);
  }

  /** A credential has null or `[]` for what its type does not have; an update takes the fields of its type only. */
  function notOfType(shown: JsonData, field: string): boolean {
    return field === 'name' || (shown.key_type === 'reality' && shown[field] !== null);
  }
});

describe('every field of a resource is always in its answer', () => {
  test.each(updated.map((one) => [one.what, one] as const))('%s; what is not set is null', async (_what, one) => {
    const created = await create(one);
    expect(created).toMatchObject(one.unset);
    const url = `${one.collection}/${created.id}`;
    const { data } = maker.operations.find((op) => op.method === 'GET' && op.path === `${one.collection}/{id}`) ?? {};
    const fields = Object.keys(resolved(maker.document, data ?? {}).properties ?? {}).toSorted();
    expect(fields).toEqual(expect.arrayContaining(['created_at', 'id', 'updated_at', 'version']));
    const list = await rest.data('GET', `${one.collection}?page_size=500`);
    const answers = [
      await rest.data('GET', url),
      list.items.find(({ id }: JsonData) => id === created.id),
      asShown(await rest.data('PUT', url, { body: {} })),
    ];
    for (const answer of answers) expect(Object.keys(answer).toSorted()).toEqual(fields);
    const { control_psk: _secret, ...shown } = asShown(created);
    expect(Object.keys(shown).toSorted()).toEqual(fields);
    expect(answers[0]).toEqual(shown);
    expect(answers[1]).toEqual(shown);
  });

  test('id is a UUID, version an integer, times are RFC 3339 in UTC with milliseconds', async () => {
    const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
    for (const collection of collectionsOf(maker.operations)) {
      const created = await maker.create(collection);
      expect([collection, created]).toMatchObject([
        collection,
        {
          id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/),
          version: expect.any(Number),
          created_at: expect.stringMatching(time),
          updated_at: created.created_at,
        },
      ]);
    }
  });
});

describe('addresses are accepted in any valid notation and answered in canonical form', () => {
  const hop = (fields: object) => [{ node_id: spare, listen_port: 90, outer: 'tcp', security: 'raw', ...fields }];

  test.each<readonly [string, () => object, object]>([
    ['/api/nodes', () => ({ address: '2001:DB8:0:0::1' }), { address: '2001:db8::1' }],
    ['/api/nodes', () => ({ address: 'Edge-1.EXAMPLE' }), { address: 'edge-1.example' }],
    ['/api/l4-upstreams', () => ({ endpoint: '[2001:0db8::0001]:443' }), { endpoint: '[2001:db8::1]:443' }],
    ['/api/l4-upstreams', () => ({ endpoint: 'A.Example:443' }), { endpoint: 'a.example:443' }],
    ['/api/l4-upstreams', () => ({ server_names: ['B.EXAMPLE'] }), { server_names: ['b.example'] }],
    [
      '/api/l4-upstreams',
      () => ({ tls: { ...tls, server_name: 'TLS.example' } }),
      { tls: { server_name: 'tls.example' } },
    ],
    [
      '/api/l4-chains',
      () => ({ hops: hop({ listen_addr: '0:0:0:0:0:0:0:1', dial_addr: 'D.EXAMPLE', server_names: ['*.S.Example'] }) }),
      { hops: [{ listen_addr: '::1', dial_addr: 'd.example', server_names: ['*.s.example'] }] },
    ],
    [
      '/api/l4-chains',
      () => ({ hops: hop({ listen_addr: '::FFFF:10.0.0.1', listen_port: 91 }), target: { endpoint: '[::0001]:1' } }),
      { hops: [{ listen_addr: '10.0.0.1' }], target: { endpoint: '[::1]:1' } },
    ],
    [
      '/api/routes',
      () => ({
        host: 'R.EXAMPLE',
        backend: '[0:0::2]:80',
        hops: [{ node_id: spare, listen_addr: '::0', listen_port: 92 }],
      }),
      { host: 'r.example', backend: '[::2]:80', hops: [{ listen_addr: '::' }] },
    ],
    [
      '/api/l4-chains',
      () => ({
        hops: hop({ listen_addr: '::ffff:a00:2', listen_port: 91, dial_addr: '::ffff:10.0.0.2' }),
        target: { endpoint: '[::ffff:10.0.0.9]:1' },
      }),
      { hops: [{ listen_addr: '10.0.0.2', dial_addr: '10.0.0.2' }], target: { endpoint: '10.0.0.9:1' } },
    ],
    [
      '/api/l3-networks',
      () => ({
        members: [{ node_id: spare, addresses: ['::ffff:10.0.0.1/120'], routes: ['::ffff:10.9.0.0/112'] }],
      }),
      { members: [{ addresses: ['10.0.0.1/24'], routes: ['10.9.0.0/16'] }] },
    ],
    [
      '/api/l3-networks',
      () => ({
        server_name: 'A.EXAMPLE',
        members: [{ node_id: spare, addresses: ['FD00:0::0001/64'], routes: ['FD01:0::/32'] }],
      }),
      { server_name: 'a.example', members: [{ addresses: ['fd00::1/64'], routes: ['fd01::/32'] }] },
    ],
    [
      '/api/credentials',
      () => ({ ...reality(), server_names: ['A.example'], short_ids: ['AB'], target_host: '::0A' }),
      { server_names: ['a.example'], short_ids: ['ab'], target_host: '::a' },
    ],
  ])('%s %#', async (collection, sent, shown) => {
    const created = await maker.create(collection, sent());
    expect(created).toMatchObject(shown);
    expect(await rest.data('GET', `${collection}/${created.id}`)).toMatchObject(shown);
  });

  test('the listener of a policy', async () => {
    const policy = { nodeId: spare, transport: 'tcp', listenPort: 93, priorityOrder: [] };
    const put = await rest.data('PUT', '/api/nodes/ports/policies', { body: { ...policy, listenAddr: '0::0:7' } });
    expect(put.listenAddr).toBe('::7');
    const gone = `/api/nodes/ports/policies?nodeId=${spare}&transport=tcp&listenPort=93&listenAddr=0000::0007`;
    expect((await rest.call('DELETE', gone)).statusCode).toBe(200);
  });
});
