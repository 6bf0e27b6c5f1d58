/**
 * The history of nodes, chains and upstreams: points of five minutes for a day, and of an hour for 30 days, packed into a few
 * documents for each resource and each node that reports about it. Points are set, never added, so that writing one again
 * changes nothing; one node is written by the instance that holds its session. The instance that holds the lease makes hours
 * of old slots, and deletes old hours. Implements decisions 360 to 363.
 */
import { startLoop } from '../kernel/background.js';
import { timestamp } from '../kernel/clock.js';
import type { Clock } from '../kernel/clock.js';
import { errorText } from '../kernel/errors.js';
import type { Logger } from '../kernel/logger.js';
import type { Collection, ReadStore } from '../storage/read-store.js';
import type { OpenSlot, Point, Points } from './history-points.js';
import { hourMs, hoursKeptMs, hoursOf, pack, plus, slotMs, slotsKeptMs, unpack } from './history-points.js';

/** The points of one resource, from one node, of a stretch of time. */
type HistoryFields = {
  /** Step and resource, `5m/…` or `1h/…`. */
  readonly series: string;
  readonly node_id: string;
  /** When the stretch begins, RFC 3339. */
  readonly from: string;
  readonly points: Uint8Array;
};

interface Step {
  readonly name: '5m' | '1h';
  readonly ms: number;
  /** How many points a document holds. Few and large documents cost less disk; each slot rewrites one. */
  readonly points: number;
}
const slots: Step = { name: '5m', ms: slotMs, points: 72 };
const hours: Step = { name: '1h', ms: hourMs, points: 240 };

const stretchMs = ({ ms, points }: Step): number => ms * points;
const foldEveryMs = 10 * 60_000;
const foldLease = { kind: 'history', name: 'fold', ttlMs: 2 * foldEveryMs };
const batch = 500;

/** What one node has counted of a slot that is over. */
export type ClosedSlot = OpenSlot & { readonly nodeId: string };

