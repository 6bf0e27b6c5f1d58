/** Every endpoint of this release, as the contract lists them, for table-driven tests. */
export interface ListedEndpoint {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** `{id}` stands for an id. */
  readonly path: string;
  readonly access: 'login' | 'anyone' | 'operator' | 'admin';
  /** A valid body, or null where the endpoint takes none. */
  readonly body: object | null;
  readonly ifMatch?: true;
  /** The query that it requires. */
  readonly query?: string;
}

const id = '00000000-0000-4000-8000-000000000000';
const hop = { node_id: id, listen_port: 80, outer: 'tcp', security: 'raw' };
const member = { node_id: id, addresses: ['10.0.0.1/24'], routes: [] };

export const endpoints: readonly ListedEndpoint[] = [
  { method: 'POST', path: '/api/auth/login', access: 'login', body: { username: 'admin', password: 'wrong' } },
  { method: 'POST', path: '/api/auth/logout', access: 'anyone', body: null },
  { method: 'GET', path: '/api/auth/me', access: 'anyone', body: null },
  { method: 'PUT', path: '/api/auth/me', access: 'anyone', body: { display_name: 'A' }, ifMatch: true },
  {
    method: 'PUT',
    path: '/api/auth/password',
    access: 'anyone',
    body: { current_password: 'not this one', new_password: 'a password of many words' },
    ifMatch: true,
  },
  { method: 'GET', path: '/api/auth/tokens', access: 'anyone', body: null },
  { method: 'POST', path: '/api/auth/tokens', access: 'anyone', body: { name: 'ci', role: 'viewer' } },
  { method: 'GET', path: '/api/auth/tokens/{id}', access: 'anyone', body: null },
  { method: 'DELETE', path: '/api/auth/tokens/{id}', access: 'anyone', body: null, ifMatch: true },
  { method: 'GET', path: '/api/auth/users', access: 'admin', body: null },
  {
    method: 'POST',
    path: '/api/auth/users',
    access: 'admin',
    body: { username: 'ada', password: 'a password of many words', role: 'viewer' },
  },
  { method: 'GET', path: '/api/auth/users/{id}', access: 'admin', body: null },
  {
    method: 'PUT',
    path: '/api/auth/users/{id}/password',
    access: 'admin',
    body: { new_password: 'a password of many words' },
    ifMatch: true,
  },
  { method: 'GET', path: '/api/nodes', access: 'anyone', body: null },
  { method: 'POST', path: '/api/nodes', access: 'operator', body: { name: 'n' } },
  { method: 'GET', path: '/api/nodes/{id}', access: 'anyone', body: null },
  { method: 'PUT', path: '/api/nodes/{id}', access: 'operator', body: { name: 'n' }, ifMatch: true },
  { method: 'DELETE', path: '/api/nodes/{id}', access: 'operator', body: null, ifMatch: true },
  { method: 'POST', path: '/api/nodes/{id}/psk', access: 'operator', body: null },
  { method: 'DELETE', path: '/api/nodes/{id}/psk/candidate', access: 'operator', body: null, ifMatch: true },
  { method: 'POST', path: '/api/nodes/{id}/config', access: 'operator', body: null },
  { method: 'POST', path: '/api/nodes/{id}/commands', access: 'operator', body: { command: 'RELOAD_CONFIG' } },
  { method: 'GET', path: '/api/nodes/{id}/commands', access: 'anyone', body: null },
  { method: 'POST', path: '/api/nodes/labels', access: 'operator', body: { node_ids: [id], set: { a: 'b' } } },
  {
    method: 'POST',
    path: '/api/nodes/commands',
    access: 'operator',
    body: { node_ids: [id], command: 'RELOAD_CONFIG' },
  },
  { method: 'GET', path: '/api/nodes/{id}/metrics', access: 'anyone', body: null },
  { method: 'GET', path: '/api/nodes/{id}/history', access: 'anyone', body: null },
  { method: 'GET', path: '/api/l4-chains/{id}/history', access: 'anyone', body: null },
  { method: 'GET', path: '/api/l4-upstreams/{id}/history', access: 'anyone', body: null },
  { method: 'GET', path: '/api/l4-upstreams/{id}/health', access: 'anyone', body: null },
  { method: 'GET', path: '/api/nodes/{id}/config', access: 'anyone', body: null },
  { method: 'GET', path: '/api/events', access: 'anyone', body: null },
  { method: 'GET', path: '/api/incidents', access: 'anyone', body: null },
  { method: 'GET', path: '/api/l4-upstreams', access: 'anyone', body: null },
  { method: 'POST', path: '/api/l4-upstreams', access: 'operator', body: { name: 'u', endpoint: 'a.example:80' } },
  { method: 'GET', path: '/api/l4-upstreams/{id}', access: 'anyone', body: null },
  { method: 'PUT', path: '/api/l4-upstreams/{id}', access: 'operator', body: { enabled: false }, ifMatch: true },
  { method: 'DELETE', path: '/api/l4-upstreams/{id}', access: 'operator', body: null, ifMatch: true },
  { method: 'GET', path: '/api/l4-chains', access: 'anyone', body: null },
  {
    method: 'POST',
    path: '/api/l4-chains',
    access: 'operator',
    body: { name: 'c', payload: 'tcp', hops: [hop], target: { endpoint: 'a.example:80' } },
  },
  { method: 'GET', path: '/api/l4-chains/{id}', access: 'anyone', body: null },
  { method: 'PUT', path: '/api/l4-chains/{id}', access: 'operator', body: { name: 'c' }, ifMatch: true },
  { method: 'DELETE', path: '/api/l4-chains/{id}', access: 'operator', body: null, ifMatch: true },
  { method: 'POST', path: '/api/l4-chains/{id}/deploy', access: 'operator', body: null, ifMatch: true },
  { method: 'GET', path: '/api/l4-chains/{id}/deployments', access: 'anyone', body: null },
  { method: 'GET', path: '/api/l4-chains/{id}/plan', access: 'anyone', body: null },
  { method: 'GET', path: '/api/l4-chains/{id}/links', access: 'anyone', body: null },
  { method: 'GET', path: '/api/l4-chains/transports', access: 'anyone', body: null },
  { method: 'GET', path: '/api/nodes/{id}/diagnostics', access: 'operator', body: null },
  { method: 'GET', path: '/api/nodes/{id}/free-ports', access: 'anyone', body: null },
  { method: 'GET', path: '/api/routes', access: 'anyone', body: null },
  {
    method: 'POST',
    path: '/api/routes',
    access: 'operator',
    body: { name: 'r', host: 'a.example', hops: [{ node_id: id, listen_port: 80 }], backend: 'b.example:80' },
  },
  { method: 'GET', path: '/api/routes/{id}', access: 'anyone', body: null },
  { method: 'PUT', path: '/api/routes/{id}', access: 'operator', body: { name: 'r' }, ifMatch: true },
  { method: 'DELETE', path: '/api/routes/{id}', access: 'operator', body: null, ifMatch: true },
  { method: 'GET', path: '/api/routes/{id}/hops', access: 'anyone', body: null },
  { method: 'GET', path: '/api/credentials', access: 'anyone', body: null },
  { method: 'POST', path: '/api/credentials', access: 'operator', body: { name: 'c', key_type: 'x25519' } },
  { method: 'GET', path: '/api/credentials/{id}', access: 'anyone', body: null },
  { method: 'PUT', path: '/api/credentials/{id}', access: 'operator', body: { name: 'c' }, ifMatch: true },
  { method: 'DELETE', path: '/api/credentials/{id}', access: 'operator', body: null, ifMatch: true },
  { method: 'GET', path: '/api/nodes/ports', access: 'anyone', body: null },
  { method: 'GET', path: '/api/nodes/ports/runtime', access: 'anyone', body: null },
  { method: 'GET', path: '/api/nodes/links', access: 'anyone', body: null },
  { method: 'GET', path: '/api/nodes/labels', access: 'anyone', body: null },
  { method: 'GET', path: '/api/topology', access: 'anyone', body: null },
  { method: 'GET', path: '/api/dashboard/history', access: 'anyone', body: null },
  { method: 'GET', path: '/api/nodes/{id}/links', access: 'anyone', body: null },
  { method: 'GET', path: '/api/nodes/{id}/referrers', access: 'anyone', body: null },
  { method: 'GET', path: '/api/nodes/control-endpoint', access: 'anyone', body: null },
  {
    method: 'PUT',
    path: '/api/nodes/ports/policies',
    access: 'operator',
    body: { nodeId: id, transport: 'tcp', listenAddr: '0.0.0.0', listenPort: 80, priorityOrder: [] },
    ifMatch: true,
  },
  {
    method: 'DELETE',
    path: '/api/nodes/ports/policies',
    access: 'operator',
    body: null,
    ifMatch: true,
    query: `nodeId=${id}&transport=tcp&listenAddr=0.0.0.0&listenPort=80`,
  },
  { method: 'GET', path: '/api/l3-networks', access: 'anyone', body: null },
  {
    method: 'POST',
    path: '/api/l3-networks',
    access: 'operator',
    body: { name: 'n', credential_id: id, server_name: 'a.example', members: [member] },
  },
  { method: 'GET', path: '/api/l3-networks/{id}', access: 'anyone', body: null },
  { method: 'PUT', path: '/api/l3-networks/{id}', access: 'operator', body: { mtu: 1400 }, ifMatch: true },
  { method: 'DELETE', path: '/api/l3-networks/{id}', access: 'operator', body: null, ifMatch: true },
  { method: 'GET', path: '/api/l3-networks/{id}/nodes', access: 'anyone', body: null },
  { method: 'GET', path: '/api/rollout-policies', access: 'anyone', body: null },
  {
    method: 'POST',
    path: '/api/rollout-policies',
    access: 'operator',
    body: { name: 'careful', waves: [{ nodes: '10%' }] },
  },
  { method: 'GET', path: '/api/rollout-policies/{id}', access: 'anyone', body: null },
  { method: 'PUT', path: '/api/rollout-policies/{id}', access: 'operator', body: { bake_secs: 30 }, ifMatch: true },
  { method: 'DELETE', path: '/api/rollout-policies/{id}', access: 'operator', body: null, ifMatch: true },
  { method: 'GET', path: '/api/rollouts', access: 'anyone', body: null },
  { method: 'GET', path: '/api/rollouts/{id}', access: 'anyone', body: null },
  { method: 'POST', path: '/api/rollouts/{id}/pause', access: 'operator', body: null },
  { method: 'POST', path: '/api/rollouts/{id}/resume', access: 'operator', body: null },
  { method: 'POST', path: '/api/rollouts/{id}/advance', access: 'operator', body: null },
  { method: 'POST', path: '/api/rollouts/{id}/complete', access: 'operator', body: null },
  { method: 'POST', path: '/api/rollouts/{id}/revert', access: 'operator', body: null },
  { method: 'GET', path: '/api/webhooks', access: 'admin', body: null },
  { method: 'POST', path: '/api/webhooks', access: 'admin', body: { name: 'w', url: 'https://hooks.example/w' } },
  { method: 'GET', path: '/api/webhooks/{id}', access: 'admin', body: null },
  { method: 'PUT', path: '/api/webhooks/{id}', access: 'admin', body: { enabled: false }, ifMatch: true },
  { method: 'DELETE', path: '/api/webhooks/{id}', access: 'admin', body: null, ifMatch: true },
  { method: 'POST', path: '/api/webhooks/{id}/resume', access: 'admin', body: { after: 'now' } },
  { method: 'POST', path: '/api/webhooks/{id}/ping', access: 'admin', body: null },
  { method: 'GET', path: '/api/webhooks/{id}/deliveries', access: 'admin', body: null },
  { method: 'GET', path: '/api/join-tokens', access: 'anyone', body: null },
  { method: 'POST', path: '/api/join-tokens', access: 'operator', body: { name: 'j' } },
  { method: 'GET', path: '/api/join-tokens/{id}', access: 'anyone', body: null },
  { method: 'DELETE', path: '/api/join-tokens/{id}', access: 'operator', body: null, ifMatch: true },
  { method: 'GET', path: '/api/fleet/export', access: 'anyone', body: null },
  { method: 'POST', path: '/api/fleet/plan', access: 'anyone', body: { document: 'svc: 1' } },
  { method: 'POST', path: '/api/fleet/apply', access: 'operator', body: { document: 'svc: 1' }, ifMatch: true },
  { method: 'GET', path: '/api/fleet/applies/{id}', access: 'anyone', body: null },
  { method: 'POST', path: '/api/fleet/applies/{id}/revert', access: 'operator', body: null },
  { method: 'GET', path: '/api/fleet/sets', access: 'anyone', body: null },
  { method: 'GET', path: '/api/fleet/sets/{set}/drift', access: 'anyone', body: null },
  { method: 'POST', path: '/api/fleet/sets/{set}/release', access: 'operator', body: null },
  { method: 'GET', path: '/api/settings/connectivity', access: 'anyone', body: null },
  { method: 'PUT', path: '/api/settings/connectivity', access: 'operator', body: { multiplex: false }, ifMatch: true },
  { method: 'GET', path: '/api/service/identity', access: 'anyone', body: null },
  { method: 'POST', path: '/api/service/identity/rotate', access: 'admin', body: null },
  { method: 'POST', path: '/api/service/identity/retire', access: 'admin', body: { force: true } },
  { method: 'GET', path: '/api/audit', access: 'anyone', body: null },
  { method: 'GET', path: '/api/audit/{id}', access: 'anyone', body: null },
  { method: 'GET', path: '/api/audit/{id}/changes', access: 'anyone', body: null },
  { method: 'POST', path: '/api/audit/{id}/revert', access: 'operator', body: null },
  { method: 'POST', path: '/api/audit/{id}/confirm', access: 'operator', body: null },
  { method: 'GET', path: '/api/dashboard/stats', access: 'anyone', body: null },
];

/** Paths outside `/api`; they need no token. */
export const openPaths = ['/healthz', '/readyz', '/metrics', '/openapi.json', '/docs'];

export const unknownId = id;

export function urlOf(endpoint: Pick<ListedEndpoint, 'path'>, resourceId: string = id): string {
  return endpoint.path.replace('{id}', resourceId);
}

/** With the query that it requires, if any. */
export function wholeUrlOf(endpoint: Pick<ListedEndpoint, 'path' | 'query'>, resourceId: string = id): string {
  return urlOf(endpoint, resourceId) + (endpoint.query === undefined ? '' : `?${endpoint.query}`);
}

export function nameOf({ method, path }: ListedEndpoint): string {
  return `${method} ${path}`;
}
