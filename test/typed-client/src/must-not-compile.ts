/** Calls that the document does not allow. Each must be a compile error: the directive above it is one otherwise. */
import createClient from 'openapi-fetch';
import type { components, paths } from './openapi.js';

type Schemas = components['schemas'];
const api = createClient<paths>({ baseUrl: 'http://service.example' });
const id = '1f0c3f5e-6d0c-4f0b-9a55-3c1f0e6b7a10';

// @ts-expect-error A field with another name.
await api.POST('/api/l4-upstreams', { body: { name: 'app', end_point: 'app.example:1' } });
// @ts-expect-error A field of another type.
await api.POST('/api/l4-upstreams', { body: { name: 'app', endpoint: 'app.example:1', server_names: 'app.example' } });
// Openapi-fetch lets more fields pass than there are; a body that has its type does not.
// @ts-expect-error A field that the resource does not have.
export const upstream: Schemas['NewL4Upstream'] = { name: 'app', endpoint: 'app.example:1', health_check_path: '/' };
// @ts-expect-error A field that only a create takes.
export const changes: Schemas['L4UpstreamChanges'] = { name: 'app' };
// @ts-expect-error A value that the field does not have.
await api.POST('/api/nodes/{id}/commands', { params: { path: { id } }, body: { command: 'SHUT_DOWN' } });
// @ts-expect-error A body where there is none.
await api.POST('/api/nodes/{id}/config', { params: { path: { id } }, body: { rules: [] } });
// @ts-expect-error A query parameter that does not exist.
await api.GET('/api/nodes', { params: { query: { limit: 10 } } });
// @ts-expect-error A part of the path that is missing.
await api.GET('/api/nodes/{id}');
// @ts-expect-error A path that does not exist.
await api.GET('/api/certs');
// @ts-expect-error A method that the path does not have.
await api.DELETE('/api/nodes');

export function fingerprintOf(node: Schemas['Node']): string {
  // @ts-expect-error It is null without a PSK.
  return node.psk_fingerprint;
}
export function pskOf(node: Schemas['Node']): string | null {
  // @ts-expect-error Only the answer of a create has it.
  return node.control_psk;
}
