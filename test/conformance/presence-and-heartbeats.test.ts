/**
 * Heartbeats, presence and what REST shows of them, with a short heartbeat interval:
 * `docs/contract/agent-protocol.md#heartbeats-commands-metrics`.
 */
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { SessionCloseReason } from '../../src/gen/svc/control/v1/session.js';
import {
  attach,
  connectAgent,
  enrol,
  heartbeat,
  hello,
  status,
  type Attached,
  type Link,
  type Said,
} from './support/agent.js';
import {
  createChain,
  createNode,
  createUpstream,
  port,
  rawHop,
  type Deployed,
  type ListOf,
  type NewNode,
  type NodeData,
} from './support/resources.js';
import { sharedService } from './support/running.js';
import { eventually } from '../support/eventually.js';

const shared = sharedService();
const links: Link[] = [];

beforeAll(async () => {
  await shared.api.ok('PUT', '/api/settings/connectivity', { heartbeat_interval_secs: 1, metrics_interval_secs: 5 });
});

async function connected(said?: Said, existing?: NewNode): Promise<Attached & { readonly node: NewNode }> {
  const node = existing ?? (await createNode(shared.api));
  const made = await attach(shared.service.controlEndpoint, enrol(node.id, node.control_psk), said);
  links.push(made.link);
  return { ...made, node };
}

const show = (node: { readonly id: string }): Promise<NodeData> => shared.api.ok('GET', `/api/nodes/${node.id}`);
const becomes = async (node: { readonly id: string }, want: object, timeout = 4_000): Promise<void> => {
  await expect.poll(async () => show(node), { timeout, interval: 50 }).toMatchObject(want);
};

afterEach(() => {
  for (const link of links.splice(0)) link.close();
});

describe('a node whose agent has just said hello', () => {
  it('is online wherever its status is shown, and no deploy calls it offline', async () => {
    const { api } = shared;
    const upstream = await createUpstream(api);
    for (let round = 0; round < 3; round += 1) {
      const node = await createNode(api);
      const chain = await createChain(api, { hops: [rawHop(node.id, port())], target: { upstream_id: upstream.id } });
      const { control } = await connected(undefined, node);
      control.say(heartbeat(1n));
      await control.heartbeatResponse();
      // All at once: a moment later it would be online in any case.
      const [shown, listed, ports, deployed] = await Promise.all([
        show(node),
        api.ok<ListOf<NodeData>>('GET', `/api/nodes?status=online&q=${node.name}`),
        api.ok<{ nodes: { status: string }[] }>('GET', `/api/nodes/ports/runtime?node_id=${node.id}`),
        api.ok<Deployed>('POST', `/api/l4-chains/${chain.id}/deploy?wait=applied&timeout_ms=0`),
      ]);
      const states = [shown.status, listed.total, ports.nodes[0]?.status, deployed.deployment.nodes[0]?.state];
      expect(states).toEqual(['online', 1, 'online', 'pending']);
    }
  });
});

describe('heartbeats and hellos', () => {
  it('a heartbeat is answered with its sequence and the intervals now in force', async () => {
    const { control, session } = await connected();
    expect(session.grant).toMatchObject({ heartbeatIntervalSecs: 1, metricsIntervalSecs: 5 });
    for (const sequence of [1n, 2n, 2n ** 63n, 0n]) {
      control.say(heartbeat(sequence));
      expect(await control.heartbeatResponse()).toEqual({
        ok: true,
        ackSequence: sequence,
        commands: [],
        heartbeatIntervalSecs: 1,
        metricsIntervalSecs: 5,
      });
    }
    await shared.api.ok('PUT', '/api/settings/connectivity', { heartbeat_interval_secs: 2, metrics_interval_secs: 6 });
    await eventually(async () => {
      control.say(heartbeat(9n));
      return control.heartbeatResponse();
    }).toMatchObject({ heartbeatIntervalSecs: 2, metricsIntervalSecs: 6 });
    await shared.api.ok('PUT', '/api/settings/connectivity', { heartbeat_interval_secs: 1, metrics_interval_secs: 5 });
  });

  it('both are shown on the node', async () => {
    const { control, node } = await connected(
      hello({
        agentVersion: 'agent 7.1',
        publicIpv4: '198.51.100.1',
        publicIpv6: '2001:db8::1',
        multiplex: true,
        multiplexPort: 443,
        detectedAddresses: ['10.0.0.1', 'fe80::1'],
      }),
    );
    control.say(heartbeat(1n, { cpuUsage: 0.25, memoryUsage: 0.5, uptimeSeconds: 77n }));
    await control.heartbeatResponse();
    await becomes(node, {
      status: 'online',
      agent_version: 'agent 7.1',
      public_ipv4: '198.51.100.1',
      public_ipv6: '2001:db8::1',
      reported_multiplex: true,
      reported_multiplex_port: 443,
      multiplex: false,
      multiplex_port: null,
      detected_addresses: ['10.0.0.1', 'fe80::1'],
      cpu_usage: 0.25,
      memory_usage: 0.5,
      uptime_seconds: 77,
      last_seen_at: expect.stringMatching(/Z$/) as unknown,
    });
    const { version, updated_at: updated } = await show(node);
    control.say(heartbeat(2n, { cpuUsage: 0.75 }));
    await becomes(node, { cpu_usage: 0.75, version, updated_at: updated });
  });
});

describe('presence', () => {
  it('is pending before the first session, online during and offline after it, also in lists', async () => {
    const { control, link, node } = await connected();
    control.say(heartbeat(1n));
    await control.heartbeatResponse();
    await becomes(node, { status: 'online' });
    const ids = async (status: string) =>
      (await shared.api.ok<ListOf<NodeData>>('GET', `/api/nodes?page_size=500&status=${status}`)).items.map(
        ({ id }) => id,
      );
    expect(await ids('online')).toContain(node.id);
    expect(await ids('offline')).not.toContain(node.id);
    expect(await ids('pending')).not.toContain(node.id);
    link.close();
    await becomes(node, { status: 'offline' }, 6_000);
    expect(await ids('offline')).toContain(node.id);
    const again = await connected(hello(), node);
    again.control.say(heartbeat(1n));
    await becomes(node, { status: 'online' });
  });

  it('ends with IDLE after three heartbeat intervals of silence', async () => {
    const { control, node } = await connected();
    control.say(heartbeat(1n));
    await control.heartbeatResponse();
    const started = performance.now();
    const end = await control.ended(10_000);
    expect(end.code).toBe(status.DEADLINE_EXCEEDED);
    expect(end.close).toMatchObject({ reason: SessionCloseReason.IDLE });
    expect(performance.now() - started).toBeGreaterThan(2_500);
    await becomes(node, { status: 'offline' });
  });

  it('does not begin with an open session without a frame', async () => {
    const node = await createNode(shared.api);
    const link = connectAgent(shared.service.controlEndpoint);
    links.push(link);
    link.control(await link.session(enrol(node.id, node.control_psk)));
    // One that came later and said hello is online by now.
    const later = await connected();
    await becomes(later.node, { status: 'online' });
    expect((await show(node)).status).toBe('pending');
  });
});
