/**
 * The configuration of an agent and what REST shows of it: `docs/contract/agent-protocol.md#configuration`,
 * `docs/contract/domain.md#generation`.
 */
import { randomUUID } from 'node:crypto';
import { afterAll, describe, expect, it } from 'vitest';
import type { RuntimeConfigSnapshot } from '../../src/gen/svc/control/v1/config.js';
import { SessionCloseReason } from '../../src/gen/svc/control/v1/session.js';
import { eventually } from '../support/eventually.js';
import { encodeProto } from '../support/proto-messages.js';
import {
  applied,
  attach,
  configRequest,
  enrol,
  heartbeat,
  hello,
  rejected,
  status,
  type Attached,
  type Enrolment,
  type Link,
  type Said,
} from './support/agent.js';
import {
  createChain,
  createNode,
  createUpstream,
  deploy,
  fresh,
  port,
  rawHop,
  type Chain,
  type Deployed,
  type Deployment,
  type NewNode,
  type NodeData,
} from './support/resources.js';
import { sharedService } from './support/running.js';

const shared = sharedService();
const links: Link[] = [];

interface Peer extends Attached {
  readonly node: NewNode;
  readonly enrolment: Enrolment;
}

async function connectNode(node: NewNode, said?: Said): Promise<Peer> {
  const enrolment = enrol(node.id, node.control_psk);
  const made = await attach(shared.service.controlEndpoint, enrolment, said);
  links.push(made.link);
  return { ...made, node, enrolment };
}

const connected = async (body: Record<string, unknown> = {}): Promise<Peer> =>
  connectNode(await createNode(shared.api, body));

/** Connects a node and applies its first snapshot. */
async function running(body: Record<string, unknown> = {}): Promise<Peer & { readonly first: RuntimeConfigSnapshot }> {
  const peer = await connected(body);
  peer.control.say(configRequest());
  const first = await peer.control.snapshot();
  peer.control.say(applied(first));
  await shows(peer, (node) => node.applied_generation === Number(first.generation));
  return { ...peer, first };
}

const show = (peer: { readonly node: { readonly id: string } }): Promise<NodeData> =>
  shared.api.ok('GET', `/api/nodes/${peer.node.id}`);