export interface History {
  /** Durable when it resolves. @throws ServiceError `unavailable` */
  write(closed: readonly ClosedSlot[]): Promise<void>;
  /**
   * The stored points of a resource, by the node that counted them.
   * @returns by slot, and by hour; hours include what is still kept as slots
   * @throws ServiceError `unavailable`
   */
  read(resourceId: string): Promise<ReadonlyMap<string, { readonly slots: Points; readonly hours: Points }>>;
  /** Makes hours of old slots and deletes old hours, as the loop does. @internal exported for tests */
  fold(signal?: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

/** A document that a point belongs to. */
interface Place {
  readonly step: Step;
  readonly resourceId: string;
  readonly nodeId: string;
  /** Number of its first point. */
  readonly first: number;
}

/** Oldest first within a step, so that old documents are found without an index. */
const idOf = ({ step, first, resourceId, nodeId }: Place): string =>
  `${step.name}/${timestamp(first * step.ms)}/${resourceId}/${nodeId}`;

const placeOf = (step: Step, number: number, resourceId: string, nodeId: string): Place => ({
  step,
  resourceId,
  nodeId,
  first: Math.floor(number / step.points) * step.points,
});

/** @throws ServiceError `unavailable` */
export async function openHistory(
  { readStore, clock, logger }: { readonly readStore: ReadStore; readonly clock: Clock; readonly logger: Logger },
  holder: string,
): Promise<History> {
  const collection = await readStore.collection<HistoryFields>({
    name: 'history',
    version: 1,
    index: { group: 'series', order: 'from' },
  });

  /** Sets points; those that a document has of the same number keep what the new ones do not count. */
  async function set(entries: readonly { readonly place: Place; readonly number: number; readonly point: Point }[]) {
    const byDocument = new Map<string, (typeof entries)[number][]>();
    for (const entry of entries) {
      const id = idOf(entry.place);
      const known = byDocument.get(id);
      if (known === undefined) byDocument.set(id, [entry]);
      else known.push(entry);
    }
    const ids = [...byDocument.keys()];
    for (let from = 0; from < ids.length; from += batch) {
      const some = ids.slice(from, from + batch);
      const stored = new Map((await collection.getMany(some)).map(({ id, fields }) => [id, fields]));
      const documents = some.flatMap((id) => {
        const changes = byDocument.get(id) ?? [];
        const place = changes[0]?.place;
        if (place === undefined) return [];
        const known = stored.get(id);
        const points = known === undefined ? new Map<number, Point>() : unpack(known.points, place.first);
        for (const { number, point } of changes) points.set(number, { ...points.get(number), ...point });
        return [{ id, fields: fieldsOf(place, points) }];
      });
      await collection.set(documents);
    }
  }

  /** Documents of a step whose stretch was over before a time, oldest first. */
  async function* before(step: Step, time: number): AsyncGenerator<readonly (HistoryFields & { id: string })[]> {
    const end = `${step.name}/${timestamp(Math.max(0, time - stretchMs(step)))}`;
    for (;;) {
      // What was given is deleted before more is asked for.
      const some = (await collection.list(`${step.name}/`, batch)).filter(({ id }) => id < end);
      if (some.length === 0) return;
      yield some.map(({ id, fields }) => ({ id, ...fields }));
    }
  }

  async function fold(signal?: AbortSignal): Promise<void> {
    if (!(await readStore.leases.acquire(foldLease.kind, { ...foldLease, holder, data: null }))) return;
    const now = clock.now();
    for await (const documents of before(slots, now - slotsKeptMs)) {
      await set(
        documents.flatMap(({ series, node_id, from, points }) =>
          [...hoursOf(unpack(points, Date.parse(from) / slots.ms))].map(([number, point]) => ({
            place: placeOf(hours, number, series.slice(slots.name.length + 1), node_id),
            number,
            point,
          })),
        ),
      );
      await collection.remove(documents.map(({ id }) => id));
      if (signal?.aborted === true) return;
    }
    for await (const documents of before(hours, now - hoursKeptMs)) {
      await collection.remove(documents.map(({ id }) => id));
      if (signal?.aborted === true) return;
    }
  }

  const loop = startLoop(foldEveryMs, fold, (error) =>
    logger.warn({ error: errorText(error) }, 'old points of history could not be put together yet'),
  );
  return {
    write: (closed) =>
      set(
        closed.flatMap(({ nodeId, slot, points }) =>
          Object.entries(points).map(([resourceId, point]) => ({
            place: placeOf(slots, slot, resourceId, nodeId),
            number: slot,
            point,
          })),
        ),
      ),
    async read(resourceId) {
      const byNode = new Map<string, { slots: Map<number, Point>; hours: Map<number, Point> }>();
      const of = (nodeId: string) => {
        const known = byNode.get(nodeId) ?? { slots: new Map<number, Point>(), hours: new Map<number, Point>() };
        byNode.set(nodeId, known);
        return known;
      };
      // Slots first: what is folded in between is then seen twice, and not missed.
      for (const step of [slots, hours]) {
        for await (const { node_id, from, points } of all(collection, `${step.name}/${resourceId}`)) {
          const into = step === slots ? of(node_id).slots : of(node_id).hours;
          for (const [number, point] of unpack(points, Date.parse(from) / step.ms)) into.set(number, point);
        }
      }
      for (const node of byNode.values()) {
        for (const [hour, point] of hoursOf(node.slots)) node.hours.set(hour, point);
      }
      return byNode;
    },
    fold,
    close: () => loop.close(),
  };
}

function fieldsOf({ step, resourceId, nodeId, first }: Place, points: Points): HistoryFields {
  const from = timestamp(first * step.ms);
  return { series: `${step.name}/${resourceId}`, node_id: nodeId, from, points: pack(points, first) };
}

async function* all(collection: Collection<HistoryFields>, series: string): AsyncGenerator<HistoryFields> {
  for (let skip = 0; ; skip += batch) {
    const found = await collection.find({ groups: [series], direction: 'asc', skip, limit: batch });
    for (const { fields } of found) yield fields;
    if (found.length < batch) return;
  }
}

/** Adds the points of a slot that is still open to what is stored; the same slot may have been written meanwhile. */
export function withOpen(
  stored: { readonly slots: Points; readonly hours: Points } | undefined,
  open: readonly OpenSlot[],
  resourceId: string,
  now: number,
): { readonly slots: Points; readonly hours: Points } {
  const bySlot = new Map(stored?.slots);
  const byHour = new Map(stored?.hours);
  const late = new Map<number, Point>();
  for (const { slot, points } of open) {
    const point = points[resourceId];
    if (point === undefined) continue;
    if (now - slot * slotMs < slotsKeptMs) bySlot.set(slot, { ...bySlot.get(slot), ...point });
    else late.set(slot, plus(late.get(slot), point));
  }
  for (const [hour, point] of hoursOf(bySlot)) byHour.set(hour, point);
  // Of a node that was gone before its last slot was over: its hour was put together without it.
  for (const [hour, point] of hoursOf(late)) byHour.set(hour, plus(byHour.get(hour), point));
  return { slots: bySlot, hours: byHour };
}
