/** How the audit shows the life of a resource: what it was created with, what changed, what went with it. */
import type { EventAudit } from './audit-change.js';
import { appeared, audited, fieldChanges, vanished } from './audit-change.js';
import type { Changes } from './change.js';

interface Carrying {
  readonly data: object;
}

/**
 * @param fields those of the definition: what else an event carries is not shown
 * @returns how each of the three events is shown, fields in the order of the event
 */
export function lifecycleAudit(fields: readonly string[]): {
  created(event: Carrying): EventAudit;
  updated(event: { readonly data: { readonly changes: Changes } }): EventAudit;
  deleted(event: Carrying): EventAudit;
} {
  const known = new Set(fields);
  const definition = (data: object): object =>
    Object.fromEntries(Object.entries(data).filter(([field]) => known.has(field)));
  return {
    created: ({ data }) => audited('create', appeared(definition(data))),
    updated: ({ data }) => audited('update', fieldChanges(data.changes)),
    deleted: ({ data }) => audited('delete', vanished(definition(data))),
  };
}
