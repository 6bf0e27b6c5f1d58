/** The referrers of a resource, as answers list them. Implements `docs/contract/rest.md#credentials`, `in_use_by`. */
import { compareText } from '../../kernel/compare-text.js';
import { splitOwner } from '../references/references.js';
import { sortKey } from '../resource/meta.js';
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
  const first: Keyed[] = [];
  let total = 0;
  for (const owner of fleet.referrersOf(type, id)) {
    const one = keyed(fleet, owner);
    total += 1;
    const place = first.findIndex(({ key }) => compareText(one.key, key) < 0);
    if (place === -1 && first.length === count) continue;
    first.splice(place === -1 ? first.length : place, 0, one);
    if (first.length > count) first.pop();
  }
  return { items: first.map(({ referrer }) => referrer), total };
}

/** The referrers by current or deployed definitions, enabled or not, sorted by type, name and id. */
export function referrersOf(fleet: FleetView, type: string, id: string): readonly Referrer[] {
  return [...fleet.referrersOf(type, id)]
    .map((owner) => keyed(fleet, owner))
    .sort((a, b) => compareText(a.key, b.key))
    .map(({ referrer }) => referrer);
}

interface Keyed {
  readonly referrer: Referrer;
  readonly key: string;
}

function keyed(fleet: FleetView, owner: string): Keyed {
  const { type, id } = splitOwner(owner);
  const name = fleet.nameOf(type, id) ?? id;
  return { referrer: { type, id, name }, key: `${type}\0${sortKey(name)}\0${id}` };
}
