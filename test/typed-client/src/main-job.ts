/** What an operator does first, through a client that is generated from the OpenAPI document. Written as a user would. */
import createClient from 'openapi-fetch';
import type { components, paths } from './openapi.js';

type Schemas = components['schemas'];

export interface Done {
  readonly node: Schemas['CreatedNode'];
  readonly upstream: Schemas['L4Upstream'];
  readonly plan: Schemas['L4ChainPlan'];
  readonly deployed: Schemas['DeployedL4Chain'];
  readonly config: Schemas['NodeSnapshot'];
  readonly actions: readonly string[];
  /** What the service says of the node after its delete. */
  readonly gone: { readonly status: number; readonly failure: Failure };
}

/** Openapi-fetch leaves out of its types what is always null. */
type Failure = Omit<Schemas['Failure'], 'data'>;

/** The data of a success. @throws Error with the service's own sentence */
function dataOf<T>(answer: { readonly data?: { readonly data: T }; readonly error?: Failure }): T {
  if (answer.data === undefined) throw new Error(answer.error?.error ?? 'no answer');
  return answer.data.data;
}

export async function mainJob(baseUrl: string, username: string, password: string): Promise<Done> {
  const api = createClient<paths>({ baseUrl });
  const { token, token_type } = dataOf(await api.POST('/api/auth/login', { body: { username, password } }));
  api.use({
    onRequest: ({ request }) => {
      request.headers.set('authorization', `${token_type} ${token}`);
      return request;
    },
  });

  const node = dataOf(
    await api.POST('/api/nodes', {
      params: { header: { 'idempotency-key': 'main-job-node' } },
      body: { name: 'edge-1', address: 'edge-1.example', labels: { region: 'eu' } },
    }),
  );
  const upstream = dataOf(await api.POST('/api/l4-upstreams', { body: { name: 'app', endpoint: 'app.example:8443' } }));
  const chain = dataOf(
    await api.POST('/api/l4-chains', {
      body: {
        name: 'front',
        payload: 'tcp',
        hops: [{ node_id: node.id, listen_port: 443, outer: 'tcp', security: 'raw' }],
        target: { upstream_id: upstream.id },
      },
    }),
  );

  const path = { id: chain.id };
  const planned = await api.GET('/api/l4-chains/{id}/plan', { params: { path } });
  const plan = dataOf(planned);
  const deployed = dataOf(
    await api.POST('/api/l4-chains/{id}/deploy', {
      params: {
        path,
        query: { wait: 'applied', timeout_ms: 0 },
        header: { 'if-match': planned.response.headers.get('etag') ?? '' },
      },
    }),
  );
  const config = dataOf(await api.GET('/api/nodes/{id}/config', { params: { path: { id: node.id } } }));
  const audit = dataOf(await api.GET('/api/audit', { params: { query: { resource_id: chain.id, page_size: 10 } } }));

  dataOf(await api.DELETE('/api/l4-chains/{id}', { params: { path, header: { 'if-match': '*' } } }));
  dataOf(await api.DELETE('/api/l4-upstreams/{id}', { params: { path: { id: upstream.id } } }));
  dataOf(await api.DELETE('/api/nodes/{id}', { params: { path: { id: node.id } } }));
  const { response, error } = await api.GET('/api/nodes/{id}', { params: { path: { id: node.id } } });
  if (error === undefined) throw new Error('a deleted node is still there');
  return {
    node,
    upstream,
    plan,
    deployed,
    config,
    actions: audit.items.map(({ action }) => action),
    gone: { status: response.status, failure: error },
  };
}
