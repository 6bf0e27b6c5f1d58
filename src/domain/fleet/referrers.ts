/** The resources that refer to one, as answers list them. Implements `docs/contract/rest.md#credentials`, `in_use_by`. */
import { splitOwner } from '../references/references.js';
import type { FleetView } from '../resource/fleet-view.js';

/** A resource that refers to another one. */
export interface Referrer {
  readonly type: string;
  readonly id: string;
  readonly name: string;
}

/** The referrers by current or deployed definitions, enabled or not, sorted by type, name and id. */
export function referrersOf(fleet: FleetView, type: string, id: string): readonly Referrer[] {
  const key = (referrer: Referrer): string => `${referrer.type}\0${referrer.name.toLowerCase()}\0${referrer.id}`;
  return [...fleet.referrersOf(type, id)]
    .map(splitOwner)
    .map((owner) => ({ ...owner, name: fleet.nameOf(owner.type, owner.id) ?? owner.id }))
    .sort((a, b) => (key(a) < key(b) ? -1 : 1));
}
