/** The preview of a revert. Implements `docs/contract/rest.md#audit`, `dry_run`. */
import { auditOfFleetEvent, fleetSubject } from '../audit/describe.js';
import type { FleetEvent } from '../fleet/events.js';
import type { Fleet } from '../fleet/fleet.js';
import { hypothetical } from '../fleet/hypothetical.js';
import type { AuditChange } from '../resource/audit-change.js';

export interface PreviewedChange extends AuditChange {
  readonly resource: { readonly type: string; readonly id: string | null; readonly name: string | null };
}

/** @param events those of the decided revert, at least one */
export function previewOf(fleet: Fleet, events: readonly FleetEvent[]): readonly PreviewedChange[] {
  return hypothetical(fleet, events).events.flatMap((event) => {
    const { type, id, name } = fleetSubject(event);
    const resource = { type, id, name: name ?? (id === null ? null : (fleet.nameOf(type, id) ?? null)) };
    return auditOfFleetEvent(event).changes.map((change) => ({ resource, ...change }));
  });
}
