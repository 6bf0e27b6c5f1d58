/** How the audit shows the lifecycle of a resource: each field of a create, each change, each field that a delete removes. */
import type { EventAudit } from './audit-change.js';
import { addedFields, eventAudit, fieldChanges, removedFields } from './audit-change.js';
import type { Changes } from './change.js';

interface CarriesDefinition {
  readonly data: object;
}

/**
 * @param fields those of the definition: nothing else of an event is shown
 * @returns one function per event; fields are in the order of the event
 */
export function lifecycleAudit(fields: readonly string[]): {
  created(event: CarriesDefinition): EventAudit;
  updated(event: { readonly data: { readonly changes: Changes } }): EventAudit;
  deleted(event: CarriesDefinition): EventAudit;
  restored(event: CarriesDefinition): EventAudit;
} {
  const ofDefinition = new Set(fields);
  const definition = (data: object): object => {
    const found: Record<string, unknown> = {};
    for (const [field, value] of Object.entries(data)) if (ofDefinition.has(field)) found[field] = value;
    return found;
  };
  return {
    created: ({ data }) => eventAudit('create', () => addedFields(definition(data))),
    updated: ({ data }) => eventAudit('update', () => fieldChanges(data.changes)),
    deleted: ({ data }) => eventAudit('delete', () => removedFields(definition(data))),
    // Shown as the revert that it belongs to.
    restored: ({ data }) => eventAudit('create', () => addedFields(definition(data))),
  };
}
