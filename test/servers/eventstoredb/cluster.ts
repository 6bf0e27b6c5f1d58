/**
 * The nodes of a cluster in this process: test servers that share one log, one of which leads. Not replication: every
 * node has every event at once.
 */
import { startEventStoreDb, type EventStoreDbServer } from './server.js';

export interface EventStoreDbCluster {
  readonly nodes: readonly EventStoreDbServer[];
  /** Names the nodes in order, with options for quick discovery. */
  readonly url: string;
  /** Makes another node the leader; all nodes know it. */
  lead(index: number): void;
  close(): Promise<void>;
}

/** The first of `count` nodes is a follower, the last one leads. */
export async function startCluster(count = 2): Promise<EventStoreDbCluster> {
  const nodes: EventStoreDbServer[] = [];
  for (let index = 0; index < count; index += 1) {
    nodes.push(await startEventStoreDb(nodes[0] === undefined ? {} : { log: nodes[0].log }));
  }
  const lead = (index: number): void => {
    for (const [at, node] of nodes.entries()) {
      node.faults.leader = at === index ? undefined : { host: '127.0.0.1', port: nodes[index]!.port };
    }
  };
  lead(count - 1);
  const hosts = nodes.map(({ port }) => `127.0.0.1:${port}`).join(',');
  return {
    nodes,
    url: `esdb://${hosts}?tls=false&discoveryInterval=20&maxDiscoverAttempts=3`,
    lead,
    async close() {
      await Promise.all(nodes.map((node) => node.close()));
    },
  };
}
