/** The referrers of a resource, as answers list them. Implements `docs/contract/rest.md#credentials`, `in_use_by`. */
import { firstOf, sortedBy } from '../../kernel/compare-text.js';
import { splitOwner } from '../references/references.js';
import { nameOrder } from '../resource/meta.js';
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
  const all = unsorted(fleet, type, id);
  return { items: firstOf(all, count, keyOf), total: all.length };
}

/** The referrers by current or deployed definitions, enabled or not, sorted by type, name and id. */
export const referrersOf = (fleet: FleetView, type: string, id: string): readonly Referrer[] =>
  sortedBy(unsorted(fleet, type, id), keyOf);

const unsorted = (fleet: FleetView, ofType: string, ofId: string): readonly Referrer[] =>
  Array.from(fleet.referrersOf(ofType, ofId), (owner) => {
    const { type, id } = splitOwner(owner);
    return { type, id, name: fleet.nameOf(type, id) ?? id };
  });

const keyOf = (referrer: Referrer): string => `${referrer.type}\0${nameOrder(referrer)}`;
