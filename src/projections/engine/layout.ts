/**
 * The layout of a release, one document: which version of its collection each read model uses. A rebuild fills other collections
 * and then points the layout to them. `ReadStore.activate` is another pointer: the release whose read models have caught up.
 * Implements `docs/architecture.md#read-models`.
 */
import { asJson, fromJson, type Json } from '../../kernel/json.js';
import type { Collection, CollectionSpec, ReadStore } from '../../storage/read-store.js';
import { groupName } from '../read-models.js';

export interface Layout {
  /** Grows with each rebuild; 0 before the first. */
  readonly number: number;
  /** Read model → version of its collection, where it is not the release's own. */
  readonly places: ReadonlyMap<string, number>;
}

/** A rebuild whose layout is not in use yet. */
export interface Filling {
  readonly number: number;
  /** The one read model that is rebuilt, null for all. */
  readonly only: string | null;
}

/** A layout that is no longer in use, with the collections that no other layout uses. */
export interface Leftover {
  readonly number: number;
  readonly collections: readonly { readonly name: string; readonly version: number }[];
}

export interface LayoutRecord {
  readonly layout: Layout;
  readonly filling: Filling | undefined;
  readonly leftovers: readonly Leftover[];
}

type LayoutFields = {
  readonly number: number;
  readonly places: { readonly [model: string]: number };
  readonly filling: Json;
  readonly leftovers: Json;
};

const spec: CollectionSpec = { name: 'read_model_layouts', version: 1 };
const idOf = (release: number): string => `${groupName}@${release}`;
/** How many rebuilds of one release get different versions. */
const placesPerRelease = 10_000;

/** The version of a layout as a whole: its checkpoint, its parked entities, the collections it filled. */
export function placeOf(release: number, number: number): number {
  return number === 0 ? release : release * placesPerRelease + (number % placesPerRelease);
}

/** The version of a read model's collection in a layout. */
export function versionIn(layout: Layout, release: number, model: string): number {
  return layout.places.get(model) ?? release;
}

const open = (readStore: ReadStore): Promise<Collection<LayoutFields>> => readStore.collection<LayoutFields>(spec);

/** @throws ServiceError `unavailable` */
export async function readLayoutRecord(readStore: ReadStore, release: number): Promise<LayoutRecord> {
  const document = await (await open(readStore)).get(idOf(release));
  if (document === undefined) return { layout: { number: 0, places: new Map() }, filling: undefined, leftovers: [] };
  const { number, places, filling, leftovers } = document.fields;
  return {
    layout: { number, places: new Map(Object.entries(places)) },
    filling: (filling as Filling | null) ?? undefined,
    leftovers: fromJson(leftovers),
  };
}

/** The layout in use. @throws ServiceError `unavailable` */
export async function readLayout(readStore: ReadStore, release: number): Promise<Layout> {
  return (await readLayoutRecord(readStore, release)).layout;
}

/** Replaces the record. Only the rebuild that holds the lease may call it. @throws ServiceError `unavailable` */
export async function writeLayoutRecord(readStore: ReadStore, release: number, record: LayoutRecord): Promise<void> {
  const { layout, filling, leftovers } = record;
  const fields: LayoutFields = {
    number: layout.number,
    places: Object.fromEntries(layout.places),
    filling: filling === undefined ? null : asJson(filling),
    leftovers: asJson(leftovers),
  };
  await (await open(readStore)).set([{ id: idOf(release), fields }]);
}

/** Kind of the leases; their data has `release` and `numbers`. */
const readers = 'read_model_readers';

/**
 * Announces for `ttlMs` that an instance reads these layouts; without numbers, that it is about to read one.
 * @throws ServiceError `unavailable`
 */
export async function announceReading(
  readStore: ReadStore,
  reader: string,
  release: number,
  numbers: readonly number[],
  ttlMs: number,
): Promise<void> {
  await readStore.leases.take(readers, { name: reader, holder: reader, ttlMs, data: { release, numbers } });
}

export async function stopReading(readStore: ReadStore, reader: string): Promise<void> {
  await readStore.leases.release(readers, reader, reader);
}

/** Forgets the instances that ended without `stopReading`. @throws ServiceError `unavailable` */
export const forgetDeadReaders = (readStore: ReadStore): Promise<void> => readStore.leases.purge(readers, 0);

/** Whether any instance announces that it reads a layout. @throws ServiceError `unavailable` */
export async function anyReader(readStore: ReadStore): Promise<boolean> {
  return (await readStore.leases.list(readers)).length > 0;
}

/** Whether an instance of the release reads another layout, or is about to. @throws ServiceError `unavailable` */
export async function othersRead(readStore: ReadStore, release: number, number: number): Promise<boolean> {
  return (await readStore.leases.list(readers)).some(({ data }) => {
    const reading = data as { readonly release?: Json; readonly numbers?: Json };
    if (reading.release !== release || !Array.isArray(reading.numbers)) return false;
    return reading.numbers.length === 0 || reading.numbers.some((other) => other !== number);
  });
}
