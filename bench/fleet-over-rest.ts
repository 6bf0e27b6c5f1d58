/** Creates nodes over REST for the agents of a benchmark, and compiles a snapshot of the size of theirs. */
import { randomUUID } from 'node:crypto';
import type { LightCredentials } from '../scripts/simulate/light/fleet.js';
import { applyCommand } from '../src/domain/fleet/apply.js';
import { decideFleet } from '../src/domain/fleet/decide.js';
import type { FleetCommand } from '../src/domain/fleet/resources.js';
import { emptyFleet } from '../src/domain/fleet/fleet.js';
import { compileNode } from '../src/domain/compile/compile-node.js';
import { encodeSnapshot } from '../src/delivery/encode.js';
import { asRecorded, propose } from '../src/commands/proposal.js';
import { systemContext } from '../src/commands/system.js';
import { systemClock } from '../src/kernel/clock.js';
import { streams } from '../src/kernel/event.js';
import { randomIds } from '../src/kernel/ids.js';
import type { BenchService } from './stack.js';

const endpoint = '192.0.2.10:8443';
const hop = (node_id: string, listen_port: number) =>
  ({ node_id, listen_port, outer: 'tcp', security: 'raw' }) as const;

/** Nodes without chains, named `agent-0` and so on. @param from the number of the first */
export async function createNodes(
  service: BenchService,
  count: number,
  from = 0,
): Promise<readonly LightCredentials[]> {
  return spreadOver(service, count, async (post, index) => {
    const body = { name: `agent-${from + index}`, address: '192.0.2.1' };
    const node = await post<{ id: string; control_psk: string }>('/api/nodes', body);
    return { nodeId: node.id, controlPsk: node.control_psk };
  });
}

/** Compiles and encodes the snapshot of a node with a chain on each of these ports, again with each call. */
export function snapshotOf(ports: readonly number[]): () => Uint8Array {
  const fleet = emptyFleet();
  const [node, upstream] = [randomUUID(), randomUUID()];
  const run = (command: FleetCommand): void => {
    const decision = decideFleet(fleet, command);
    if (!decision.ok) throw new Error(decision.error.message);
    const proposal = propose(decision.value, systemContext('bench'), systemClock, randomIds);
    applyCommand(fleet, asRecorded(streams.fleet, proposal, fleet.revision.value));
  };
  run({
    type: 'CreateNode',
    id: node,
    name: 'agent-0',
    description: null,
    address: '192.0.2.1',
    labels: {},
    psk: null,
  });
  const health = { server_names: [], health_check_interval_ms: 10_000, enabled: true, tls: null, reality: null };
  run({ type: 'CreateUpstream', id: upstream, name: 'own-0', endpoint, ...health });
  for (const port of ports) {
    const id = randomUUID();
    const hops = [{ ...hop(node, port), listen_addr: '0.0.0.0' }];
    const fields = { description: null, enabled: true, payload: 'tcp', target: { upstream_id: upstream } } as const;
    run({ type: 'CreateChain', id, name: `own-${port}`, hops, ...fields });
    run({ type: 'DeployChain', id, ifMatch: undefined });
  }
  return () => encodeSnapshot(compileNode(fleet, node), () => Buffer.alloc(0)).payload;
}

type Post = <T>(path: string, body?: object) => Promise<T>;
const callersAtOnce = 32;

/** Runs `each` for 0..count-1 on several callers in parallel. */
export async function spreadOver<T>(
  service: BenchService,
  count: number,
  each: (post: Post, index: number) => Promise<T>,
): Promise<readonly T[]> {
  const callers = await service.callers(Math.min(count, callersAtOnce));
  const results: T[] = [];
  let next = 0;
  try {
    await Promise.all(
      callers.map(async (caller) => {
        const post: Post = async <R>(path: string, body?: object): Promise<R> => {
          const answer = await caller.send('POST', path, body === undefined ? undefined : JSON.stringify(body));
          if (answer.status >= 300) throw new Error(`POST ${path} answered ${answer.status}: ${answer.body}`);
          return (JSON.parse(answer.body) as { data: R }).data;
        };
        for (let index = next++; index < count; index = next++) results[index] = await each(post, index);
      }),
    );
    return results;
  } finally {
    for (const caller of callers) caller.close();
  }
}
