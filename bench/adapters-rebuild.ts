/**
 * Events per second of a rebuild of the read models, and of its reading alone, on each pair of stores. Floors: a bare read
 * of the same number of events, a bare write of the same number of documents.
 */
import { join } from 'node:path';
import { startChild, type Child } from './child.js';
import { beside, median, rounded, type Figure } from './figures.js';
import type { AdapterStores, Rebuilt, Walked } from './processes/adapter.js';
import { mongoDbAvailable, withEventStoreDb, withMongoDb } from './servers.js';
import { withFolder } from './stack.js';

const longMs = 900_000;

/** The flags of `npm run projections:rebuild`: folded documents live for a segment, and a small young generation would copy them. */
const asTheCommand = ['--max-semi-space-size=64', '--min-semi-space-size=64'];

export interface RebuildSizes {
  readonly rounds: number;
  readonly events: number;
  /** Fewer, because the stand-in for MongoDB is slow. */
  readonly mongoEvents: number;
}

const perSecond = ({ events, ms }: Walked): number => (events * 1000) / ms;

/** The bare read: the client's filtered subscription, or the range read of LMDB. */
interface ReadFloor {
  prepare(events: number, sample: string): Promise<unknown>;
  read(events: number): Promise<Walked>;
  close(): Promise<void>;
}

function readFloor(eventStoreUrl: string | undefined, folder: string): ReadFloor {
  const floor =
    eventStoreUrl === undefined
      ? startChild('floors/bare-lmdb', [join(folder, 'bare')])
      : startChild('floors/bare-eventstoredb', [eventStoreUrl]);
  const reads = eventStoreUrl === undefined ? 'read' : 'subscribe';
  return {
    async prepare(count, sample) {
      if (eventStoreUrl === undefined) await floor.ask('fill', { count, sample }, longMs);
    },
    read: (events) => floor.ask<Walked>(reads, events, longMs),
    close: floor.close,
  };
}

async function onPair(stores: AdapterStores, folder: string, rounds: number, events: number): Promise<Figure> {
  const children: { close(): Promise<void> }[] = [];
  const keep = <T extends { close(): Promise<void> }>(child: T): T => {
    children.push(child);
    return child;
  };
  try {
    const subject = keep(startChild('processes/adapter', [JSON.stringify(stores)], asTheCommand));
    const bareRead = keep(readFloor(stores.eventStoreUrl, folder));
    const bareWrite =
      stores.mongoUrl === undefined ? undefined : keep(startChild('floors/bare-mongodb', [stores.mongoUrl]));
    const figures = await measure(subject, bareRead, bareWrite, rounds, events);
    await subject.ask('close');
    return figures;
  } finally {
    await Promise.all(children.map((child) => child.close()));
  }
}

async function measure(
  subject: Child,
  bareRead: ReadFloor,
  bareWrite: Child | undefined,
  rounds: number,
  events: number,
): Promise<Figure> {
  const written = await subject.ask<number>('fill', events, longMs);
  const sample = await subject.ask<string>('sample');
  await bareRead.prepare(written, sample);
  // A warm-up of each.
  await subject.ask('follow', undefined, longMs);
  await bareRead.read(written);
  const { documentsWritten: count } = await subject.ask<Rebuilt>('rebuild', undefined, longMs);
  const [rebuilt, followed, read, wroteDocuments]: [number[], number[], number[], number[]] = [[], [], [], []];
  for (let round = 0; round < rounds; round += 1) {
    read.push(perSecond(await bareRead.read(written)));
    followed.push(perSecond(await subject.ask<Walked>('follow', undefined, longMs)));
    rebuilt.push(perSecond(await subject.ask<Rebuilt>('rebuild', undefined, longMs)));
    const ms = await bareWrite?.ask<number>('write', { count, sample }, longMs);
    if (ms !== undefined) wroteDocuments.push(perSecond({ events: written, ms }));
  }
  return {
    events: written,
    documents_written: count,
    rebuild_events_per_second_beside_bare_read: beside(rebuilt, read),
    follow_events_per_second_beside_bare_read: beside(followed, read),
    share_of_the_rebuild_that_reading_alone_takes: rounded(median(rebuilt) / median(followed)),
    ...(wroteDocuments.length > 0 && { rebuild_events_per_second_beside_bare_write: beside(rebuilt, wroteDocuments) }),
  };
}

export async function measureRebuilds(sizes: RebuildSizes): Promise<{ readonly [pair: string]: Figure }> {
  const { rounds, events, mongoEvents } = sizes;
  const figures: { [pair: string]: Figure } = {};
  const pair = (name: string, outer: Omit<AdapterStores, 'dataDir'>, count: number): Promise<void> =>
    withFolder(async (folder) => {
      figures[name] = await onPair({ dataDir: join(folder, 'data'), ...outer }, folder, rounds, count);
    });
  await pair('embedded_and_embedded', {}, events);
  await withEventStoreDb((eventStoreUrl) => pair('eventstoredb_and_embedded', { eventStoreUrl }, events));
  if (!mongoDbAvailable()) return figures;
  await withMongoDb((mongoUrl) => pair('embedded_and_mongodb', { mongoUrl }, mongoEvents));
  await withEventStoreDb((eventStoreUrl) =>
    withMongoDb((mongoUrl) => pair('eventstoredb_and_mongodb', { eventStoreUrl, mongoUrl }, mongoEvents)),
  );
  return figures;
}
