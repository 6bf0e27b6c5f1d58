/**
 * Stored read model of incidents, each by the id of its first fact, folded from `svc-status`. Implements
 * `docs/contract/notices.md#status-changes-are-facts`, `GET /api/incidents`.
 */
import { statusChanged } from '../../domain/status/facts.js';
import { isBad } from '../../domain/status/status.js';
import { timestamp } from '../../kernel/clock.js';
import { streams } from '../../kernel/event.js';
import { limits } from '../../kernel/limits.js';
import { nextOf } from './walk.js';
import type { Collection } from '../../storage/read-store.js';
import type { Projections, StoredIncident } from '../port.js';
import type { ReadModel } from '../read-model.js';

export type IncidentFields = {
  readonly groups: readonly string[];
  /** When it began, and the position of its first fact, which distinguishes incidents that began at the same time. */
  readonly order: string;
  readonly resource_type: string;
  readonly resource_id: string;
  readonly resource_name: string;
  /** The worst so far. */
  readonly status: string;
  /** The reason for that status. */
  readonly reason: string | null;
  readonly began_at: string;
  /** When it ended; `lasting` while it has not. */
  readonly until: string;
};

/** Later than any time, so that a search by end finds open incidents too. */
const lasting = '9999-12-31T23:59:59.999Z';

const incidentGroups = {
  all: 'all',
  type: (type: string): string => `type ${type}`,
  resource: (id: string): string => `resource ${id}`,
  open: 'open',
} as const;

export const incidents: ReadModel<IncidentFields> = {
  name: 'incidents',
  index: { group: 'groups', order: 'order', time: 'until' },

  expired: (now) => ({
    groups: [incidentGroups.all],
    times: { to: timestamp(now - limits.status.incidentsKeptMs) },
  }),

  keys(event) {
    if (event.stream !== streams.status) return [];
    const { incident } = statusChanged(event).data;
    return incident === null ? [] : [incident.id];
  },

  evolve(fields, event) {
    const { resource, status, since, reason, incident } = statusChanged(event).data;
    if (incident === null) return fields;
    const { type, id, name } = resource;
    const groups = [incidentGroups.all, incidentGroups.type(type), incidentGroups.resource(id)];
    const known = fields ?? {
      groups: [...groups, incidentGroups.open],
      order: `${incident.began_at} ${String(event.position).padStart(16, '0')}`,
      resource_type: type,
      resource_id: id,
      resource_name: name,
      status: incident.status,
      reason,
      began_at: incident.began_at,
      until: lasting,
    };
    if (!isBad(type, status)) return { ...known, groups, until: since };
    return incident.status === known.status ? known : { ...known, status: incident.status, reason };
  },
};

/** @param open returns the collection, or throws `unavailable` while the read models cannot be queried */
export function incidentQueries(open: () => Collection<IncidentFields>): Projections['incidents'] {
  return {
    async list({ resourceType, resourceId, isOpen = false, from, to, ...piece }) {
      const groups = [
        ...(resourceId === undefined ? [] : [incidentGroups.resource(resourceId)]),
        ...(isOpen ? [incidentGroups.open] : []),
        ...(resourceType === undefined ? [] : [incidentGroups.type(resourceType)]),
      ];
      // Includes incidents that began exactly at `to`, whatever position follows the time.
      const range = {
        groups: groups.length > 0 ? groups : [incidentGroups.all],
        below: to === undefined ? undefined : `${to}~`,
        times: from === undefined ? undefined : { from },
      };
      const { page, pageSize, behind } = piece;
      const [found, total] = await Promise.all([
        behind === undefined
          ? open().find({ ...range, direction: 'desc', skip: (page - 1) * pageSize, limit: pageSize })
          : open().find({
              ...range,
              below: behind === 'start' ? range.below : behind,
              direction: 'desc',
              limit: pageSize + 1,
            }),
        open().count(range),
      ]);
      const step = behind === undefined ? {} : { next: nextOf(found, pageSize) };
      return { items: found.slice(0, pageSize).map(({ id, fields }) => incidentOf(id, fields)), total, ...step };
    },
  };
}

function incidentOf(id: string, fields: IncidentFields): StoredIncident {
  const { resource_type, resource_id, resource_name, status, reason, began_at, until } = fields;
  const resource = { type: resource_type, id: resource_id, name: resource_name };
  return { id, resource, status, reason, began_at, ended_at: until === lasting ? null : until };
}
