/**
 * Real chains over real reference agents on this machine: nodes, credentials, and for each kind of hop a chain that
 * enters the first gateway as RAW and crosses the others by that kind. For the simulator and the benchmarks.
 */
import { startAgentProcess } from './agent.js';
import { httpsTarget } from './demo-traffic.js';
import { eventually, freePorts, NoUseWaiting, type RunningProgram } from './process.js';
import type { RestClient } from './rest-client.js';

/** The kinds, and the form of each in a chain. */
const hopsOf = {
  tcp: { outer: 'tcp', security: 'raw' },
  tls: { outer: 'tcp', security: 'tls' },
  reality: { outer: 'tcp', security: 'reality' },
  udp: { outer: 'udp', security: 'raw' },
  enc: { outer: 'udp', security: 'noise' },
} as const;

export type HopKind = keyof typeof hopsOf;
export const hopKinds = Object.keys(hopsOf) as readonly HopKind[];

export interface HopChain {
  readonly kind: HopKind;
  readonly transport: 'tcp' | 'udp';
  /** Where clients enter, on 127.0.0.1. */
  readonly port: number;
}

export interface HopChains {
  readonly chains: readonly HopChain[];
  /** Clients enter at the first. */
  readonly gateways: readonly { readonly nodeId: string; readonly agent: RunningProgram }[];
  /** Deletes everything that was created in the service, newest first. */
  remove(): Promise<void>;
  /** Stops the agents. */
  close(): Promise<void>;
}

interface HopChainsOptions {
  readonly rest: RestClient;
  /** `http://host:port` of the agents' listener. */
  readonly controlEndpoint: string;
  readonly kinds: readonly HopKind[];
  /** At least two. */
  readonly gateways: number;
  /** Ports of 127.0.0.1 to which the chains lead. */
  readonly targets: { readonly tcp: number; readonly udp: number };
  /** The prefix of all names that are created. */
  readonly prefix: string;
  /** The agents' environment. */
  readonly env?: Readonly<Record<string, string>>;
}

interface Created {
  readonly id: string;
}

const serverName = 'camouflage.example';
/** The first clients of a REALITY hop wait a few seconds until the hop knows its target. */
const runsWithinMs = 60_000;

/** @returns when all gateways run what they should. @throws Error when the service refuses, or an agent stays away */
export async function startHopChains(options: HopChainsOptions): Promise<HopChains> {
  const { rest, controlEndpoint, kinds, targets, prefix, env = {} } = options;
  const created: string[] = [];
  const create = async <T extends Created>(path: string, name: string, body: object): Promise<T> => {
    const made = await rest.call<T>('POST', path, { name: `${prefix}${name}`, ...body });
    created.push(`${path}/${made.id}`);
    return made;
  };
  const remove = async (): Promise<void> => {
    for (const path of created.splice(0).toReversed()) await rest.call('DELETE', path);
  };
  const front = await httpsTarget('the camouflage', serverName);
  const gateways: { readonly nodeId: string; readonly agent: RunningProgram }[] = [];
  const close = async (): Promise<void> => {
    await Promise.all(gateways.map(({ agent }) => agent.stop()));
    front.close();
  };
  try {
    for (let at = 0; at < options.gateways; at += 1) {
      const node = await create<Created & { control_psk: string }>('/api/nodes', `gateway-${at}`, {
        address: '127.0.0.1',
      });
      const agent = startAgentProcess({ nodeId: node.id, controlEndpoint, controlPsk: node.control_psk, env });
      gateways.push({ nodeId: node.id, agent });
    }
    const keys = await create('/api/credentials', 'x25519', { key_type: 'x25519' });
    const reality = await create('/api/credentials', 'reality', {
      key_type: 'reality',
      x25519_credential_id: keys.id,
      server_names: [serverName],
      short_ids: ['5eed'],
      target_host: '127.0.0.1',
      target_port: front.port,
    });
    const certificate = await create('/api/credentials', 'certificate', {
      key_type: 'tls_cert',
      self_signed: { common_name: 'exit.internal', subject_alt_names: ['exit.internal'] },
    });
    const credentials = { raw: undefined, tls: certificate.id, reality: reality.id, noise: keys.id } as const;
    const chains: HopChain[] = [];
    for (const kind of kinds) {
      const { outer, security } = hopsOf[kind];
      const ports = await freePorts(gateways.length);
      const hops = gateways.map(({ nodeId }, at) => ({
        node_id: nodeId,
        listen_addr: '127.0.0.1',
        listen_port: ports[at],
        outer,
        security: at === 0 ? 'raw' : security,
        credential_id: at === 0 ? undefined : credentials[security],
      }));
      const target = { endpoint: `127.0.0.1:${targets[outer]}` };
      const chain = await create('/api/l4-chains', kind, { payload: outer, hops, target });
      await rest.call('POST', `/api/l4-chains/${chain.id}/deploy`);
      chains.push({ kind, transport: outer, port: ports[0] ?? 0 });
    }
    for (const gateway of gateways) await running(rest, gateway);
    return { chains, gateways, remove, close };
  } catch (error) {
    await close();
    await remove();
    throw error;
  }
}

/** Waits until a node has applied its newest configuration. @param agent the process that should, where known */
export async function running(
  rest: RestClient,
  { nodeId, agent }: { readonly nodeId: string; readonly agent?: RunningProgram },
): Promise<void> {
  interface NodeView {
    readonly generation: number;
    readonly applied_generation: number | null;
  }
  await eventually(
    `gateway ${nodeId} runs its chains`,
    async () => {
      if (agent?.exited() === true) throw new NoUseWaiting(`gateway ${nodeId} exited: ${agent.output()}`);
      const node = await rest.call<NodeView>('GET', `/api/nodes/${nodeId}`);
      return node.applied_generation === node.generation ? true : undefined;
    },
    runsWithinMs,
  );
}
