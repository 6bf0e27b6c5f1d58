/** The resources with their fields as in `docs/contract/rest.md`, and helpers that create them. */
import type { Api } from './rest.js';

export interface ListOf<T> {
  readonly items: readonly T[];
  readonly total: number;
  readonly page: number;
  readonly page_size: number;
}

export interface Apply {
  readonly state: string;
  readonly generation: number | null;
  readonly at: string | null;
  readonly errors: readonly Record<string, unknown>[];
}

export interface NodeData {
  readonly id: string;
  readonly name: string;
  readonly description: string | null;
  readonly address: string | null;
  readonly labels: Readonly<Record<string, string>>;
  readonly status: string;
  readonly psk_fingerprint: string | null;
  readonly psk_issued_at: string | null;
  readonly multiplex: boolean;
  readonly multiplex_port: number | null;
  readonly reported_multiplex: boolean | null;
  readonly reported_multiplex_port: number | null;
  readonly duplicate_agent: boolean;
  readonly version_conflict_at: string | null;
  readonly agent_version: string | null;
  readonly public_ipv4: string | null;
  readonly public_ipv6: string | null;
  readonly detected_addresses: readonly string[];
  readonly cpu_usage: number | null;
  readonly memory_usage: number | null;
  readonly uptime_seconds: number | null;
  readonly last_seen_at: string | null;
  readonly generation: number;
  readonly applied_generation: number | null;
  readonly apply: Apply;
  readonly listeners: Listeners | null;
  readonly held_by: null;
  readonly features: readonly string[];
  readonly managed_by: null;
  readonly created_at: string;
  readonly updated_at: string;
  readonly version: number;
}

export interface NewNode extends NodeData {
  readonly control_psk: string;
}

export interface Listeners {
  readonly intended: number;
  readonly running: number;
  readonly failed: readonly Readonly<Record<string, unknown>>[];
}

export interface Upstream {
  readonly id: string;
  readonly name: string;
  readonly endpoint: string;
  readonly server_names: readonly string[];
  readonly health_check_interval_ms: number;
  readonly enabled: boolean;
  readonly reality: { readonly short_id: string } | null;
  readonly tls: { readonly server_name: string; readonly spki_pins_sha256: readonly string[] } | null;
  readonly created_at: string;
  readonly updated_at: string;
  readonly version: number;
}

export interface Chain {
  readonly id: string;
  readonly name: string;
  readonly description: string | null;
  readonly enabled: boolean;
  readonly payload: string;
  readonly hops: readonly Readonly<Record<string, unknown>>[];
  readonly hop_status: readonly {
    readonly node_id: string;
    readonly node_name: string;
    readonly status: string;
    readonly state: string | null;
    readonly reported_at: string | null;
  }[];
  readonly listeners: Listeners | null;
  readonly target: Readonly<Record<string, unknown>>;
  readonly status: string;
  readonly health: { readonly state: string; readonly reasons: readonly string[] };
  readonly deployed_version: number | null;
  readonly deployed_at: string | null;
  readonly created_at: string;
  readonly updated_at: string;
  readonly version: number;
}

export interface Deployment {
  readonly id: string;
  readonly chain_id: string;
  readonly chain_version: number;
  readonly at: string;
  readonly nodes: readonly {
    readonly node_id: string;
    readonly generation: number;
    readonly state: string;
    readonly errors: readonly Record<string, unknown>[];
    readonly listeners: Listeners | null;
  }[];
}

export interface Deployed {
  readonly chain: Chain;
  readonly deployment: Deployment;
}

let count = 0;

/** A new name each time. */
function fresh(prefix: string): string {
  count += 1;
  return `${prefix} ${count}`;
}

/** A new port each time, in a range in which no test really listens. */
export function port(): number {
  count += 1;
  return 20_000 + count;
}

export const createNode = (api: Api, body: Record<string, unknown> = {}): Promise<NewNode> =>
  api.ok('POST', '/api/nodes', { name: fresh('node'), ...body });

export const createUpstream = (api: Api, body: Record<string, unknown> = {}): Promise<Upstream> =>
  api.ok('POST', '/api/l4-upstreams', { name: fresh('upstream'), endpoint: '192.0.2.1:80', ...body });

export const rawHop = (nodeId: string, listenPort: number, more: Record<string, unknown> = {}) => ({
  node_id: nodeId,
  listen_port: listenPort,
  outer: 'tcp',
  security: 'raw',
  ...more,
});

export const createChain = (api: Api, body: Record<string, unknown>): Promise<Chain> =>
  api.ok('POST', '/api/l4-chains', {
    name: fresh('chain'),
    payload: 'tcp',
    target: { endpoint: '192.0.2.9:9' },
    ...body,
  });

export const deploy = (api: Api, chain: { readonly id: string }, query = ''): Promise<Deployed> =>
  api.ok('POST', `/api/l4-chains/${chain.id}/deploy${query}`);
