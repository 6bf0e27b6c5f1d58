/** The reports of one instance or several on one store, whose calls are counted and may fail. */
import { ServiceError } from '../../src/kernel/errors.js';
import { silentLogger } from '../../src/kernel/logger.js';
import type { Carriers, PresenceFacts } from '../../src/reports/port.js';
import { openReports, type Known, type ReportsService } from '../../src/reports/reports.js';
import type { Collection, CollectionSpec, Fields, Leases, ReadStore } from '../../src/storage/read-store.js';
import { createManualClock, type ManualClock } from './manual-clock.js';
import { storesInMemory } from './stores-in-memory.js';
import type { TemporaryStores } from './temporary-stores.js';

export interface OpenedReports {
  readonly clock: ManualClock;
  readonly readStore: ReadStore;
  /** Documents written and read so far, by collection. */
  readonly writes: Map<string, number>;
  readonly reads: Map<string, number>;
  /** Instances that refuse to write from now on, as after a kill. */
  readonly dead: Set<string>;
  away: boolean;
  /** Reads of several documents wait for it. */
  readsHeld: Promise<void> | undefined;
  /** Called before each write. */
  beforeWrite: ((collection: string) => Promise<void>) | undefined;
  /** Nodes that the fleet does not have any more. */
  readonly gone: Set<string>;
  /** The only instance on the store. */
  alone(known?: Known): Promise<ReportsService>;
  /** One of several. @param leases in place of the store's */
  oneOfSeveral(name: string, leases?: Partial<Leases>): Promise<ReportsService>;
  stored(collection: string, nodeId: string): Promise<Fields | undefined>;
  close(): Promise<void>;
}

export const presenceOf = (session_id: string, instance_id = 'one', pushed_generation = 0): PresenceFacts => ({
  session_id,
  instance_id,
  pushed_generation,
  pushed_at: null,
});

const versions: { readonly [collection: string]: number } = {
  node_beats: 2,
  node_listeners: 2,
  node_links: 3,
  node_metrics: 4,
};

/** @param open opens the store; one in memory unless the test is about what a real one gives back */
export async function openedReports(
  at?: number,
  carriers?: (nodeId: string) => Carriers,
  open: (clock: ManualClock) => TemporaryStores | Promise<TemporaryStores> = storesInMemory,
): Promise<OpenedReports> {
  const clock = createManualClock(at);
  const stores = await open(clock);
  const opened: ReportsService[] = [];
  const instances = new Set<string>();
  const index = { index: { group: 'instance', order: 'place' } };
  const count = (counts: Map<string, number>, name: string, documents: number): void =>
    void counts.set(name, (counts.get(name) ?? 0) + documents);

  const storeOf = (instance: string, leases: Partial<Leases> = {}): ReadStore => ({
    ...stores.readStore,
    leases: { ...stores.readStore.leases, ...leases },
    async collection<F extends Fields>(spec: CollectionSpec): Promise<Collection<F>> {
      const collection = await stores.readStore.collection<F>(spec);
      const check = (): void => {
        if (made.away || made.dead.has(instance)) throw new ServiceError('unavailable', 'away');
      };
      return {
        ...collection,
        async set(documents) {
          check();
          await made.beforeWrite?.(spec.name);
          count(made.writes, spec.name, documents.length);
          await collection.set(documents);
        },
        async get(id) {
          check();
          count(made.reads, spec.name, 1);
          return collection.get(id);
        },
        async getMany(ids) {
          check();
          await made.readsHeld;
          const documents = await collection.getMany(ids);
          count(made.reads, spec.name, documents.length);
          return documents;
        },
      };
    },
  });
  async function start(
    instanceId: string,
    readStore: ReadStore,
    isShared: boolean,
    known?: Known,
  ): Promise<ReportsService> {
    instances.add(instanceId);
    const liveInstances = isShared ? { liveInstances: async () => [...instances] } : {};
    const reports = await openReports({
      readStore,
      instanceId,
      clock,
      logger: silentLogger,
      deletionTime: clock.now,
      carriers,
      known,
      isGone: (nodeId) => made.gone.has(nodeId),
      ...liveInstances,
    });
    opened.push(reports);
    // What was stored is read behind the start.
    if (!made.away && made.readsHeld === undefined) await reports.flush();
    return reports;
  }

  const made: OpenedReports = {
    clock,
    readStore: stores.readStore,
    writes: new Map(),
    reads: new Map(),
    dead: new Set(),
    away: false,
    readsHeld: undefined,
    beforeWrite: undefined,
    gone: new Set(),
    alone: (known) => start('one', storeOf('one'), false, known),
    oneOfSeveral: (name, leases) => start(name, storeOf(name, leases), true),
    async stored(name, nodeId) {
      const spec = { name, version: versions[name] ?? 1 };
      const shared = name === 'node_beats' && instances.size > 1 ? index : {};
      return (await (await stores.readStore.collection({ ...spec, ...shared })).get(nodeId))?.fields;
    },
    async close() {
      for (const reports of opened) await reports.close();
      await stores.close();
    },
  };
  return made;
}
