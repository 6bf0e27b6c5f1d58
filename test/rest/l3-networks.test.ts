/** L3 networks over REST: every field, what is required, refused and filled in (`docs/contract/rest.md#l3-networks-extension`). */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { L3Role, AddressFamily, type L3TunnelRule } from '../../src/gen/svc/control/v1/rules.js';
import { OuterTransport, PayloadProtocol, SecurityLayer } from '../../src/gen/svc/control/v1/transport.js';
import { x25519PairOf } from '../../src/kernel/crypto/crypto.js';
import { decoded } from '../support/delivery-fixture.js';
import { realityOver, startRest, unknownId, type JsonData, type RestFixture } from '../support/rest-fixture.js';

const url = '/api/l3-networks';
let rest: RestFixture;
let credential: JsonData;
let nodes: readonly string[];

beforeAll(async () => {
  rest = await startRest();
  const keys = await rest.data('POST', '/api/credentials', { body: { name: 'keys', key_type: 'x25519' } });
  credential = await rest.data('POST', '/api/credentials', {
    body: realityOver(keys.id, 'identity', ['l3.example', 'other.example']),
  });
  const made = ['a', 'b', 'c'].map((name) =>
    rest.data('POST', '/api/nodes', { body: { name, address: `${name}.example`, issue_psk: false } }),
  );
  nodes = (await Promise.all(made)).map(({ id }) => id);
});
afterAll(() => rest.close());

/** Nodes by name. */
const node = (name: 'a' | 'b' | 'c'): string => nodes['abc'.indexOf(name)] ?? '';
const member = (name: 'a' | 'b' | 'c', fields: object = {}) => ({
  node_id: node(name),
  addresses: [`10.0.0.${'abc'.indexOf(name) + 1}/24`],
  routes: [],
  ...fields,
});
const tunnel = (listener: 'a' | 'b' | 'c', connector: 'a' | 'b' | 'c', fields: object = {}) => ({
  listener_node_id: node(listener),
  listen_addr: '0.0.0.0',
  listen_port: 443,
  connector_node_id: node(connector),
  ...fields,
});
let count = 0;
const network = (fields: object = {}) => {
  count += 1;
  return {
    name: `net ${count}`,
    credential_id: credential.id,
    server_name: 'l3.example',
    members: [member('a')],
    ...fields,
  };
};
const without = (value: object, field: string): object =>
  Object.fromEntries(Object.entries(value).filter(([name]) => name !== field));

async function refused(method: 'POST' | 'PUT', path: string, body: unknown): Promise<string> {
  const answer = await rest.call(method, path, { body });
  return `${answer.statusCode} ${answer.json().error}`;
}

/** Runs with a new network, as a GET shows it, and deletes it afterwards. */
async function withNetwork(fields: object, run: (made: JsonData, path: string) => Promise<void>): Promise<void> {
  const { warnings: _, ...made } = await rest.data('POST', url, { body: network(fields) });
  await run(made, `${url}/${made.id}`);
  await rest.data('DELETE', `${url}/${made.id}`);
}

