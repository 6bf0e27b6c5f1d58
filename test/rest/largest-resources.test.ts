/**
 * `docs/contract/domain.md#commands-and-events`: whatever can be created can be edited, deployed, deleted and taken back.
 * The largest of each resource lives its whole life over REST, and the inverse of each of its events is proposed as a
 * revert would propose it.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemContext } from '../../src/commands/system.js';
import { propose } from '../../src/commands/proposal.js';
import { fleetEvent, type FleetEvent } from '../../src/domain/fleet/resources.js';
import { systemClock } from '../../src/kernel/clock.js';
import { randomIds } from '../../src/kernel/ids.js';
import { limits } from '../../src/kernel/limits.js';
import { wholeEventBytes } from '../../src/storage/event-json.js';
import { realityOver, startRest, type JsonData, type RestFixture } from '../support/rest-fixture.js';
import { issue } from '../support/x509.js';

let rest: RestFixture;
beforeAll(async () => {
  rest = await startRest();
});
afterAll(() => rest.close());

const { listEntries, nameChars, descriptionChars, stringChars, labels, labelKeyChars, settingsNodes } = limits.rest;
/** Four bytes in UTF-8, one character. */
const widest = '\u{1F600}';
const text = (chars: number, seed: string): string => seed + widest.repeat(chars - seed.length);
/** A DNS name of 253 characters, another one for each seed. */
const dnsName = (seed: string): string =>
  `${[63, 63, 63, 61].map((length) => seed.padEnd(length, 'x').slice(0, length)).join('.')}`;
const names = (count: number, seed: string) => Array.from({ length: count }, (_, index) => dnsName(`${seed}${index}`));
const pins = (seed: number) =>
  Array.from({ length: listEntries }, (_, index) => Buffer.alloc(32, seed + index).toString('base64'));
const tls = (seed: string) => ({ server_name: dnsName(`t${seed}`), spki_pins_sha256: pins(seed.charCodeAt(0)) });

function largestNode(seed: string) {
  const value = text(stringChars, '');
  const keys = Array.from({ length: labels }, (_, index) => text(labelKeyChars, `${seed}${index} `));
  return {
    name: text(nameChars, seed),
    description: text(descriptionChars, seed),
    address: dnsName(seed),
    labels: Object.fromEntries(keys.map((key) => [key, value])),
  };
}

function largestUpstream(seed: string) {
  return {
    endpoint: `${dnsName(seed)}:65535`,
    server_names: names(listEntries, `u${seed}`),
    health_check_interval_ms: limits.rest.healthCheckIntervalMs.max - seed.charCodeAt(0),
    tls: tls(seed),
  };
}

function largestChain(seed: string, nodes: readonly string[], credential_id: string) {
  const hops = nodes.map((node_id, index) => ({
    node_id,
    listen_addr: `2001:db8:1111:2222:3333:4444:5555:${seed.charCodeAt(0).toString(16)}`,
    listen_port: 60_000 + index,
    outer: 'tcp',
    security: 'tls',
    server_names: names(listEntries, `${seed}${index}n`),
    credential_id,
    dial_addr: dnsName(`${seed}d`),
  }));
  const target = { endpoint: `${dnsName(seed)}:65535`, tls: tls(seed) };
  const [name, description] = [text(nameChars, seed), text(descriptionChars, seed)];
  return { name, description, payload: 'tcp', hops, target };
}

/** What takes an event back, as `docs/contract/domain.md#audit-and-revert` describes it; other events stand for themselves. */
function inverseOf({ type, data }: FleetEvent): { readonly type: string; readonly data: object } {
  const back = (changes: object) =>
    Object.fromEntries(Object.entries(changes).map(([field, { from, to }]) => [field, { from: to, to: from }]));
  if (/(Created|Restored)$/.test(type)) return { type: type.replace(/(Created|Restored)$/, 'Deleted'), data };
  if (type.endsWith('Deleted')) {
    const former = { created_at: new Date(0).toISOString(), version: Number.MAX_SAFE_INTEGER };
    return { type: type.replace('Deleted', 'Restored'), data: { ...data, former } };
  }
  if ('changes' in data) return { type, data: { ...data, changes: back(data.changes) } };
  if (type === 'ChainDeployed') return { type, data: { ...data, ...back({ definition: data.definition }) } };
  return { type, data };
}

/** The headers that make the metadata of events as large as it can be. */
const headers = () => ({ 'x-request-id': 'r'.repeat(128), 'idempotency-key': randomIds.next().padEnd(128, 'k') });

/** Runs the calls of a life. @returns the bytes of its largest event */
async function live(life: () => Promise<void>): Promise<number> {
  const before = (await rest.log()).length;
  await life();
  const events = (await rest.log()).slice(before);
  expect(events.length).toBeGreaterThan(0);
  for (const recorded of events) {
    const { actor, request_id: requestId, idempotency } = recorded.metadata;
    propose([inverseOf(fleetEvent(recorded))], { actor, requestId, idempotency }, systemClock, randomIds);
  }
  return Math.max(...events.map(wholeEventBytes));
}

