/** The referrers of a resource, as answers list them. Implements `docs/contract/rest.md#credentials`, `in_use_by`. */
import { splitOwner } from '../references/references.js';
import type { FleetView } from '../resource/fleet-view.js';

/** A resource that refers to another one. */
export interface Referrer {
  readonly type: string;
  readonly id: string;
  readonly name: string;
}

/** The first `count` of `referrersOf`, and their total. Does not sort the others, because an upstream may have thousands. */
export function firstReferrers(
  fleet: FleetView,
  type: string,
  id: string,
  count: number,
): { readonly items: readonly Referrer[]; readonly total: number } {
  const items: Referrer[] = [];
  let total = 0;
  for (const owner of fleet.referrersOf(type, id)) {
    const referrer = named(fleet, owner);
    total += 1;
    const place = items.findIndex((one) => key(referrer) < key(one));
    if (place === -1 && items.length === count) continue;
    items.splice(place === -1 ? items.length : place, 0, referrer);
    if (items.length > count) items.pop();
  }
  return { items, total };
}

/** The referrers by current or deployed definitions, enabled or not, sorted by type, name and id. */
export function referrersOf(fleet: FleetView, type: string, id: string): readonly Referrer[] {
  return [...fleet.referrersOf(type, id)]
    .map((owner) => named(fleet, owner))
    .sort((a, b) => (key(a) < key(b) ? -1 : 1));
}

const key = ({ type, name, id }: Referrer): string => `${type}\0${name.toLowerCase()}\0${id}`;

function named(fleet: FleetView, owner: string): Referrer {
  const { type, id } = splitOwner(owner);
  return { type, id, name: fleet.nameOf(type, id) ?? id };
}
