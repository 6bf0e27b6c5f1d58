/**
 * Listener policies as a resource. The API has neither a list nor ids for them: they are in the port table, and their name is their listener, as in plans: `edge-1/tcp/0.0.0.0/443`.
 */
import type { RolloutQuery } from './options.js';
import { usage } from './exit.js';
import type { Row } from './output.js';
import { dataOf, type Api } from './service.js';

const path = '/api/nodes/ports/policies';
type Query = Readonly<Record<string, string | readonly string[]>>;

/** All policies, on one page. @throws Failure */
export async function* pagesOfPolicies(api: Api, query: Query): AsyncGenerator<readonly Row[]> {
  const { nodes, items } = await dataOf(api.GET('/api/nodes/ports', { params: { query: query as never } }));
  const names = new Map(nodes.map(({ id, name }) => [id, name]));
  yield items
    .filter(({ policySaved }) => policySaved)
    .map(({ nodeId, transport, listenAddr, listenPort, priorityOrder }) => ({
      name: [names.get(nodeId) ?? nodeId, transport, listenAddr, listenPort].join('/'),
      nodeId,
      transport,
      listenAddr,
      listenPort,
      priorityOrder,
    }));
}

/** Parses a name. @throws Failure usage */
export async function listenerOf(api: Api, name: string): Promise<Row> {
  const [, node, transport, listenAddr, listenPort] = /^(.+)\/(tcp|udp)\/([^/]+)\/([0-9]{1,5})$/.exec(name) ?? [];
  if (node === undefined) throw usage(`${name}: expected a listener, such as edge-1/tcp/0.0.0.0/443`);
  const { nodes } = await dataOf(api.GET('/api/nodes/ports'));
  const found = nodes.find((one) => one.name === node || one.id === node);
  if (found === undefined) throw usage(`${name}: there is no node ${node}`);
  return { nodeId: found.id, transport, listenAddr, listenPort: Number(listenPort) };
}

/** Creates or replaces one. @returns the answer @throws Failure */
export const savePolicy = (api: Api, fields: Row, query: RolloutQuery = {}): Promise<Row> =>
  dataOf(api.PUT(path, { params: { query }, body: fields as never }));

/** @throws Failure */
export async function deletePolicy(api: Api, { nodeId, transport, listenAddr, listenPort }: Row): Promise<void> {
  const query = { nodeId, transport, listenAddr, listenPort } as never;
  await dataOf(api.DELETE(path, { params: { query } }));
}