const post = (url: string, body?: object): Promise<JsonData> => rest.data('POST', url, { body, headers: headers() });
const put = (url: string, body: object): Promise<JsonData> => rest.data('PUT', url, { body });
const remove = (url: string): Promise<JsonData> => rest.data('DELETE', url);

test('the largest upstream lives its whole life', async () => {
  await live(async () => {
    const { id } = await post('/api/l4-upstreams', { name: text(nameChars, 'a'), ...largestUpstream('a') });
    const url = `/api/l4-upstreams/${id}`;
    await put(url, { ...largestUpstream('b'), enabled: false });
    await put(url, { ...largestUpstream('a'), enabled: true });
    await remove(url);
  });
});

test('the largest chain lives its whole life, and its nodes can be deleted after it', async () => {
  const self_signed = { common_name: 'leaf.example' };
  const leaf = await post('/api/credentials', { name: 'leaf', key_type: 'tls_cert', self_signed });
  const bytes = await live(async () => {
    const nodes: string[] = [];
    for (let hop = 0; hop < 2 * limits.fleet.hops; hop += 1) {
      nodes.push((await post('/api/nodes', { name: text(nameChars, `h${hop} `), issue_psk: false })).id);
    }
    const [a, b] = [largestChain('a', nodes.slice(0, 8), leaf.id), largestChain('b', nodes.slice(8), leaf.id)];
    const { id } = await post('/api/l4-chains', a);
    const url = `/api/l4-chains/${id}`;
    await put(url, b);
    await post(`${url}/deploy`);
    await put(url, { ...a, enabled: false });
    await put(url, { enabled: true });
    await post(`${url}/deploy`);
    await put(url, b);
    expect(await rest.data('GET', url)).toMatchObject({ name: b.name, status: 'modified', hops: b.hops });
    await remove(url);
    for (const node of nodes) await remove(`/api/nodes/${node}`);
  });
  // The deploy holds both definitions; with less the test would not be about the largest ones.
  expect(bytes).toBeGreaterThan(256 * 1024);
});

test('the largest credentials live their whole lives', async () => {
  // As many names as fit into 64 KiB of PEM.
  const certificate = async (seed: string) => {
    const made = await issue({ names: names(185, seed), algorithm: 'ec' });
    expect(made.cert.length).toBeGreaterThan(0.95 * limits.rest.pemChars);
    return { certificate_pem: made.cert, private_key_pem: made.key };
  };
  const [first, second] = [await certificate('a'), await certificate('b')];
  const bytes = await live(async () => {
    const { id } = await post('/api/credentials', { name: text(nameChars, 'c'), key_type: 'tls_cert', ...first });
    await put(`/api/credentials/${id}`, { name: text(nameChars, 'd'), ...second });
    await remove(`/api/credentials/${id}`);
  });
  expect(bytes).toBeGreaterThan(200 * 1024);
  await live(async () => {
    const keys = await post('/api/credentials', { name: text(nameChars, 'k'), key_type: 'x25519' });
    const reality = (seed: string) => ({
      server_names: names(listEntries, seed),
      short_ids: Array.from({ length: listEntries }, (_, at) => String(at).padStart(16, seed)),
      target_host: dnsName(seed),
    });
    const { id } = await post('/api/credentials', {
      name: text(nameChars, 'r'),
      key_type: 'reality',
      x25519_credential_id: keys.id,
      target_port: 65_535,
      ...reality('a'),
    });
    await put(`/api/credentials/${id}`, reality('b'));
    await remove(`/api/credentials/${id}`);
    await remove(`/api/credentials/${keys.id}`);
  });
});

interface OfMembers {
  readonly members: readonly { readonly interface_name: string; readonly routes: readonly string[] }[];
}

/** The network, shorter by so many bytes of JSON: routes go first, then letters of the interfaces' names. */
function shrunk<N extends OfMembers>(network: N, bytes: number): N {
  let left = bytes;
  const members = network.members.map((member) => {
    const routes = [...member.routes];
    // A list of one has no comma to lose.
    while (routes.length > 1 && left >= JSON.stringify(routes.at(-1)).length + 1) {
      left -= JSON.stringify(routes.pop()).length + 1;
    }
    return { ...member, routes };
  });
  return {
    ...network,
    members: members.map((member) => {
      const letters = Math.min(left, 8);
      left -= letters;
      return { ...member, interface_name: member.interface_name.slice(0, 15 - letters) };
    }),
  };
}

