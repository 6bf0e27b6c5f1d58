/**
 * A fleet with something of every kind, for pictures and checks of the whole console: three real agents with a chain that
 * carries traffic, and as many light agents as wanted, some of which reject their configuration or are gone.
 */
import { startAgentProcess } from '../../scripts/stack/agent.js';
import { fetchThrough, httpTarget } from '../../scripts/stack/demo-traffic.js';
import { running } from '../../scripts/stack/hop-chains.js';
import { eventually, freePorts, type RunningProgram } from '../../scripts/stack/process.js';
import type { RestClient } from '../../scripts/stack/rest-client.js';
import { startLightFleet, type LightCredentials, type LightFleet } from '../../scripts/simulate/light/fleet.js';

interface Made {
  readonly id: string;
}

export interface FleetOptions {
  readonly rest: RestClient;
  readonly controlEndpoint: string;
  /** At least three. */
  readonly nodes: number;
}

export interface FilledFleet {
  /** The id of the chain that carries traffic. */
  readonly chain: string;
  /** Stops the agents. */
  close(): Promise<void>;
}

const regions = ['fra', 'ams', 'nyc', 'sin', 'gru'] as const;
const real = 3;
/** Of the light agents. */
const [rejecting, gone] = [3, 4];
const host = '127.0.0.1';
const withinMs = 60_000;

/** @throws Error when the service refuses something, or an agent stays away */
export async function fillFleet({ rest, controlEndpoint, nodes: count }: FleetOptions): Promise<FilledFleet> {
  const make = <T extends Made>(path: string, body: object): Promise<T> => rest.call<T>('POST', path, body);
  const agents: RunningProgram[] = [];
  const crowds: LightFleet[] = [];
  const target = await httpTarget('the web server');
  const close = async (): Promise<void> => {
    await Promise.all([...agents.map((agent) => agent.stop()), ...crowds.map((crowd) => crowd.close())]);
    target.close();
  };
  try {
    await rest.call('PUT', '/api/settings/connectivity', { heartbeat_interval_secs: 2 });
    const nodes = await makeNodes(make, count);
    const [edge, relay, exit] = nodes;
    if (edge === undefined || relay === undefined || exit === undefined)
      throw new RangeError('nodes: expected 3 or more');
    for (const { nodeId, controlPsk } of nodes.slice(0, real)) {
      agents.push(startAgentProcess({ nodeId, controlEndpoint, controlPsk }));
    }
    const light = nodes.slice(real);
    const { hostname, port } = new URL(controlEndpoint);
    const startLight = (some: readonly LightCredentials[], rejects: number): LightFleet => {
      const fleet = startLightFleet({
        endpoint: { host: hostname, port: Number(port) },
        agents: some,
        rejecting: rejects,
      });
      crowds.push(fleet);
      return fleet;
    };
    if (light.length > gone) {
      startLight(light.slice(0, -gone), rejecting);
      const leaves = startLight(light.slice(-gone), 0);
      await eventually(
        'the agents that leave have come',
        async () => leaves.configured() === gone || undefined,
        withinMs,
      );
      await leaves.close();
    }
    for (const node of light.slice(0, -gone)) await running(rest, node);

    const ports = await freePorts(8);
    const listen = (node: LightCredentials, at: number, fields: object = {}) => {
      const where = { node_id: node.nodeId, listen_addr: host, listen_port: ports[at] };
      return { ...where, outer: 'tcp', security: 'raw', ...fields };
    };
    const { cover, certificate } = await makeCredentials(make);
    const upstream = await make('/api/l4-upstreams', { name: 'web', endpoint: `${host}:${target.port}` });
    const hops = [listen(edge, 0), listen(relay, 1, { security: 'tls', credential_id: certificate }), listen(exit, 2)];
    const chain = await make('/api/l4-chains', {
      name: 'front',
      description: 'From Frankfurt to the web server',
      payload: 'tcp',
      hops,
      target: { upstream_id: upstream.id },
    });
    await rest.call('POST', `/api/l4-chains/${chain.id}/deploy`);
    await make('/api/l4-chains', {
      name: 'front, next',
      payload: 'tcp',
      hops: [listen(edge, 3), listen(exit, 4)],
      target: { upstream_id: upstream.id },
    });
    for (const [index, node] of light.slice(0, 60).entries()) {
      const next = light[index + 1] ?? exit;
      const over = [listen(node, 0, { listen_port: 443 }), listen(next, 0, { listen_port: 8_443 })];
      const body = { payload: 'tcp', hops: over, target: { upstream_id: upstream.id } };
      const { id } = await make('/api/l4-chains', { name: `pop-${index + 1}`, ...body });
      await rest.call('POST', `/api/l4-chains/${id}/deploy`);
    }
    await makeRollout(rest, [listen(edge, 6), listen(exit, 7)]);
    const members = light.length < 3 ? [edge, relay, exit] : light.slice(10, 13);
    await makeTheRest(rest, { members, cover, edge, port: ports[5] ?? 0, policyPort: ports[0] ?? 0 });
    for (const node of [edge, relay, exit]) await running(rest, node);
    for (let request = 0; request < 20; request += 1) await fetchThrough(ports[0] ?? 0);
    return { chain: chain.id, close };
  } catch (error) {
    await close();
    throw error;
  }
}

