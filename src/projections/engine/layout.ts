/**
 * Where the documents of the read models lie: which version of its collection each model of a release is read from. A
 * rebuild fills other collections beside and then points here to them; this one document is the pointer. Not the pointer
 * of releases (`ReadStore.activate`), which says which release's read models have held the whole log.
 * Implements `docs/architecture.md` (rebuild is blue/green).
 */
import type { Json } from '../../kernel/json.js';
import type { Collection, CollectionSpec, ReadStore } from '../../storage/read-store.js';
import { groupName } from '../read-models.js';

export interface Layout {
  /** Grows with each rebuild; 0 before the first. */
  readonly number: number;
  /** Read model → version of its collection, where it is not the release's own. */
  readonly places: ReadonlyMap<string, number>;
}

/** A rebuild that has begun and whose layout is not shown yet. */
export interface Filling {
  readonly number: number;
  /** The one read model that is made anew, null for all. */
  readonly only: string | null;
}

/** A layout that is shown no more and what of it nobody else uses. */
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

const spec: CollectionSpec = { name: 'read_model_layouts', version: 1, indexes: [] };
const idOf = (release: number): string => `${groupName}@${release}`;
/** Rebuilds of one release that have places of their own. */
const placesPerRelease = 10_000;

/** The version of what belongs to a layout as a whole: its checkpoint, its parked entities, what it alone has filled. */
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
  const found = await (await open(readStore)).get(idOf(release));
  if (found === undefined) return { layout: { number: 0, places: new Map() }, filling: undefined, leftovers: [] };
  const { number, places, filling, leftovers } = found.fields;
  return {
    layout: { number, places: new Map(Object.entries(places)) },
    filling: (filling as Filling | null) ?? undefined,
    leftovers: leftovers as unknown as readonly Leftover[],
  };
}

/** The layout that is shown. @throws ServiceError `unavailable` */
export async function readLayout(readStore: ReadStore, release: number): Promise<Layout> {
  return (await readLayoutRecord(readStore, release)).layout;
}

/** Replaces the record: only by the one rebuild that holds the lease. @throws ServiceError `unavailable` */
export async function writeLayoutRecord(readStore: ReadStore, release: number, record: LayoutRecord): Promise<void> {
  const { layout, filling, leftovers } = record;
  const fields: LayoutFields = {
    number: layout.number,
    places: Object.fromEntries(layout.places),
    filling: (filling ?? null) as unknown as Json,
    leftovers: leftovers as unknown as Json,
  };
  await (await open(readStore)).set([{ id: idOf(release), fields }]);
}

/** Kind of the leases by which instances tell which layouts they read; their data has `release` and `numbers`. */
export const readers = 'read_model_readers';

/**
 * Says for `ttlMs` that an instance reads these layouts; none while it is about to look which one.
 * @throws ServiceError `unavailable`
 */
export async function tellReading(
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

/** Whether a live instance of the release reads another layout, or may be about to. @throws ServiceError `unavailable` */
export async function othersRead(readStore: ReadStore, release: number, number: number): Promise<boolean> {
  return (await readStore.leases.list(readers)).some(({ data }) => {
    const reading = data as { readonly release?: Json; readonly numbers?: Json };
    if (reading.release !== release || !Array.isArray(reading.numbers)) return false;
    return reading.numbers.length === 0 || reading.numbers.some((one) => one !== number);
  });
}
