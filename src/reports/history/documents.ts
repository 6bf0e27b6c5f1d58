/**
 * The stored points of history: one document per node and stretch of time, with all resources that the node has counted. Each
 * instance writes documents of its own, so that two never write the same one; the instance that holds the lease merges old
 * slots into hours, and deletes old hours. Points are set, never added, so that a repeated write changes nothing. Implements
 * decisions 340 and 341.
 */
import { yieldToEventLoop } from '../../kernel/background.js';
import { timestamp } from '../../kernel/clock.js';
import { getOrMake, groupBy } from '../../kernel/maps.js';
import type { Collection, ReadStore, StoredDocument } from '../../storage/read-store.js';
import {
  add,
  hourMs,
  hoursKeptMs,
  hoursOf,
  joinHours,
  pack,
  slotMs,
  slotsKeptMs,
  unpack,
  type Point,
  type Points,
} from './points.js';

type HistoryFields = {
  readonly node_id: string;
  /** In the order of their points. */
  readonly resources: readonly string[];
  /** The hour in which the stretch begins, as the start of an RFC 3339 time: short, because the index repeats it. */
  readonly from: string;
  readonly points: Uint8Array;
};
type Document = StoredDocument<HistoryFields>;
type Documents = Pick<Collection<HistoryFields>, 'list'>;

export type StepName = '5m' | '1h';
interface Step {
  readonly name: StepName;
  readonly ms: number;
  /** Points of a resource in one document. Three resources, 1.5 or 3.5 KiB, fill pages of the embedded store. */
  readonly points: number;
}
const slots: Step = { name: '5m', ms: slotMs, points: 96 };
const hours: Step = { name: '1h', ms: hourMs, points: 216 };

const stretchMs = ({ ms, points }: Step): number => ms * points;
const foldLease = { kind: 'history', name: 'fold', ttlMs: 20 * 60_000 };
/** Documents per read or write: some 20 ms of work. */
const batch = 100;

/** How many characters of a random process id are used; enough to be unique. */
const writerChars = 8;

/** A stretch begins with an hour. */
const hourText = (time: number): string => timestamp(Math.max(0, time)).slice(0, 'yyyy-mm-ddThh'.length);
const hourOf = (text: string): number => Date.parse(`${text}:00:00Z`) / hourMs;

/** By resource. */
type Series = Map<string, Map<number, Point>>;

/** The points of a node in one slot, by resource. */
export interface SlotOfNode {
  readonly nodeId: string;
  readonly points: ReadonlyMap<string, Readonly<Point>>;
}

/** Stored points of a resource from one node. */
export interface StoredPoints {
  readonly nodeId: string;
  readonly step: StepName;
  /** Whether this instance wrote them. */
  readonly own: boolean;
  readonly points: Map<number, Point>;
}

export interface HistoryDocumentsDeps {
  readonly readStore: ReadStore;
  /** The time to judge ages by before deleting (`store-clocks.ts`); undefined while nothing may be deleted. */
  deletionTime(): number | undefined;
}