type Make = <T extends Made>(path: string, body: object) => Promise<T>;

async function makeNodes(make: Make, count: number): Promise<readonly LightCredentials[]> {
  const nodes: LightCredentials[] = [];
  for (let index = 0; index < count; index += 1) {
    const region = regions[index % regions.length] ?? regions[0];
    const role = ['edge', 'relay', 'exit'][index % 3] ?? 'edge';
    const name = `${role}-${region}-${Math.floor(index / 15) + 1}`;
    const labels = { region, role };
    const body = { name: index < 15 ? name : `${name}-${index}`, address: index < real ? host : '192.0.2.1', labels };
    const { id, control_psk } = await make<Made & { control_psk: string }>('/api/nodes', body);
    nodes.push({ nodeId: id, controlPsk: control_psk });
  }
  return nodes;
}

async function makeCredentials(make: Make): Promise<{ readonly cover: string; readonly certificate: string }> {
  const keys = await make('/api/credentials', { name: 'relay keys', key_type: 'x25519' });
  const cover = await make('/api/credentials', {
    name: 'cover',
    key_type: 'reality',
    x25519_credential_id: keys.id,
    server_names: ['cover.example'],
    short_ids: ['5eed'],
    target_host: 'cover.example',
    target_port: 443,
  });
  const names = { common_name: 'relay.internal', subject_alt_names: ['relay.internal'] };
  const certificate = await make('/api/credentials', { name: 'relay', key_type: 'tls_cert', self_signed: names });
  return { cover: cover.id, certificate: certificate.id };
}

/** A change of two unrelated nodes, in two waves; it ends in an incident. */
async function makeRollout(rest: RestClient, hops: readonly object[]): Promise<void> {
  const make: Make = (path, body) => rest.call('POST', path, body);
  const policy = { name: 'careful', waves: [{ nodes: 1 }], bake_secs: 0 };
  await make('/api/rollout-policies', { ...policy, max_failed: '100%', max_lost: '100%' });
  const status = { name: 'status', endpoint: `${host}:2`, health_check_interval_ms: 1_000 };
  const upstream = await make('/api/l4-upstreams', status);
  for (const [index, hop] of hops.entries()) {
    const chain = { name: `status-${index + 1}`, payload: 'tcp', hops: [hop], target: { upstream_id: upstream.id } };
    const { id } = await make('/api/l4-chains', chain);
    await rest.call('POST', `/api/l4-chains/${id}/deploy`);
  }
  await rest.call('PUT', `/api/l4-upstreams/${upstream.id}?rollout=careful`, { endpoint: `${host}:1` });
  const open = '/api/incidents?open=true';
  await eventually(
    'nobody answers at the changed target',
    async () => (await rest.call<{ total: number }>('GET', open)).total > 0 || undefined,
    withinMs,
  );
}

interface Rest {
  readonly members: readonly LightCredentials[];
  readonly cover: string;
  readonly edge: LightCredentials;
  readonly port: number;
  readonly policyPort: number;
}

/** Resources without traffic. Networks and routes are disabled, because the reference agent does not run them. */
async function makeTheRest(rest: RestClient, { members, cover, edge, port, policyPort }: Rest): Promise<void> {
  const make: Make = (path, body) => rest.call('POST', path, body);
  const [hub, ...others] = members.map(({ nodeId }) => nodeId);
  await make('/api/l3-networks', {
    name: 'offices',
    enabled: false,
    credential_id: cover,
    server_name: 'cover.example',
    members: members.map(({ nodeId: node_id }, index) => ({
      node_id,
      addresses: [`10.7.0.${index + 1}/24`],
      routes: [],
    })),
    tunnels: others.map((connector_node_id, index) => ({
      listener_node_id: hub,
      listen_addr: '0.0.0.0',
      listen_port: 7_443 + index,
      connector_node_id,
    })),
  });
  await make('/api/routes', {
    name: 'shop',
    host: 'shop.example',
    enabled: false,
    hops: [{ node_id: edge.nodeId, listen_port: port }],
    backend: `${host}:80`,
  });
  await rest.call('PUT', '/api/nodes/ports/policies', {
    nodeId: edge.nodeId,
    transport: 'tcp',
    listenAddr: host,
    listenPort: policyPort,
    priorityOrder: [],
  });
  // Its agent has the PSK from its environment, so the candidate waits for somebody to install it.
  await rest.call('POST', `/api/nodes/${edge.nodeId}/psk?mode=candidate`);
  await make('/api/join-tokens', { name: 'rack 7', uses: 20, labels: { region: 'fra' } });
  await make('/api/webhooks', { name: 'tickets', url: 'https://hooks.example/gateways', enabled: false });
  const document = 'svc: 1\nset: partners\nupstreams:\n  partner: {endpoint: "203.0.113.5:443"}\n';
  await rest.call('POST', '/api/fleet/apply', { document });
  await make('/api/auth/tokens', { name: 'pipeline', role: 'operator' });
  await make('/api/auth/users', { username: 'kim', password: 'a password of the demo', role: 'operator' });
}