describe('an L3 network', () => {
  it('is created with four fields, and answered with all of them', async () => {
    const body = network();
    const created = await rest.call('POST', url, { body });
    const { data } = created.json();
    expect(created.statusCode).toBe(201);
    expect(created.headers['location']).toBe(`${url}/${data.id}`);
    expect(data).toEqual({
      id: expect.any(String),
      name: body.name,
      enabled: true,
      network_id: expect.any(Number),
      mtu: 1380,
      credential_id: credential.id,
      server_name: 'l3.example',
      members: [{ ...member('a'), interface_name: `svc${data.network_id}` }],
      tunnels: [],
      warnings: [],
      managed_by: null,
      created_at: expect.any(String),
      updated_at: data.created_at,
      version: 1,
    });
    const got = await rest.call('GET', `${url}/${data.id}`);
    expect([got.headers['etag'], got.json().data]).toEqual(['"1"', without(data, 'warnings')]);
    expect(await rest.data('DELETE', `${url}/${data.id}`)).toEqual({});
    expect((await rest.call('GET', `${url}/${data.id}`)).statusCode).toBe(404);
  });

  it('is answered in canonical form, and its answer can be sent back as it is', async () => {
    const members = [
      member('a', {
        addresses: ['10.0.0.1/24', 'FD00:0::1/64'],
        routes: ['192.168.0.0/16', '0::0/0'],
        features: ['gso'],
      }),
      member('b', { interface_name: 'wan0', features: [] }),
    ];
    const tunnels = [tunnel('a', 'b', { listen_addr: '0:0::0' }), tunnel('b', 'a', { context_id: 7 })];
    await withNetwork({ server_name: 'L3.Example', members, tunnels }, async (made, path) => {
      expect(made.server_name).toBe('l3.example');
      expect(made.members).toEqual([
        {
          ...members[0],
          interface_name: `svc${made.network_id}`,
          addresses: ['10.0.0.1/24', 'fd00::1/64'],
          routes: ['192.168.0.0/16', '::/0'],
        },
        without(members[1]!, 'features'),
      ]);
      expect(made.tunnels).toEqual([
        { ...tunnels[0], listen_addr: '::', context_id: 1 },
        { ...tunnels[1], context_id: 7 },
      ]);
      const { name, enabled, mtu, credential_id, server_name } = made;
      const again = await rest.call('PUT', path, {
        body: { name, enabled, mtu, credential_id, server_name, members: made.members, tunnels: made.tunnels },
      });
      expect([again.statusCode, again.json().data]).toEqual([200, { ...made, warnings: [] }]);
    });
  });

  it('tells the names and statuses of its nodes, in the order of its members', async () => {
    const members = [member('b'), member('a')];
    const { id } = await rest.data('POST', url, { body: network({ members }) });
    const { items } = await rest.data('GET', `${url}/${id}/nodes`, { role: 'viewer' });
    expect(items).toEqual(
      ['b', 'a'].map((name) => ({
        node_id: node(name as 'a' | 'b'),
        node_name: name,
        node_status: 'pending',
      })),
    );
    expect((await rest.call('GET', `${url}/${unknownId}/nodes`)).statusCode).toBe(404);
    await rest.data('DELETE', `${url}/${id}`);
  });
});

describe('a body is refused', () => {
  const fields: readonly (readonly [string, unknown, string])[] = [
    ['network_id', 5, 'network_id: not a field'],
    ['mtu', 1279, 'mtu: expected'],
    ['mtu', 9001, 'mtu: expected'],
    ['server_name', '*.example', 'server_name: expected'],
  ];
  it.each(fields)('with %s %j', async (field, value, sentence) => {
    const expected = `400 invalid_request: ${sentence}`;
    expect(await refused('POST', url, network({ [field]: value }))).toContain(expected);
    // Before the 404 of the network.
    expect(await refused('PUT', `${url}/${unknownId}`, { [field]: value })).toContain(expected);
  });

  const ofMember: readonly (readonly [string, object, string])[] = [
    [
      'an address without a prefix',
      { addresses: ['10.0.0.1'] },
      'members[0].addresses[0]: expected an address as CIDR',
    ],
    ['an address with a bad prefix', { addresses: ['10.0.0.1/33'] }, 'members[0].addresses[0]'],
    ['an address with a zone', { addresses: ['fe80::1%eth0/64'] }, 'members[0].addresses[0]'],
    [
      'an IPv4-mapped address with a prefix beyond IPv4',
      { addresses: ['::ffff:10.0.0.1/95'] },
      'members[0].addresses[0]',
    ],
    [
      'an address twice',
      { addresses: ['fd00::1/64', 'FD00::1/64'] },
      'members[0].addresses[1]: expected each address once',
    ],
    ['a route with host bits', { routes: ['10.1.0.1/16'] }, 'members[0].routes[0]: expected a network as CIDR'],
    ['a route with a bad prefix', { routes: ['10.1.0.0/-1'] }, 'members[0].routes[0]'],
    ['a route twice', { routes: ['10.1.0.0/16', '10.1.0.0/16'] }, 'members[0].routes[1]: expected each network once'],
    ['a feature twice', { features: ['x', 'x'] }, 'members[0].features[1]'],
  ];
  it.each(ofMember)('with a member that has %s', async (_, change, sentence) => {
    const members = [member('a', change)];
    expect(await refused('POST', url, network({ members }))).toContain(`400 invalid_request: ${sentence}`);
    expect(await refused('PUT', `${url}/${unknownId}`, { members })).toContain(`400 invalid_request: ${sentence}`);
  });
});