test('the largest L3 network of 256 members lives its whole life; a larger one is refused, on creation and on an edit, naming its size', async () => {
  const node = { description: null, address: 'a.example', labels: {}, issuePsk: false };
  const created = Array.from({ length: limits.fleet.l3.members }, (_, index) =>
    rest.deps.commands.nodes.create(systemContext('test'), { ...node, name: `m ${index}` }),
  );
  const nodes = (await Promise.all(created)).map((one) => (one.kind === 'done' ? one.result.node.id : ''));
  const keys = await post('/api/credentials', { name: 'l3 keys', key_type: 'x25519' });
  const { id: credential_id } = await post('/api/credentials', realityOver(keys.id, 'l3', [dnsName('l3')]));
  const network = (seed: string, routes: number) => ({
    name: text(nameChars, seed),
    credential_id,
    server_name: dnsName('l3'),
    members: nodes.map((node_id, at) => ({
      node_id,
      interface_name: `${seed}${at}`.padEnd(15, 'x'),
      addresses: [`fd00:1111:2222:3333:4444:5555:6666:${(at + 1).toString(16)}/128`],
      routes: Array.from({ length: routes }, (_, index) => `10.${at}.${index + seed.charCodeAt(0)}.0/24`),
    })),
    tunnels: nodes.slice(1).map((connector_node_id) => ({
      listener_node_id: nodes[0],
      listen_addr: '2001:db8:1111:2222:3333:4444:5555:6666',
      // Another port is another tunnel.
      listen_port: 65_000 + seed.charCodeAt(0),
      connector_node_id,
    })),
  });
  const bytes = await live(async () => {
    const { id } = await post('/api/l3-networks', network('a', 22));
    const url = `/api/l3-networks/${id}`;
    await put(url, network('b', 22));
    await put(url, { enabled: false });
    await put(url, { ...network('a', 22), enabled: true });
    expect(await rest.data('GET', url)).toMatchObject({ ...network('a', 22), enabled: true });
    const before = await rest.data('GET', url);
    /** The largest body, and one that is a byte longer; a create and an edit have different fields beside it. */
    const atBound = async (method: string, path: string) => {
      const { error } = (await rest.call(method, path, { body: network('c', 23) })).json();
      const excess = Number(/(\d+) bytes/.exec(error)?.[1]) - limits.fleet.definitionBytes;
      return { largest: shrunk(network('c', 23), excess), above: shrunk(network('c', 23), excess - 1) };
    };
    let largest: object = {};
    for (const [method, path] of [
      ['POST', '/api/l3-networks'],
      ['PUT', url],
    ] as const) {
      const bound = await atBound(method, path);
      ({ largest } = bound);
      const refused = await rest.call(method, path, { body: bound.above });
      const error = expect.stringMatching(/^payload_too_large: .*196609 bytes.*196608/);
      expect([method, refused.statusCode, refused.json().error]).toEqual([method, 413, error]);
    }
    expect(await rest.data('GET', url)).toEqual(before);
    await put(url, largest);
    await remove(url);
  });
  // An edit holds both definitions.
  expect(bytes).toBeGreaterThan(1.9 * limits.fleet.definitionBytes);
});

test('the node with the largest definition and with all its policies lives its whole life', async () => {
  const bytes = await live(async () => {
    const { id } = await post('/api/nodes', largestNode('a'));
    const url = `/api/nodes/${id}`;
    await put(url, largestNode('b'));
    await put('/api/settings/connectivity', { nodes: [{ node_id: id, multiplex: true, multiplex_port: 65_535 }] });
    await post(`${url}/psk`);
    await post(`${url}/config`);
    await post(`${url}/commands`, { command: 'RUN_DIAGNOSTICS' });
    await put(url, largestNode('a'));
    await put(url, { labels: {}, description: null, address: null });
    await put(url, largestNode('c'));
    await policiesOn(id);
    await remove(url);
  });
  expect(bytes).toBeGreaterThan(1.4 * limits.fleet.definitionBytes);
});

/** Saves as many policies on a node as there may be, each of the largest size. */
async function policiesOn(node_id: string): Promise<void> {
  const { policies } = rest.deps.commands;
  const listener = { node_id, transport: 'tcp', listen_addr: '1111:2222:3333:4444:5555:6666:7777:8888' } as const;
  const save = (listen_port: number) =>
    policies.save(systemContext('test'), undefined, { ...listener, listen_port, priority_order: ['raw'] });
  await Promise.all(Array.from({ length: 256 }, (_, index) => save(65_535 - index)));
  await expect(save(1)).rejects.toThrow('256 listener policies');
}

test('the overrides of as many nodes as one change of the settings may name are set, changed and removed', async () => {
  await live(async () => {
    const node = { description: null, address: null, labels: {}, issuePsk: false };
    const created = Array.from({ length: settingsNodes }, (_, index) =>
      rest.deps.commands.nodes.create(systemContext('test'), { ...node, name: `o ${index}` }),
    );
    const nodes = (await Promise.all(created)).map((one) => (one.kind === 'done' ? one.result.node.id : ''));
    const change = (multiplex: boolean | null, port?: number) =>
      put('/api/settings/connectivity', {
        multiplex: port !== undefined,
        multiplex_port: port ?? null,
        nodes: nodes.map((node_id) => ({
          node_id,
          multiplex,
          ...(port === undefined ? {} : { multiplex_port: port }),
        })),
      });
    await change(false, 65_535);
    await change(true, 65_534);
    await change(null);
  });
});