/** Waits until REST shows the node as described. */
async function shows(
  peer: { readonly node: { readonly id: string } },
  holds: (node: NodeData) => boolean,
): Promise<NodeData> {
  let last: NodeData | undefined;
  const until = Date.now() + 20_000;
  while (Date.now() < until) {
    last = await show(peer);
    if (holds(last)) return last;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  throw new Error(`the node never meets the condition: ${JSON.stringify(last)}`);
}

/** Creates and deploys a chain whose entry is this node. */
async function live(node: { readonly id: string }, body: Record<string, unknown> = {}): Promise<Chain> {
  const chain = await createChain(shared.api, { hops: [rawHop(node.id, port())], ...body });
  return (await deploy(shared.api, chain)).chain;
}

const retarget = (chain: Chain, to: string) =>
  shared.api.ok<Chain>('PUT', `/api/l4-chains/${chain.id}`, { target: { endpoint: to } });

/** The deployments of a chain, newest first. */
async function deployments(chain: Pick<Chain, 'id'>): Promise<readonly Deployment[]> {
  return (await shared.api.ok<{ items: Deployment[] }>('GET', `/api/l4-chains/${chain.id}/deployments`)).items;
}

afterAll(() => {
  for (const link of links.splice(0)) link.close();
});

describe.concurrent('a snapshot', () => {
  it('is sent only after the first ConfigRequest, even if it is a push', async () => {
    const peer = await connected();
    await live(peer.node);
    await shared.api.ok('POST', `/api/nodes/${peer.node.id}/config`);
    await peer.control.silence(700);
    peer.control.say(configRequest());
    const snapshot = await peer.control.snapshot();
    expect(Number(snapshot.generation)).toBe((await show(peer)).generation);
    await peer.control.silence(500);
  });

  it('has the node, its generation, a checksum of 32 bytes, and the compiled rules', async () => {
    const { api } = shared;
    const exit = await createNode(api, { address: '2001:db8::7' });
    const upstream = await createUpstream(api, {
      endpoint: '[2001:db8::1]:80',
      server_names: ['a.example'],
      health_check_interval_ms: 700,
    });
    const peer = await connected({ address: '192.0.2.1' });
    const [one, two, three] = [port(), port(), port()];
    const chain = await live(peer.node, {
      hops: [rawHop(peer.node.id, one, { server_names: ['x.example'] }), rawHop(exit.id, two)],
      target: { upstream_id: upstream.id },
    });
    const udp = await live(peer.node, {
      payload: 'udp',
      hops: [rawHop(peer.node.id, three, { outer: 'udp', listen_addr: '::1' })],
      target: { endpoint: '192.0.2.3:53' },
    });
    peer.control.say(configRequest());
    const snapshot = await peer.control.snapshot();
    const config = await api.ok<{ generation: number; checksum: string }>('GET', `/api/nodes/${peer.node.id}/config`);
    expect(snapshot.nodeId).toBe(peer.node.id);
    expect(Number(snapshot.generation)).toBe(config.generation);
    expect(snapshot.checksum).toHaveLength(32);
    expect(snapshot.checksum.toString('hex')).toBe(config.checksum);
    expect(snapshot.node).toEqual({ multiplex: false, multiplexPort: 0 });
    expect(snapshot.l3?.rules ?? []).toEqual([]);
    const profile = { payload: 1, outer: 1, security: 1 };
    expect(snapshot.gateway!.tcpProxyRules).toMatchObject([
      {
        ruleId: `${chain.id}/0`,
        origin: { resourceType: 'l4_chain', resourceId: chain.id, resourceName: chain.name, hopIndex: 0 },
        listenAddr: '0.0.0.0',
        listenPort: one,
        mode: 1,
        transportProfile: profile,
        serverNames: ['x.example'],
        tlsCredentialId: '',
        outbound: {
          next: { $case: 'endpoint', value: `[2001:db8::7]:${two}` },
          transportProfile: profile,
          tls: false,
          tlsServerName: '',
        },
        upstreamTlsSpkiPinsSha256: [],
      },
    ]);
    expect(snapshot.gateway!.udpRules).toMatchObject([
      {
        ruleId: `${udp.id}/0`,
        listenAddr: '::1',
        listenPort: three,
        mode: 1,
        transportProfile: { payload: 2, outer: 2, security: 1 },
        outbound: {
          next: { $case: 'endpoint', value: '192.0.2.3:53' },
          transportProfile: { payload: 2, outer: 2, security: 1 },
        },
      },
    ]);
    expect(snapshot.gateway!.upstreamClusters).toEqual([]);
    const last = await connectNode({ ...exit });
    last.control.say(configRequest());
    const other = await last.control.snapshot();
    expect(other.gateway!.upstreamClusters).toEqual([
      {
        name: upstream.id,
        endpoints: ['[2001:db8::1]:80'],
        serverNames: ['a.example'],
        enabled: true,
        healthCheck: { intervalMs: 700, path: '' },
      },
    ]);
    expect(other.gateway!.tcpProxyRules).toMatchObject([
      {
        ruleId: `${chain.id}/1`,
        origin: { hopIndex: 1 },
        outbound: { next: { $case: 'upstreamCluster', value: upstream.id } },
      },
    ]);
    await api.ok('PUT', `/api/l4-upstreams/${upstream.id}`, { enabled: false });
    expect((await last.control.snapshot()).gateway!.upstreamClusters).toMatchObject([{ enabled: false }]);
    await peer.control.silence(300);
  });

  it('orders its rules by port, address as text and rule id', async () => {
    const peer = await connected();
    const [low, high] = [port(), port()];
    for (const hop of [
      rawHop(peer.node.id, high),
      rawHop(peer.node.id, low, { listen_addr: '9.0.0.1' }),
      rawHop(peer.node.id, low, { listen_addr: '10.0.0.1', server_names: ['b.example'] }),
      rawHop(peer.node.id, low, { listen_addr: '10.0.0.1', server_names: ['a.example'] }),
    ]) {
      await live(peer.node, { hops: [hop] });
    }
    peer.control.say(configRequest());
    const rules = (await peer.control.snapshot()).gateway!.tcpProxyRules;
    const keys = rules.map((rule) => [rule.listenPort, rule.listenAddr, rule.ruleId] as const);
    expect(keys.map(([listen, addr]) => `${addr}:${listen}`)).toEqual([
      `10.0.0.1:${low}`,
      `10.0.0.1:${low}`,
      `9.0.0.1:${low}`,
      `0.0.0.0:${high}`,
    ]);
    expect(keys[0]![2] < keys[1]![2]).toBe(true);
  });

  it('has pins for a target over TLS', async () => {
    const peer = await connected();
    const pin = Buffer.alloc(32, 7).toString('base64');
    await live(peer.node, {
      target: { endpoint: 'x.example:443', tls: { server_name: 'x.example', spki_pins_sha256: [pin] } },
    });
    peer.control.say(configRequest());
    expect((await peer.control.snapshot()).gateway!.tcpProxyRules).toMatchObject([
      {
        outbound: {
          next: { value: 'x.example:443' },
          tls: true,
          tlsServerName: 'x.example',
          transportProfile: { security: 2 },
        },
        upstreamTlsSpkiPinsSha256: [pin],
      },
    ]);
  });

  it('is sent in fragments if it is larger than a frame', async () => {
    const peer = await connected();
    for (let i = 0; i < 40; i += 1) {
      const names = Array.from({ length: 64 }, (_, k) => `a-rather-long-server-name-${i}-${k}.of-this-chain.example`);
      await live(peer.node, { hops: [rawHop(peer.node.id, port(), { server_names: names })] });
    }
    peer.control.say(configRequest());
    const snapshot = await peer.control.snapshot();
    expect(encodeProto('RuntimeConfigSnapshot', snapshot).length).toBeGreaterThan(65_519);
    expect(peer.control.fragments.at(-1)).toBeGreaterThan(1);
    expect(snapshot.gateway!.tcpProxyRules).toHaveLength(40);
    peer.control.say(configRequest(snapshot.generation, snapshot.checksum));
    expect(await peer.control.update()).toEqual({ $case: 'unchanged', value: { generation: snapshot.generation } });
  });
});

describe.concurrent('a ConfigRequest', () => {
  it('with the generation and checksum of the target is answered unchanged and confirms it as applied', async () => {
    const peer = await connected();
    await live(peer.node);
    peer.control.say(configRequest());
    const snapshot = await peer.control.snapshot();
    expect((await show(peer)).applied_generation).toBeNull();
    peer.control.say(configRequest(snapshot.generation, snapshot.checksum));
    expect(await peer.control.update()).toEqual({ $case: 'unchanged', value: { generation: snapshot.generation } });
    const node = await shows(peer, ({ applied_generation: generation }) => generation !== null);
    expect(node).toMatchObject({ applied_generation: Number(snapshot.generation), apply: { state: 'applied' } });
  });

  it('with 0 or an older generation is answered with the whole snapshot', async () => {
    const peer = await running();
    const chain = await live(peer.node);
    const second = await peer.control.snapshot();
    peer.control.say(configRequest());
    expect(await peer.control.snapshot()).toEqual(second);
    peer.control.say(configRequest(peer.first.generation, peer.first.checksum));
    expect(await peer.control.snapshot()).toEqual(second);
    peer.control.say(configRequest(peer.first.generation, Buffer.alloc(32)));
    expect(await peer.control.snapshot()).toEqual(second);
    expect(second.gateway!.tcpProxyRules.map(({ ruleId }) => ruleId)).toEqual([`${chain.id}/0`]);
  });

  it('with the same generation and another checksum raises the generation', async () => {
    const peer = await running();
    peer.control.say(configRequest(peer.first.generation, Buffer.alloc(32, 1)));
    const raised = await peer.control.snapshot();
    expect(raised.generation).toBeGreaterThan(peer.first.generation);
    expect((await show(peer)).generation).toBe(Number(raised.generation));
  });

  it('without a checksum is answered with the whole snapshot and raises nothing, unless its version is higher', async () => {
    const peer = await running();
    const { generation } = await show(peer);
    for (const version of [peer.first.generation, peer.first.generation, peer.first.generation - 1n]) {
      peer.control.say(configRequest(version, Buffer.alloc(0)));
      expect(await peer.control.snapshot()).toEqual(peer.first);
    }
    expect((await show(peer)).generation).toBe(generation);
    peer.control.say(configRequest(peer.first.generation + 7n, Buffer.alloc(0)));
    expect((await peer.control.snapshot()).generation).toBeGreaterThan(peer.first.generation + 7n);
  });

  it('with a higher generation raises above it; a second one within a minute ends with OVERLOADED', async () => {
    const peer = await running();
    const reported = peer.first.generation + 1_000n;
    peer.control.say(configRequest(reported, Buffer.alloc(32, 1)));
    const raised = await peer.control.snapshot();
    expect(raised.generation).toBeGreaterThan(reported);
    expect((await show(peer)).generation).toBe(Number(raised.generation));
    peer.control.say(configRequest(raised.generation + 5n, Buffer.alloc(32, 1)));
    const end = await peer.control.ended();
    expect(end.code).toBe(status.RESOURCE_EXHAUSTED);
    expect(end.close).toMatchObject({ reason: SessionCloseReason.OVERLOADED });
    expect(end.close!.retryAfterMs).toBeGreaterThan(0);
    const back = await connectNode(peer.node);
    back.control.say(configRequest());
    expect((await back.control.snapshot()).generation).toBe(raised.generation);
  });

  it('raises the generation for good: later commands continue above it', async () => {
    const peer = await running();
    peer.control.say(configRequest(peer.first.generation + 100n, Buffer.alloc(32, 1)));
    const raised = await peer.control.snapshot();
    const chain = await live(peer.node);
    const next = await peer.control.snapshot();
    expect(next.generation).toBeGreaterThan(raised.generation);
    expect(next.gateway!.tcpProxyRules[0]!.ruleId).toBe(`${chain.id}/0`);
  });

  it('with an absurd generation ends the session and marks the node until it confirms an apply', async () => {
    for (const ahead of [2n ** 32n + 10n, 2n ** 53n, 2n ** 64n - 1n]) {
      const peer = await running();
      const absurd = ahead > 2n ** 40n ? ahead : peer.first.generation + ahead;
      peer.control.say(configRequest(absurd, Buffer.alloc(32, 1)));
      const end = await peer.control.ended();
      expect(end.code).toBe(status.FAILED_PRECONDITION);
      expect(end.close).toMatchObject({ reason: SessionCloseReason.PROTOCOL_ERROR });
      const marked = await shows(peer, (node) => node.version_conflict_at !== null);
      expect(marked.generation).toBe(peer.node.generation);
      const back = await connectNode(peer.node);
      back.control.say(configRequest());
      back.control.say(applied(await back.control.snapshot()));
      await shows(peer, (node) => node.version_conflict_at === null);
    }
  });
});

describe.concurrent('a push', () => {
  it('carries each change of the target as one full snapshot, and its report is shown', async () => {
    const peer = await running();
    const chain = await live(peer.node);
    const one = await peer.control.snapshot();
    expect(Number(one.generation)).toBe((await show(peer)).generation);
    expect((await shows(peer, ({ apply }) => apply.state === 'pushed')).apply).toMatchObject({ errors: [] });
    peer.control.say(applied(one));
    const node = await shows(peer, ({ apply }) => apply.state === 'applied');
    expect(node).toMatchObject({ applied_generation: Number(one.generation), generation: Number(one.generation) });
    expect(node.apply).toMatchObject({
      generation: Number(one.generation),
      at: expect.any(String) as unknown,
      errors: [],
    });
    await retarget(chain, '192.0.2.1:2');
    await peer.control.silence(300);
    await deploy(shared.api, chain);
    const two = await peer.control.snapshot();
    expect(two.gateway!.tcpProxyRules[0]!.outbound!.next).toEqual({ $case: 'endpoint', value: '192.0.2.1:2' });
    await peer.control.silence(300);
  });

  it('follows a refresh, which answers pushed: true', async () => {
    const peer = await running();
    const answer = await shared.api.ok<{ generation: number }>('POST', `/api/nodes/${peer.node.id}/config`);
    expect(answer).toMatchObject({ node_id: peer.node.id, pushed: true });
    const snapshot = await peer.control.snapshot();
    expect(Number(snapshot.generation)).toBe(answer.generation);
    expect(snapshot.gateway).toEqual(peer.first.gateway);
  });

  it('follows the rename, disabling, enabling and deletion of a chain', async () => {
    const peer = await running();
    const chain = await live(peer.node);
    await peer.control.snapshot();
    const name = fresh('renamed');
    await shared.api.ok('PUT', `/api/l4-chains/${chain.id}`, { name });
    expect((await peer.control.snapshot()).gateway!.tcpProxyRules[0]!.origin!.resourceName).toBe(name);
    await shared.api.ok('PUT', `/api/l4-chains/${chain.id}`, { enabled: false });
    expect((await peer.control.snapshot()).gateway!.tcpProxyRules).toEqual([]);
    await shared.api.ok('PUT', `/api/l4-chains/${chain.id}`, { enabled: true });
    expect((await peer.control.snapshot()).gateway!.tcpProxyRules).toHaveLength(1);
    await shared.api.ok('DELETE', `/api/l4-chains/${chain.id}`);
    expect((await peer.control.snapshot()).gateway!.tcpProxyRules).toEqual([]);
  });

  it('carries the multiplex settings', async () => {
    const peer = await running();
    const free = port();
    const override = (entry: object) =>
      shared.api.ok('PUT', '/api/settings/connectivity', { nodes: [{ node_id: peer.node.id, ...entry }] });
    await override({ multiplex: true, multiplex_port: free });
    expect((await peer.control.snapshot()).node).toEqual({ multiplex: true, multiplexPort: free });
    await override({ multiplex: false, multiplex_port: free });
    expect((await peer.control.snapshot()).node).toEqual({ multiplex: false, multiplexPort: 0 });
  });
});

describe.concurrent('a rejected snapshot', () => {
  const errors = [{ resourceType: 'l4_chain', resourceId: 'any', path: 'hops[0].listen_port', message: 'in use' }];

  it('is shown; the node is served the bytes it applied last, and nothing is pushed because of the reject', async () => {
    const peer = await running();
    const chain = await live(peer.node);
    const good = await peer.control.snapshot();
    peer.control.say(applied(good));
    await shows(peer, (node) => node.applied_generation === Number(good.generation));
    await retarget(chain, '192.0.2.1:66');
    await deploy(shared.api, chain);
    const bad = await peer.control.snapshot();
    peer.control.say(rejected(bad, errors));
    const node = await shows(peer, ({ apply }) => apply.state === 'rejected');
    expect(node).toMatchObject({ generation: Number(bad.generation), applied_generation: Number(good.generation) });
    expect(node.apply).toMatchObject({
      generation: Number(bad.generation),
      errors: [{ resource_type: 'l4_chain', resource_id: 'any', path: 'hops[0].listen_port', message: 'in use' }],
    });
    await peer.control.silence(500);
    peer.control.say(configRequest());
    expect(await peer.control.snapshot()).toEqual(good);
    peer.control.say(configRequest(good.generation, good.checksum));
    expect(await peer.control.update()).toEqual({ $case: 'unchanged', value: { generation: good.generation } });
    const items = await deployments(chain);
    expect(items[0]!.nodes).toMatchObject([{ state: 'rejected', errors: [{ path: 'hops[0].listen_port' }] }]);
    // The request has confirmed the one before, which the reject of a later one left in doubt.
    await eventually(async () => (await deployments(chain))[1]!.nodes).toMatchObject([
      { state: 'applied', errors: [] },
    ]);
    await retarget(chain, '192.0.2.1:67');
    await deploy(shared.api, chain);
    const better = await peer.control.snapshot();
    expect(better.generation).toBeGreaterThan(bad.generation);
    peer.control.say(applied(better));
    expect((await shows(peer, ({ apply }) => apply.state === 'applied')).apply.errors).toEqual([]);
  });

  it('with every error that a report may hold is recorded up to 16 KiB, with the number left out, and ends no session', async () => {
    const peer = await running();
    await live(peer.node);
    const bad = await peer.control.snapshot();
    const many = Array.from({ length: 1_000 }, (_, index) => ({
      resourceType: 'l4_chain',
      resourceId: randomUUID(),
      path: `hops[${index % 8}].listen_port`,
      message: 'é'.repeat(512),
    }));
    peer.control.say(rejected(bad, many));
    const node = await shows(peer, ({ apply }) => apply.state === 'rejected');
    const shown = node.apply.errors;
    expect(Buffer.byteLength(JSON.stringify(shown))).toBeLessThan(17 * 1024);
    expect(shown[0]).toMatchObject({ path: 'hops[0].listen_port', message: 'é'.repeat(512) });
    expect(shown.at(-1)!.message).toMatch(new RegExp(`^${1_000 - (shown.length - 1)} more errors are left out`));
    // The session goes on, and so does the next one, which repeats the report.
    peer.control.say(heartbeat(1n));
    await peer.control.heartbeatResponse();
  });

  it('is what a node that has applied nothing gets however often it asks for all, and nothing is pushed', async () => {
    const peer = await connected();
    await live(peer.node);
    peer.control.say(configRequest());
    const only = await peer.control.snapshot();
    for (let round = 0; round < 3; round += 1) {
      peer.control.say(rejected(only, errors));
      peer.control.say(configRequest());
      expect(await peer.control.snapshot()).toEqual(only);
    }
    await shows(peer, ({ apply }) => apply.state === 'rejected');
    await peer.control.silence(500);
    await shared.api.ok('POST', `/api/nodes/${peer.node.id}/config`);
    expect((await peer.control.snapshot()).generation).toBeGreaterThan(only.generation);
  });

  it('is what the agent gets that was told to reload; it is not pushed as well, and counts until it is applied', async () => {
    const peer = await running();
    await live(peer.node);
    const bad = await peer.control.snapshot();
    peer.control.say(rejected(bad, errors));
    await shows(peer, ({ apply }) => apply.state === 'rejected');
    // A new process without a command gets what the node applied last.
    peer.control.say(configRequest());
    expect(await peer.control.snapshot()).toEqual(peer.first);
    await shared.api.ok('POST', `/api/nodes/${peer.node.id}/commands`, { command: 'RELOAD_CONFIG' });
    await eventually(async () => {
      peer.control.say(heartbeat(1n));
      return (await peer.control.heartbeatResponse()).commands;
    }).toEqual([1]);
    await peer.control.silence(500);
    peer.control.say(configRequest());
    expect(await peer.control.snapshot()).toEqual(bad);
    expect((await show(peer)).apply).toMatchObject({ state: 'rejected', errors: [{ message: 'in use' }] });
    peer.control.say(applied(bad));
    const node = await shows(peer, ({ apply }) => apply.state === 'applied');
    expect(node).toMatchObject({ applied_generation: Number(bad.generation), apply: { errors: [] } });
  });

  it('is ignored if its generation is above that of the node or its checksum is unknown', async () => {
    const peer = await running();
    const before = await show(peer);
    peer.control.say(rejected({ generation: peer.first.generation + 5n, checksum: peer.first.checksum }));
    peer.control.say(rejected({ generation: peer.first.generation, checksum: Buffer.alloc(32, 9) }));
    peer.control.say(applied({ generation: peer.first.generation + 5n, checksum: peer.first.checksum }));
    peer.control.say(heartbeat(1n));
    await peer.control.heartbeatResponse();
    await peer.control.silence(500);
    expect((await show(peer)).apply).toEqual(before.apply);
    expect((await show(peer)).applied_generation).toBe(before.applied_generation);
  });
});

describe.concurrent('a snapshot that the node applied, and rejects when its agent starts anew', () => {
  const errors = [{ resourceType: 'l4_chain', resourceId: 'any', path: 'hops[0].listen_port', message: 'in use' }];
  const shownErrors = [
    { resource_type: 'l4_chain', resource_id: 'any', path: 'hops[0].listen_port', message: 'in use' },
  ];

  /** A node that has applied a chain, and whose new process rejects the same snapshot. */
  async function restarted() {
    const peer = await running();
    const chain = await live(peer.node);
    const snapshot = await peer.control.snapshot();
    peer.control.say(applied(snapshot));
    await shows(peer, ({ applied_generation: generation }) => generation === Number(snapshot.generation));
    peer.link.close();
    const anew = await connectNode(peer.node);
    anew.control.say(configRequest());
    expect(await anew.control.snapshot()).toEqual(snapshot);
    anew.control.say(rejected(snapshot, errors));
    return { peer: anew, chain, snapshot };
  }
  /** What REST says of the node and of the last deployment. */
  async function said({ peer, chain }: { readonly peer: Peer; readonly chain: Chain }) {
    const { apply, applied_generation: generation } = await show(peer);
    const list = `/api/nodes?page_size=1&q=${peer.node.name}`;
    const { items } = await shared.api.ok<{ items: NodeData[] }>('GET', list);
    const [deployed] = (await deployments(chain))[0]!.nodes;
    return {
      generation,
      states: [apply.state, items[0]!.apply.state, deployed!.state],
      errors: [apply.errors, deployed!.errors],
    };
  }

  it('is rejected wherever it is shown, with its errors, until an apply is reported after it', async () => {
    const { peer, chain, snapshot } = await restarted();
    const generation = Number(snapshot.generation);
    await eventually(() => said({ peer, chain })).toEqual({
      generation,
      states: ['rejected', 'rejected', 'rejected'],
      errors: [shownErrors, shownErrors],
    });
    expect((await show(peer)).apply.generation).toBe(generation);
    peer.control.say(applied(snapshot));
    await eventually(() => said({ peer, chain })).toEqual({
      generation,
      states: ['applied', 'applied', 'applied'],
      errors: [[], []],
    });
  });

  it('is not confirmed by a ConfigRequest of the session that rejected it, but by one of another', async () => {
    const { peer, chain, snapshot } = await restarted();
    await eventually(async () => (await said({ peer, chain })).states[0]).toBe('rejected');
    peer.control.say(configRequest(snapshot.generation, snapshot.checksum));
    await peer.control.update();
    // A report behind the request: once it is shown, the request has had its effect as well.
    peer.control.say(rejected(snapshot, [{ ...errors[0]!, message: 'still in use' }]));
    await eventually(async () => (await show(peer)).apply).toMatchObject({
      state: 'rejected',
      errors: [{ message: 'still in use' }],
    });
    const next = await connectNode(peer.node);
    next.control.say(configRequest(snapshot.generation, snapshot.checksum));
    expect(await next.control.update()).toMatchObject({ $case: 'unchanged' });
    await eventually(async () => (await said({ peer, chain })).states).toEqual(['applied', 'applied', 'applied']);
  });
});

describe.concurrent('deploy with wait=applied', () => {
  const wait = (chain: Chain, query = '') =>
    shared.api.ok<Deployed>('POST', `/api/l4-chains/${chain.id}/deploy?wait=applied${query}`);

  it('answers once every connected node has applied or rejected', async () => {
    const one = await running({ address: '192.0.2.1' });
    const two = await running({ address: '192.0.2.2' });
    const off = await createNode(shared.api, { address: '192.0.2.3' });
    const listen = port();
    const chain = await createChain(shared.api, {
      hops: [one.node, two.node, off].map(({ id }) => rawHop(id, listen)),
    });
    const answer = wait(chain, '&timeout_ms=20000');
    one.control.say(applied(await one.control.snapshot()));
    const unwanted = await two.control.snapshot();
    two.control.say(
      rejected(unwanted, [{ resourceType: 'l4_chain', resourceId: chain.id, path: 'hops[1]', message: 'no' }]),
    );
    const { deployment } = await answer;
    const state = new Map(deployment.nodes.map((node) => [node.node_id, node]));
    expect(state.get(one.node.id)).toMatchObject({ state: 'applied', errors: [] });
    expect(state.get(two.node.id)).toMatchObject({
      state: 'rejected',
      errors: [{ resource_type: 'l4_chain', resource_id: chain.id, path: 'hops[1]', message: 'no' }],
    });
    expect(state.get(off.id)).toMatchObject({ state: 'offline', errors: [] });
  });

  it('answers 200 at the timeout, with state pushed for a node that has not reported', async () => {
    const peer = await running();
    const chain = await createChain(shared.api, { hops: [rawHop(peer.node.id, port())] });
    const { deployment } = await wait(chain, '&timeout_ms=1200');
    expect(deployment.nodes).toMatchObject([{ state: 'pushed' }]);
    const snapshot = await peer.control.snapshot();
    peer.control.say(applied(snapshot));
    const path = `/api/l4-chains/${chain.id}/deployments`;
    await shows(peer, ({ apply }) => apply.state === 'applied');
    const { items } = await shared.api.ok<{ items: Deployment[] }>('GET', path);
    expect(items[0]!.nodes[0]!.state).toBe('applied');
  });

  it('answers state pending for a connected node that has not sent a ConfigRequest', async () => {
    const peer = await connected();
    peer.control.say(heartbeat(1n));
    await peer.control.heartbeatResponse();
    await shows(peer, (node) => node.status === 'online');
    const chain = await createChain(shared.api, { hops: [rawHop(peer.node.id, port())] });
    const { deployment } = await wait(chain, '&timeout_ms=300');
    expect(deployment.nodes).toMatchObject([{ state: 'pending' }]);
  });
});

describe.concurrent('a public address that an agent reports', () => {
  it('is not used if it is malformed', async () => {
    const [entry, exit] = [await createNode(shared.api), await createNode(shared.api)];
    await connectNode(exit, hello({ publicIpv4: 'evil host', publicIpv6: 'a b' }));
    await new Promise((resolve) => setTimeout(resolve, 600));
    const listen = port();
    const chain = await createChain(shared.api, { hops: [rawHop(entry.id, listen), rawHop(exit.id, listen)] });
    expect((await shared.api.send('POST', `/api/l4-chains/${chain.id}/deploy`)).status).toBe(409);
  });

  it('is shown and not dialled if its dialler would take it for itself', async () => {
    const [entry, exit] = [await createNode(shared.api), await createNode(shared.api)];
    await connectNode(exit, hello({ publicIpv4: '127.0.0.1', publicIpv6: '::ffff:169.254.1.1' }));
    await shows({ node: exit }, (node) => node.public_ipv4 === '127.0.0.1' && node.public_ipv6 !== null);
    const listen = port();
    const chain = await createChain(shared.api, { hops: [rawHop(entry.id, listen), rawHop(exit.id, listen)] });
    const refused = await shared.api.send('POST', `/api/l4-chains/${chain.id}/deploy`);
    expect([refused.status, refused.error]).toEqual([409, expect.stringContaining('hops[1].node_id')]);
  });

  it('is dialled by other nodes until the node gets a configured address, which then replaces it', async () => {
    const entry = await running();
    const exit = await createNode(shared.api);
    const listen = port();
    const chain = await createChain(shared.api, { hops: [rawHop(entry.node.id, listen), rawHop(exit.id, listen)] });
    const refused = await shared.api.send('POST', `/api/l4-chains/${chain.id}/deploy`);
    expect(refused.status).toBe(409);
    await connectNode(exit, hello({ publicIpv4: '198.51.100.7', publicIpv6: '2001:db8::7' }));
    await shows({ node: exit }, (node) => node.public_ipv4 === '198.51.100.7' && node.public_ipv6 === '2001:db8::7');
    await deploy(shared.api, chain);
    const dialled = (await entry.control.snapshot()).gateway!.tcpProxyRules[0]!.outbound!.next;
    expect(dialled).toEqual({ $case: 'endpoint', value: `198.51.100.7:${listen}` });
    await shared.api.ok('PUT', `/api/nodes/${exit.id}`, { address: 'exit.example' });
    const configured = (await entry.control.snapshot()).gateway!.tcpProxyRules[0]!.outbound!.next;
    expect(configured).toEqual({ $case: 'endpoint', value: `exit.example:${listen}` });
  });
});