describe('an L3 network in other answers', () => {
  it('is in the snapshots of its nodes, its key masked, and in the audit by the fields of its entries', async () => {
    const body = { members: [member('a'), member('b')], tunnels: [tunnel('a', 'b')] };
    await withNetwork(body, async (made, path) => {
      const { snapshot } = await rest.data('GET', `/api/nodes/${node('a')}/config`);
      expect(snapshot.l3.rules).toMatchObject([
        {
          rule_id: `${made.id}/1/listener`,
          network_id: String(made.network_id),
          enabled: true,
          local_endpoint: '0.0.0.0:443',
          routes: [],
          allowed_sources: ['10.0.0.2/32'],
          tun: { address_family: 'ADDRESS_FAMILY_IPV4', prefixes: ['10.0.0.1/24'], mtu: 1380, features: [] },
          reality_inbound: { private_key: '***', server_names: ['l3.example'] },
          role: 'L3_ROLE_LISTENER',
        },
      ]);
      const { generation } = await rest.data('GET', `/api/nodes/${node('b')}`);
      const [, second] = made.members;
      await rest.data('PUT', path, { body: { members: [made.members[0], { ...second, addresses: ['10.0.0.5/24'] }] } });
      expect((await rest.data('GET', `/api/nodes/${node('b')}`)).generation).toBeGreaterThan(generation);
      const { items } = await rest.data('GET', `/api/audit?resource_id=${made.id}`);
      expect(items.map(({ action }: JsonData) => action)).toEqual(['l3_network.update', 'l3_network.create']);
      expect(items[0].changes).toEqual([
        { path: 'members[1].addresses', before: ['10.0.0.2/24'], after: ['10.0.0.5/24'] },
      ]);
      expect(items[1].changes.map(({ path: field }: JsonData) => field)).toEqual([
        'name',
        'enabled',
        'network_id',
        'mtu',
        'credential_id',
        'server_name',
        'members',
        'tunnels',
      ]);
    });
  });
});

describe('the agents of a tunnel', () => {
  it('get its key and the public half of it, and both again when the key changes', async () => {
    const agents = await Promise.all([node('a'), node('b')].map((id) => rest.connect(id)));
    const rules = async () => {
      const pushes = await Promise.all(agents.map((agent) => agent.receive()));
      return pushes.map((push) => decoded(push).l3?.rules ?? []);
    };
    const publicOf = (privateKey: Buffer | undefined): Buffer =>
      Buffer.from(x25519PairOf(privateKey ?? Buffer.alloc(0)).publicKey);
    const members = [member('a'), member('b', { addresses: ['fd00::2/64'], routes: ['::/0'] })];
    const made = await rest.data('POST', url, { body: network({ members, tunnels: [tunnel('a', 'b')] }) });
    const [[listener], [connector]] = (await rules()) as [L3TunnelRule[], L3TunnelRule[]];
    const { public_key } = await rest.data('GET', `/api/credentials/${credential.x25519_credential_id}`);
    const key = Buffer.from(public_key, 'base64url');
    expect(publicOf(listener?.realityInbound?.privateKey)).toEqual(key);
    expect(listener).toMatchObject({
      ruleId: `${made.id}/1/listener`,
      origin: { resourceType: 'l3_network', resourceId: made.id, resourceName: made.name, hopIndex: 0 },
      networkId: String(made.network_id),
      enabled: true,
      localEndpoint: '0.0.0.0:443',
      peerEndpoint: '',
      routes: ['::/0'],
      allowedSources: ['fd00::2/128', '::/0'],
      tun: { addressFamily: AddressFamily.IPV4, mtu: 1380 },
      realityOutbound: undefined,
      datagramContextId: 1,
      role: L3Role.LISTENER,
      transportProfile: { payload: PayloadProtocol.IP, outer: OuterTransport.QUIC, security: SecurityLayer.REALITY },
    });
    expect(connector).toMatchObject({
      ruleId: `${made.id}/1/connector`,
      peerEndpoint: 'a.example:443',
      tun: { addressFamily: AddressFamily.IPV6, prefixes: ['fd00::2/64'] },
      realityInbound: undefined,
      realityOutbound: { publicKey: key, serverName: 'l3.example', shortId: 'ab' },
      role: L3Role.CONNECTOR,
    });
    const path = `/api/credentials/${credential.x25519_credential_id}`;
    const rotated = await rest.data('PUT', path, { body: { private_key: null } });
    const [[newListener], [newConnector]] = (await rules()) as [L3TunnelRule[], L3TunnelRule[]];
    expect(rotated.public_key).not.toBe(public_key);
    expect(publicOf(newListener?.realityInbound?.privateKey)).toEqual(Buffer.from(rotated.public_key, 'base64url'));
    expect(newConnector?.realityOutbound?.publicKey).toEqual(Buffer.from(rotated.public_key, 'base64url'));
    await rest.data('DELETE', `${url}/${made.id}`);
    expect(await rules()).toEqual([[], []]);
    for (const agent of agents) await agent.disconnect();
  });
});
