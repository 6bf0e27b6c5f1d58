/**
 * The configuration of an agent and what REST shows of it: `docs/contract/agent-protocol.md#configuration`,
 * `docs/contract/domain.md#generation`.
 */
import { randomUUID } from 'node:crypto';
import { afterAll, describe, expect, it } from 'vitest';
import type { RuntimeConfigSnapshot } from '../../src/gen/svc/control/v1/config.js';
import { SessionCloseReason } from '../../src/gen/svc/control/v1/session.js';
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
  port,
  rawHop,
  type Chain,
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
});

describe.concurrent('a rejected snapshot', () => {
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
});

describe.concurrent('a public address that an agent reports', () => {
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
