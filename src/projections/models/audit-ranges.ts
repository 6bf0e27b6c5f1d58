/** The ranges of the audit's index that a query selects. Implements `docs/contract/rest.md#audit`. */
import { apiTokenType } from '../../domain/accounts/declaration.js';
import type { GroupRange } from '../../storage/read-store.js';
import { auditGroups, closedTypes } from './audit.js';
import type { AuditQuery } from '../port.js';

/** The entries that a query selects by the index: at most two disjoint ranges for each type that it names. */
export function rangesOfQuery({ resourceTypes, ...query }: AuditQuery): readonly GroupRange[] {
  return resourceTypes === undefined
    ? rangesOfType(query, undefined)
    : [...new Set(resourceTypes)].flatMap((type) => rangesOfType(query, type));
}

function rangesOfType(
  { includeAccounts, ownTokensOf, ...query }: AuditQuery,
  resourceType: string | undefined,
): readonly GroupRange[] {
  const { resourceId, actor, action, from, to } = query;
  const times = from === undefined && to === undefined ? undefined : { from: canonical(from), to: canonical(to) };
  const filters = (open: (group: string) => string): readonly string[] => [
    ...(resourceId === undefined ? [] : [open(auditGroups.resource(resourceId))]),
    ...(actor === undefined ? [] : [open(auditGroups.actor(actor))]),
    ...(action === undefined ? [] : [auditGroups.action(action)]),
    ...(resourceType === undefined ? [] : [auditGroups.type(resourceType)]),
  ];
  const range = (open: (group: string) => string): GroupRange => {
    const groups = filters(open);
    return { groups: groups.length > 0 ? groups : [open(auditGroups.all)], times };
  };
  const asNamed = (group: string): string => group;
  if (includeAccounts) return [range(asNamed)];
  // A resource type implies who may read its entries.
  const type = resourceType ?? action?.slice(0, action.indexOf('.'));
  const ofAll = type !== undefined && closedTypes.has(type) ? [] : [range(auditGroups.open)];
  if (ownTokensOf === undefined || (type !== undefined && type !== apiTokenType)) return ofAll;
  return [...ofAll, { groups: [auditGroups.reader(ownTokensOf), ...filters(asNamed)], times }];
}

const canonical = (time: string | undefined) => (time === undefined ? undefined : new Date(time).toISOString());
