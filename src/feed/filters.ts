/**
 * Which items a reader gets: filters of a request or a webhook, and the reader's rights. Pure, and cheap, because it runs for
 * every reader and item. Implements `docs/contract/automation.md#event-feed`, filters and what is shown.
 */
import type { FeedSubject } from './port.js';

/** "Or" within a list, "and" between lists. An absent list matches everything. */
export interface FeedFilters {
  readonly types?: readonly FeedSubject['type'][] | undefined;
  readonly resource_type?: readonly string[] | undefined;
  readonly resource_id?: readonly string[] | undefined;
  readonly node_id?: readonly string[] | undefined;
  /** Ids or user names, in any case. */
  readonly actor?: readonly string[] | undefined;
  /** Of `status` items; others pass. */
  readonly statuses?: readonly string[] | undefined;
}

export interface FeedReader {
  readonly admin: boolean;
  readonly userId: string;
}

const setOf = (values: readonly string[] | undefined): ReadonlySet<string> | undefined =>
  values === undefined ? undefined : new Set(values);

/** @returns whether an item with this subject passes all filters */
export function matcherOf(filters: FeedFilters): (about: FeedSubject) => boolean {
  const types = setOf(filters.types);
  const resourceTypes = setOf(filters.resource_type);
  const resourceIds = setOf(filters.resource_id);
  const nodes = setOf(filters.node_id);
  const statuses = setOf(filters.statuses);
  const actors = setOf(filters.actor?.map((actor) => actor.toLowerCase()));
  const isActor = (value: string | null): boolean => value !== null && actors?.has(value.toLowerCase()) === true;
  const isResource = ({ type, id }: FeedSubject['resources'][number]): boolean =>
    (resourceTypes === undefined || resourceTypes.has(type)) &&
    (resourceIds === undefined || (id !== null && resourceIds.has(id)));
  return (about) => {
    if (types !== undefined && !types.has(about.type)) return false;
    if (about.status !== undefined && statuses?.has(about.status) === false) return false;
    if ((resourceTypes ?? resourceIds) !== undefined && !about.resources.some(isResource)) return false;
    if (nodes !== undefined && about.nodes !== 'all' && !about.nodes.some((id) => nodes.has(id))) return false;
    return actors === undefined || (about.actor !== null && (isActor(about.actor.id) || isActor(about.actor.name)));
  };
}

export function mayRead({ readers }: Pick<FeedSubject, 'readers'>, { admin, userId }: FeedReader): boolean {
  if (admin || readers === 'all') return true;
  return readers !== 'admins' && readers.userId === userId;
}
