/**
 * A fleet as text: its state and every index, whatever order they were built in. Fleets with equal text are equal for every
 * decision, compile and checkpoint.
 */
import type { Index } from '../../src/domain/aggregate/containers.js';
import type { Fleet } from '../../src/domain/fleet/fleet.js';
import { resourceTypes } from '../../src/domain/fleet/resources.js';
import { canonicalJson } from '../../src/kernel/json.js';

type Rows = Iterable<[string, unknown]>;

const lines = (name: string, rows: Rows): readonly string[] =>
  [...rows].map(([key, value]) => `${name} ${key} = ${canonicalJson(value)}`).sort();

/** The entries of an index. */
export function* sorted(index: Index): Generator<[string, readonly string[]]> {
  for (const key of index.keys()) yield [key, [...index.get(key)].sort()];
}

/** The state: what events wrote. */
function dumpState(fleet: Fleet): string {
  return [
    `revision ${fleet.revision.value} position ${fleet.position.value} compiler ${fleet.singletons.service.value}`,
    `settings ${canonicalJson(fleet.singletons.connectivity.value)}`,
    ...resourceTypes.flatMap((type) => lines(type, fleet.tables[type].entries())),
    ...lines('touched', fleet.touched.entries()),
    ...lines('key', fleet.idempotency.keys.entries()),
    ...lines('revert', fleet.reverts.entries()),
    ...lines('left', fleet.left.entries()),
  ].join('\n');
}

/** The indexes, which are derived from the state. */
export function dumpIndexes(fleet: Fleet): string {
  return [
    ...lines('names', fleet.names.entries()),
    ...lines('references', sorted(fleet.references)),
    ...lines('contributors', sorted(fleet.contributors)),
    ...Object.entries(fleet.claimEntries).flatMap(([name, index]) => lines(`claims ${name}`, sorted(index))),
    ...lines('members', fleet.members.entries()),
    ...lines('hours', sorted(fleet.idempotency.hours)),
  ].join('\n');
}

export function dumpFleet(fleet: Fleet): string {
  return `${dumpState(fleet)}\n${dumpIndexes(fleet)}`;
}
