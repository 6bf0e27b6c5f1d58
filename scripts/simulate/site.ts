/**
 * Creates the simulator's resources in a service: nodes with one deployed chain each, all to one shared upstream, and some
 * upstreams that only one node uses, so that a change can touch one node or all. Removes everything afterwards.
 */
import { CommandError } from '../maintenance/command-line.js';
import type { RestClient } from '../stack/rest-client.js';
import type { LightCredentials } from './light/fleet.js';

export interface Site {
  readonly nodes: readonly LightCredentials[];
  /** Changes what one node runs, or what all run. */
  edit(what: 'one' | 'all'): Promise<Edit>;
  /** The generation that each node should run, and the one that it has applied, from the service's read models. */
  generations(): Promise<ReadonlyMap<string, { readonly newest: number; readonly applied: number | null }>>;
  /** Deletes everything that was created, even if creating failed half way. */
  remove(): Promise<void>;
}

export interface Edit {
  /** The touched node; undefined: all of them. */
  readonly nodeId: string | undefined;
  /** The generation that the touched nodes must run at least. */
  readonly generation: number;
}

/** How many upstreams belong to a single node; edits use them in turn. */
const ownMax = 50;
const callersAtOnce = 16;
const pageSize = 500;

interface Created {
  readonly id: string;
}

interface NodeView {
  readonly id: string;
  readonly generation: number;
  readonly applied_generation: number | null;
}

/**
 * Creates nodes named `sim-<run>-…` with everything they need.
 * @param progress called with how many nodes are complete
 * @throws Error when interrupted, or when the service refuses something; `remove` has then been called
 */
export async function createSite(
  rest: RestClient,
  run: string,
  count: number,
  signal: AbortSignal,
  progress: (nodes: number) => void,
): Promise<Site> {
  const prefix = `sim-${run}-`;
  /** Paths to delete, in order of creation. */
  const created: string[] = [];
  const create = async <T extends Created>(path: string, body: object): Promise<T> => {
    const made = await rest.call<T>('POST', path, body);
    created.push(`${path}/${made.id}`);
    return made;
  };
  const remove = async (): Promise<void> => {
    // Chains refer to nodes and upstreams, so they go first.
    for (const kind of ['/api/l4-chains/', '/api/l4-upstreams/', '/api/nodes/']) {
      const paths = created.filter((path) => path.startsWith(kind));
      await inParallel(paths.length, async (index) => {
        const path = paths[index] ?? '';
        const answer = await rest.send('DELETE', path);
        // Somebody else may have deleted it.
        if (answer.status !== 404 && !answer.body.success) {
          throw new Error(`DELETE ${path} answered ${answer.status}: ${answer.body.error}`);
        }
      });
    }
    created.length = 0;
  };
  const chain = async (name: string, nodeId: string, port: number, upstreamId: string): Promise<void> => {
    const hop = { node_id: nodeId, listen_port: port, outer: 'tcp', security: 'raw' };
    const body = { name, payload: 'tcp', hops: [hop], target: { upstream_id: upstreamId } };
    const { id } = await create<Created>('/api/l4-chains', body);
    await rest.call('POST', `/api/l4-chains/${id}/deploy`);
  };
  const upstream = (name: string): Promise<Created> =>
    create('/api/l4-upstreams', { name: `${prefix}${name}`, endpoint: endpointOf(0) });

  const nodes: LightCredentials[] = [];
  const own: { readonly nodeId: string; readonly upstreamId: string }[] = [];
  let shared: Created;
  try {
    shared = await upstream('shared');
    await inParallel(count, async (index) => {
      if (signal.aborted) throw new CommandError('interrupted while nodes were created');
      const body = { name: `${prefix}${index}`, address: '192.0.2.1' };
      const node = await create<Created & { control_psk: string }>('/api/nodes', body);
      await chain(`${prefix}shared-${index}`, node.id, 20_000, shared.id);
      if (index < ownMax) {
        const { id } = await upstream(`own-${index}`);
        await chain(`${prefix}own-${index}`, node.id, 20_001, id);
        own.push({ nodeId: node.id, upstreamId: id });
      }
      nodes.push({ nodeId: node.id, controlPsk: node.control_psk });
      progress(nodes.length);
    });
  } catch (error) {
    await remove();
    throw error;
  }

  let edits = 0;
  return {
    nodes,
    async edit(what) {
      edits += 1;
      const one = what === 'one' ? own[edits % own.length] : undefined;
      const body = { endpoint: endpointOf(edits) };
      const path = `/api/l4-upstreams/${one?.upstreamId ?? shared.id}`;
      const answer = await rest.send('PUT', path, body);
      if (!answer.body.success) throw new Error(`PUT ${path} answered ${answer.status}: ${answer.body.error}`);
      const headers = { 'x-min-position': answer.headers.get('x-position') ?? '0' };
      const nodeId = one?.nodeId ?? own[0]?.nodeId ?? '';
      const { generation } = await rest.call<NodeView>('GET', `/api/nodes/${nodeId}`, undefined, headers);
      return { nodeId: one?.nodeId, generation };
    },
    async generations() {
      const found = new Map<string, { readonly newest: number; readonly applied: number | null }>();
      for (let page = 1; ; page += 1) {
        const path = `/api/nodes?q=${prefix}&page=${page}&page_size=${pageSize}`;
        const { items } = await rest.call<{ items: readonly NodeView[] }>('GET', path);
        for (const { id, generation, applied_generation } of items) {
          found.set(id, { newest: generation, applied: applied_generation });
        }
        if (items.length < pageSize) return found;
      }
    },
    remove,
  };
}

/** Differs from the previous one, so that each edit changes something. */
const endpointOf = (edit: number): string => `192.0.2.10:${8_443 + (edit % 50_000)}`;

/** Runs `each` for 0..count-1, several at a time; the first failure stops it. */
async function inParallel(count: number, each: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const work = async (): Promise<void> => {
    for (let index = next++; index < count; index = next++) {
      try {
        await each(index);
      } catch (error) {
        next = count;
        throw error;
      }
    }
  };
  const done = await Promise.allSettled(Array.from({ length: Math.min(count, callersAtOnce) }, work));
  for (const outcome of done) if (outcome.status === 'rejected') throw outcome.reason;
}
