/**
 * The nodes of a cluster in this process: test servers that share one log, one of which leads. No replication: every node
 * has every event at once, unless it is cut off. What a node answers in each state, and what gossip tells of it, is as it
 * was measured on three real ones; the test decides when a state begins.
 */
import type { Member } from './faults.js';
import { startEventStoreDb, type EventStoreDbServer } from './server.js';

export interface EventStoreDbCluster {
  readonly nodes: readonly EventStoreDbServer[];
  /** Names the nodes in order, with options for quick discovery. */
  readonly url: string;
  /** Makes another node the leader; all nodes that are not cut off know it. */
  lead(index: number): void;
  /**
   * Cuts a node off from the others, while clients still reach it. A leader still calls itself one: it answers reads, and
   * no append is committed.
   */
  cutOff(index: number): void;
  /**
   * A leader that was cut off learns after about 3 s that it no longer leads, and so do the others: until one of them leads,
   * each node refuses appends, and reads and subscriptions that require the leader. To the others it is dead, and to it
   * they are.
   */
  standDown(index: number): void;
  /** Ends a node that was cut off or frozen, as it ends itself when it meets the others, and starts it as a follower. */
  rejoin(index: number): Promise<void>;
  close(): Promise<void>;
}

/** How long a leader waits for the others before it gives up on a commit. */
const commitTimeoutMs = 2_700;

export interface ClusterOptions {
  /** The nodes can be frozen. */
  readonly freezable?: boolean;
}

/** The first of `count` nodes is a follower, the last one leads. */
export async function startCluster(
  count = 2,
  { freezable = false }: ClusterOptions = {},
): Promise<EventStoreDbCluster> {
  const nodes: EventStoreDbServer[] = [];
  for (let index = 0; index < count; index += 1) {
    nodes.push(await startEventStoreDb({ freezable, ...(nodes[0] !== undefined && { log: nodes[0].log }) }));
  }
  /** Cut off, and whether each of them has stood down. */
  const away = new Map<number, boolean>();
  let leader: number | undefined = count - 1;

  function tell(): void {
    const seenBy = (viewer: number): Member[] =>
      nodes.map(({ port }, index): Member => {
        const other = index !== viewer && (away.get(index) === true || away.get(viewer) === true);
        const lost = other || away.get(index) === true;
        const state = lost || leader === undefined ? 'Unknown' : index === leader ? 'Leader' : 'Follower';
        return { port, state, alive: !other };
      });
    for (const [index, { faults }] of nodes.entries()) {
      // Until it has stood down, it tells what it has told before.
      if (away.get(index) === false) continue;
      faults.members = seenBy(index);
      if (away.has(index)) continue;
      faults.notReady = leader === undefined;
      faults.leader =
        leader === undefined || index === leader ? undefined : { host: '127.0.0.1', port: nodes[leader]!.port };
    }
  }

  tell();
  const hosts = nodes.map(({ port }) => `127.0.0.1:${port}`).join(',');
  return {
    nodes,
    url: `esdb://${hosts}?tls=false&discoveryInterval=20&maxDiscoverAttempts=3`,
    lead(index) {
      leader = index;
      tell();
    },
    cutOff(index) {
      const { faults, log } = nodes[index]!;
      away.set(index, false);
      faults.cutOffAt = log.head();
      faults.choose = () => ({ kind: 'no_quorum', ms: commitTimeoutMs });
    },
    standDown(index) {
      away.set(index, true);
      if (leader === index) leader = undefined;
      nodes[index]!.faults.notReady = true;
      tell();
    },
    async rejoin(index) {
      const { faults, refuse, listen, thaw } = nodes[index]!;
      thaw();
      await refuse();
      away.delete(index);
      Object.assign(faults, { cutOffAt: undefined, choose: undefined, notReady: false });
      tell();
      await listen();
    },
    async close() {
      await Promise.all(nodes.map((node) => node.close()));
    },
  };
}