/** @param writer unique to this process @throws ServiceError `unavailable`, as all its functions */
export async function openHistoryDocuments({ readStore, deletionTime }: HistoryDocumentsDeps, writer: string) {
  const collection = await readStore.collection<HistoryFields>({
    name: 'history',
    version: 2,
    index: { group: 'resources', order: 'from' },
  });

  const own = writer.slice(0, writerChars);

  /** Ids sort by time within a step, so that old documents are found without an index. */
  const idOf = (step: Step, first: number, nodeId: string): string => {
    const id = `${step.name}/${hourText(first * step.ms)}/${nodeId}`;
    return step === slots ? `${id}/${own}` : id;
  };

  /** Changes one document of each node, all of one stretch. */
  async function change<C extends { readonly nodeId: string }>(
    step: Step,
    first: number,
    changes: readonly C[],
    apply: (series: Series, change: C) => void,
  ): Promise<void> {
    const ids = changes.map(({ nodeId }) => idOf(step, first, nodeId));
    const stored = new Map((await collection.getMany(ids)).map((document) => [document.id, document]));
    await collection.set(
      changes.map((one, index) => {
        const id = ids[index] ?? '';
        const known = stored.get(id);
        const series: Series = known === undefined ? new Map() : seriesOf(step, known.fields);
        apply(series, one);
        const fields = { node_id: one.nodeId, resources: [...series.keys()], from: hourText(first * step.ms) };
        return { id, fields: { ...fields, points: pack([...series.values()], first) } };
      }),
    );
  }

  /** Merges slots into hours. @param documents whole stretches, in the order of their ids */
  async function toHours(documents: readonly Document[]): Promise<void> {
    for (const [from, some] of groupBy(documents, ({ fields }) => fields.from)) {
      const changes = [...groupBy(some, ({ fields }) => fields.node_id)].map(([nodeId, ofNode]) => ({
        nodeId,
        slotsOf: sumOf(ofNode.map(({ fields }) => seriesOf(slots, fields))),
      }));
      await change(hours, firstOf(hours, hourOf(from)), changes, (series, { slotsOf }) => {
        for (const [resourceId, points] of slotsOf) {
          joinHours(pointsIn(series, resourceId), hoursOf(points));
        }
      });
    }
  }

  return {
    /** Durable when it resolves. @param written called after each batch of nodes */
    async write(slot: number, nodes: readonly SlotOfNode[], written: (nodes: readonly SlotOfNode[]) => void) {
      for (let from = 0; from < nodes.length; from += batch) {
        const some = nodes.slice(from, from + batch);
        await change(slots, firstOf(slots, slot), some, (series, { points }) => {
          for (const [resourceId, point] of points) pointsIn(series, resourceId).set(slot, { ...point });
        });
        written(some);
      }
    },

    /** The points of a resource in documents that end after a time. Hours may still be stored as slots. */
    async *read(resourceId: string, step: StepName, from: number): AsyncGenerator<StoredPoints, void> {
      const earliest = from - stretchMs(step === '5m' ? slots : hours);
      const range = { groups: [resourceId], from: hourText(earliest), direction: 'asc' } as const;
      for (let skip = 0; ; skip += batch) {
        const some = await collection.find({ ...range, skip, limit: batch });
        for (const { id, fields } of some) {
          const of = id.startsWith(`${slots.name}/`) ? slots : hours;
          if (of !== slots && step === '5m') continue;
          const points = seriesOf(of, fields, resourceId).get(resourceId) ?? new Map<number, Point>();
          yield { nodeId: fields.node_id, step: of.name, own: id.endsWith(`/${own}`), points };
        }
        if (some.length < batch) return;
        await yieldToEventLoop();
      }
    },

    /** Merges old slots into hours and deletes old hours, if this instance has or gets the lease. */
    async fold(signal?: AbortSignal): Promise<void> {
      const now = deletionTime();
      if (now === undefined) return;
      if (!(await readStore.leases.acquire(foldLease.kind, { ...foldLease, holder: writer, data: null }))) return;
      for await (const documents of before(collection, slots, now - slotsKeptMs)) {
        const whole = [...documents, ...(await restOfStretch(collection, documents.at(-1)))];
        await toHours(whole);
        await collection.remove(whole.map(({ id }) => id));
        if (signal?.aborted === true) return;
      }
      for await (const documents of before(collection, hours, now - hoursKeptMs)) {
        await collection.remove(documents.map(({ id }) => id));
        if (signal?.aborted === true) return;
      }
    },
  };
}

/** The first number of the stretch that holds a number. */
const firstOf = (step: Step, number: number): number => Math.floor(number / step.points) * step.points;

/** The points of a resource, created if there are none. */
function pointsIn(series: Series, resourceId: string): Map<number, Point> {
  return getOrMake(series, resourceId, () => new Map());
}

/** Documents of a step whose stretch ended before a time, oldest first. The caller deletes each batch before the next. */
async function* before(collection: Documents, step: Step, time: number): AsyncGenerator<readonly Document[]> {
  const end = `${step.name}/${hourText(time - stretchMs(step))}`;
  for (;;) {
    const some = (await collection.list(`${step.name}/`, batch)).filter(({ id }) => id < end);
    if (some.length === 0) return;
    yield some;
  }
}

/** The later documents of the same stretch and node, which other instances have written. */
async function restOfStretch(collection: Documents, last: Document | undefined): Promise<readonly Document[]> {
  if (last === undefined) return [];
  const stretch = last.id.slice(0, last.id.lastIndexOf('/') + 1);
  const rest: Document[] = [];
  for (let after = last.id; ;) {
    const some = await collection.list(after, batch);
    const same = some.filter(({ id }) => id.startsWith(stretch));
    rest.push(...same);
    after = same.at(-1)?.id ?? after;
    if (same.length < batch) return rest;
  }
}

/** @param wanted the only resource to unpack; absent: all */
function seriesOf(step: Step, { resources, from, points }: HistoryFields, wanted?: string): Series {
  const isWanted = (index: number): boolean => wanted === undefined || resources[index] === wanted;
  const unpacked = unpack(points, (hourOf(from) * hourMs) / step.ms, isWanted);
  return new Map(resources.map((id, index) => [id, unpacked[index] ?? new Map<number, Point>()]));
}

/** Adds up the points of several instances. */
function sumOf(several: readonly Series[]): ReadonlyMap<string, Points> {
  const [first = new Map(), ...others] = several;
  for (const [resourceId, points] of others.flatMap((series) => [...series])) {
    const sum = pointsIn(first, resourceId);
    for (const [slot, point] of points) add(sum, slot, point);
  }
  return first;
}
