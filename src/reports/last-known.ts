/**
 * The last known reports of each node, for as long as the read store is away: presence and telemetry. A read
 * that fails is answered from here, and says so by `stale`. Holds no more than was read; a node that was never asked
 * for is shown as one that has told nothing. Implements `docs/contract/rest.md#errors`, `x-telemetry-stale`.
 */
import { ServiceError } from '../kernel/errors.js';
import { createLru } from '../kernel/lru.js';
import type { PresenceFacts, Telemetry } from './port.js';

/** Nodes that are remembered: twice as many as a fleet is built for. */
const rememberedNodes = 20_000;

type ByNode<V> = (nodeIds: readonly string[]) => Promise<ReadonlyMap<string, V>>;

type Told = Pick<Telemetry, 'presence' | 'online' | 'vitals' | 'listeners' | 'links' | 'reportedMetrics'>;

interface Sources {
  readonly telemetry: Told & Pick<Telemetry, 'held'>;
  /** Whether the read store is known to be away: it is then not asked, so that nobody waits for it. */
  away(): boolean;
}

export interface LastKnown {
  readonly telemetry: Told;
  /** True while reads are answered from earlier results. */
  stale(): boolean;
}

export function lastKnown({ telemetry, away }: Sources): LastKnown {
  /** The newest read has failed. */
  let failing = false;

  async function read<T>(fresh: () => Promise<T>, known: () => T): Promise<T> {
    if (!away()) {
      try {
        const value = await fresh();
        failing = false;
        return value;
      } catch (error) {
        if (!(error instanceof ServiceError) || error.code !== 'unavailable') throw error;
      }
    }
    failing = true;
    return known();
  }

  function remembered<V>(source: ByNode<V>): ByNode<V> {
    const known = createLru<string, V>({ maxEntries: rememberedNodes });
    return (nodeIds) =>
      read(
        async () => {
          const found = await source(nodeIds);
          for (const [nodeId, value] of found) known.set(nodeId, value);
          return found;
        },
        () =>
          new Map(
            nodeIds.flatMap((nodeId) => {
              const value = known.get(nodeId);
              return value === undefined ? [] : [[nodeId, value] as const];
            }),
          ),
      );
  }

  let online: ReadonlyMap<string, PresenceFacts> = new Map();
  // A session that this instance holds is online, whatever the store said last.
  const knownOnline = (): ReadonlyMap<string, PresenceFacts> => new Map([...online, ...telemetry.held()]);
  return {
    telemetry: {
      presence: (nodeId) =>
        read(
          () => telemetry.presence(nodeId),
          () => knownOnline().get(nodeId),
        ),
      online: () => read(async () => (online = await telemetry.online()), knownOnline),
      vitals: remembered((nodeIds) => telemetry.vitals(nodeIds)),
      listeners: remembered((nodeIds) => telemetry.listeners(nodeIds)),
      links: remembered((nodeIds) => telemetry.links(nodeIds)),
      reportedMetrics: remembered((nodeIds) => telemetry.reportedMetrics(nodeIds)),
    },
    stale: () => away() || failing,
  };
}
