/**
 * The index of a collection, whatever the store: which groups a document is in, and its place in each.
 * Implements `read-store.ts` (IndexSpec, GroupRange).
 */
import type { CollectionSpec, Fields, GroupQuery, GroupRange, IndexSpec } from './read-store.js';

export interface IndexPlace {
  /** Distinct. */
  readonly groups: readonly string[];
  readonly order: string;
  readonly time?: string;
}

const orderText = /^[ -~]{0,200}$/;
/** Year 0000 to 9999, so that times compare as strings. */
const timeText = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/**
 * A document's place in the index of its collection; undefined when it is in no group.
 * @throws RangeError when the order is not printable ASCII, or the time not a time: a mistake in the declared index
 */
export function placeIn(index: IndexSpec | undefined, fields: Fields): IndexPlace | undefined {
  const value = index === undefined ? undefined : fields[index.group];
  if (index === undefined || value === undefined) return undefined;
  const texts = Array.isArray(value) ? value : [value];
  const groups = [...new Set(texts.filter((text): text is string => typeof text === 'string'))];
  if (groups.length === 0) return undefined;
  const order = fields[index.order];
  if (typeof order !== 'string' || !orderText.test(order)) {
    throw new RangeError(`the field ${index.order} orders documents and must be a printable ASCII text`);
  }
  if (index.time === undefined) return { groups, order };
  const time = fields[index.time];
  if (typeof time !== 'string' || !timeText.test(time)) {
    throw new RangeError(`the field ${index.time} must be a time: RFC 3339, UTC, with milliseconds`);
  }
  return { groups, order, time };
}

/** @param time of a place in an index; undefined if the index has none */
export function isInTimes(time: string | undefined, times: GroupRange['times']): boolean {
  if (times === undefined) return true;
  const { from, to } = times;
  return time !== undefined && (from === undefined || time >= from) && (to === undefined || time <= to);
}

/** Whether a document with these fields is in a range. @throws RangeError like `placeIn` */
export function isInRange(index: IndexSpec | undefined, fields: Fields, range: GroupRange): boolean {
  const { groups, from, below, times } = range;
  const place = placeIn(index, fields);
  if (place === undefined || !groups.every((group) => place.groups.includes(group))) return false;
  if (!isInTimes(place.time, times)) return false;
  return (from === undefined || place.order >= from) && (below === undefined || place.order < below);
}

/** @throws RangeError for no index, or none with times, or a query without a group or with a bad `limit` or `skip` */
export function assertQuery(spec: CollectionSpec, query: GroupRange & Partial<GroupQuery>): void {
  if (spec.index === undefined) throw new RangeError(`collection ${spec.name} has no index`);
  if (query.times !== undefined && spec.index.time === undefined) {
    throw new RangeError(`the index of collection ${spec.name} has no times`);
  }
  if (query.groups.length === 0) throw new RangeError('a query has at least one group');
  const { limit = 1, skip = 0 } = query;
  if (!Number.isInteger(limit) || limit < 1) throw new RangeError('limit is an integer of at least 1');
  if (!Number.isInteger(skip) || skip < 0) throw new RangeError('skip is an integer of at least 0');
}
