/**
 * A fleet as text, state and every index, independent of the order in which things were put in. Two fleets with equal
 * text are equal to the last byte that a decision, a compile or a checkpoint could see.
 */
import type { Fleet } from '../../src/domain/fleet/fleet.js';
import { canonicalJson } from '../../src/kernel/json.js';

type Rows = Iterable<[string, unknown]>;

const lines = (name: string, rows: Rows): readonly string[] =>
  [...rows].map(([key, value]) => `${name} ${key} = ${canonicalJson(value)}`).sort();

function* sorted(index: Iterable<[string, ReadonlySet<string>]>): Generator<[string, readonly string[]]> {
  for (const [key, values] of index) yield [key, [...values].sort()];
}

/** The state: what events wrote. */
function dumpState(fleet: Fleet): string {
  return [
    `revision ${fleet.revision.value} position ${fleet.position.value} compiler ${fleet.singletons.service.value}`,
    `settings ${canonicalJson(fleet.singletons.connectivity.value)}`,
    ...lines('node', fleet.tables.node.entries()),
    ...lines('upstream', fleet.tables.l4_upstream.entries()),
    ...lines('chain', fleet.tables.l4_chain.entries()),
    ...lines('touched', fleet.touched.entries()),
    ...lines('key', fleet.idempotency.keys.entries()),
  ].join('\n');
}

/** The indexes: what is derived from the state. */
export function dumpIndexes(fleet: Fleet): string {
  return [
    ...lines('names', fleet.names.entries()),
    ...lines('references', sorted(fleet.references.entries())),
    ...lines('deployedOn', sorted(fleet.contributors.entries())),
    ...lines('claims', sorted(fleet.claims.entries())),
    ...lines('hours', sorted(fleet.idempotency.hours.entries())),
  ].join('\n');
}

export function dumpFleet(fleet: Fleet): string {
  return `${dumpState(fleet)}\n${dumpIndexes(fleet)}`;
}
