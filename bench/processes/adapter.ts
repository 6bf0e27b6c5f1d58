/**
 * A separate process that runs parts of the service on a pair of stores: commands through the gateway, following the log
 * without writing, rebuilding the read models. No REST and no delivery; commands do not wait for read models.
 */
import { fleetGateway } from '../../scripts/maintenance/fleet-gateway.js';
import type { FleetCommand } from '../../src/domain/fleet/resources.js';
import { systemClock } from '../../src/kernel/clock.js';
import { allStreams, streams } from '../../src/kernel/event.js';
import { randomIds } from '../../src/kernel/ids.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { createLogChain } from '../../src/security/log-chain/log-chain.js';
import { benchChainKey } from './chain-key.js';
import { rebuildReadModels } from '../../src/projections/rebuild/rebuild.js';
import { ownEvent } from '../../src/storage/broken-log.js';
import { lastRevision } from '../../src/storage/event-store.js';
import { followLog } from '../../src/storage/follow.js';
import { openStores, type OpenStores } from '../../src/storage/open-stores.js';
import type { Collection, CollectionSpec, Fields, ReadStore } from '../../src/storage/read-store.js';
import { answerParent } from '../child.js';
import { writeFleetLog } from '../fleet-log.js';

export interface AdapterStores {
  readonly dataDir: string;
  readonly eventStoreUrl?: string;
  readonly mongoUrl?: string;
}

export interface CommandRun {
  readonly callers: number;
  readonly forMs: number;
}

export interface Walked {
  readonly events: number;
  readonly ms: number;
}

export interface Rebuilt extends Walked {
  readonly documentsWritten: number;
}

const stores = JSON.parse(process.argv[2] ?? '{}') as AdapterStores;
const actor = { type: 'user', id: '00000000-0000-4000-8000-000000000001', name: 'operator' } as const;
let opened: Promise<OpenStores> | undefined;
let gateway: ReturnType<typeof fleetGateway> | undefined;

function open(): Promise<OpenStores> {
  opened ??= openStores({ ...stores, clock: systemClock, logger: silentLogger, giveUpMs: 30_000 });
  return opened;
}

async function openGateway(): ReturnType<typeof fleetGateway> {
  return fleetGateway(await open(), createLogChain(benchChainKey));
}

/** The same command as the benchmark over REST: a new upstream, always of the same size. */
function upstream(): FleetCommand {
  return {
    type: 'CreateUpstream',
    id: randomIds.next(),
    name: `upstream-${randomIds.next()}`,
    endpoint: '192.0.2.10:8443',
    server_names: ['one.example.org', 'two.example.org'],
    health_check_interval_ms: 5_000,
    enabled: true,
    tls: null,
    reality: null,
  };
}

async function commands({ callers, forMs }: CommandRun): Promise<number> {
  const running = await (gateway ??= openGateway());
  const context = { actor, requestId: 'bench' };
  let done = 0;
  const began = performance.now();
  const until = began + forMs;
  await Promise.all(
    Array.from({ length: callers }, async () => {
      while (performance.now() < until) {
        await running.execute(upstream(), context, () => undefined);
        done += 1;
      }
    }),
  );
  return (done * 1000) / (performance.now() - began);
}

/** The newest stored event, for a floor that appends the same. */
async function sample(): Promise<string> {
  const { eventStore } = await open();
  const newest = { direction: 'backward', from: 'end', maxCount: 1 } as const;
  for await (const event of eventStore.read(streams.fleet, newest)) {
    const { id, type, data, metadata } = ownEvent(event);
    return JSON.stringify({ id, type, data, metadata });
  }
  throw new Error('the log is empty');
}

async function fill(events: number): Promise<number> {
  const { eventStore } = await open();
  await writeFleetLog({ eventStore, logChain: createLogChain(benchChainKey) }, events);
  return ((await lastRevision(eventStore, streams.fleet)) ?? -1) + 1;
}

/** Reads whole commands like the projections, and only counts their events. */
async function follow(): Promise<Walked> {
  const { eventStore } = await open();
  const stop = new AbortController();
  const began = performance.now();
  let events = 0;
  for await (const item of followLog(eventStore, { streams: allStreams, after: 'start', signal: stop.signal })) {
    if (item.kind === 'commands') for (const command of item.commands) events += command.events.length;
    if (item.kind === 'caught_up') break;
    if (item.kind === 'dropped') throw item.cause;
  }
  const ms = performance.now() - began;
  stop.abort();
  return { events, ms };
}

/** The read store, with a count of the guarded writes of a rebuild. */
function counting(readStore: ReadStore, count: (writes: number) => void): ReadStore {
  return {
    ...readStore,
    async collection<F extends Fields>(spec: CollectionSpec): Promise<Collection<F>> {
      const collection = await readStore.collection<F>(spec);
      return {
        ...collection,
        write(writes) {
          count(writes.length);
          return collection.write(writes);
        },
      };
    },
  };
}

async function rebuild(): Promise<Rebuilt> {
  const { eventStore, readStore } = await open();
  let documentsWritten = 0;
  const began = performance.now();
  const outcome = await rebuildReadModels({
    eventStore,
    readStore: counting(readStore, (writes) => (documentsWritten += writes)),
    logger: silentLogger,
    signal: new AbortController().signal,
    onProgress: () => undefined,
  });
  if (outcome.kind !== 'done') throw new Error('the rebuild was interrupted');
  return { events: outcome.events, ms: performance.now() - began, documentsWritten };
}

answerParent({
  commands,
  sample,
  fill,
  follow,
  rebuild,
  async close() {
    await (await gateway)?.close();
    await (await opened)?.close();
  },
});
