/** The rules that all resources share: existence, `If-Match`, unique names, no delete while something refers to it. */
import { firstOf } from '../../kernel/compare-text.js';
import { err, ok, type Result } from '../../kernel/result.js';
import { describeOwner, splitOwner, type NameView, type Owner } from '../references/references.js';
import type { FleetView, ResourceKey } from './fleet-view.js';
import { versionMismatch, type IfMatch, type Decision, type Refusal } from './refusal.js';
import { nameOrder, type ResourceMeta } from './meta.js';
import { faultOfName } from './name.js';

export interface Addressed {
  readonly id: string;
  readonly ifMatch?: IfMatch;
}

/** The resource that a command addresses, at the version that it expects. */
export function existing<S extends ResourceMeta>(
  fleet: FleetView,
  key: ResourceKey<S>,
  { id, ifMatch }: Addressed,
): Result<S, Refusal> {
  const state = fleet.get(key, id);
  if (state === undefined) return err({ code: 'not_found', message: `there is no ${key.type} ${id}` });
  const mismatch = versionMismatch(state.version, ifMatch);
  return mismatch === undefined ? ok(state) : err(mismatch);
}

/**
 * The refusal of a new name that is unreadable, or that another resource of the type has. @param before the resource, if it
 * exists
 */
export function newNameRefusal(
  fleet: FleetView,
  type: string,
  name: string,
  before?: { readonly id: string; readonly name: string },
): Refusal | undefined {
  const fault = name === before?.name ? undefined : faultOfName(name);
  if (fault !== undefined) return { code: 'invalid_request', message: `name: ${fault}` };
  return nameTaken(fleet, type, name, before);
}

/** The refusal when another resource of the type has the name. @param before as above */
export function nameTaken(
  fleet: FleetView,
  type: string,
  name: string,
  before?: { readonly id: string },
): Refusal | undefined {
  const holder = fleet.idOfName(type, name);
  if (holder === undefined || holder === before?.id) return undefined;
  return {
    code: 'conflict',
    message: `name: "${name}" is already the name of ${type} ${holder}; expected a unique name`,
  };
}

/** The refusal to restore a resource that exists. */
export function exists(fleet: FleetView, type: string, id: string): Refusal | undefined {
  if (!fleet.has(type, id)) return undefined;
  return { code: 'conflict', message: `the ${type} "${fleet.nameOf(type, id) ?? id}" exists` };
}

/** The refusal of a delete while another resource refers to this one. */
export function stillUsed(
  fleet: FleetView,
  type: string,
  { id, name }: { readonly id: string; readonly name: string },
): Refusal | undefined {
  const referrers = fleet.referrersOf(type, id);
  if (referrers.size === 0) return undefined;
  return { code: 'conflict', message: `the ${type} "${name}" is still used by ${describeOwners(fleet, referrers)}` };
}

const ownersListed = 10;

/** Owners for a sentence, by type, name and id; after the first ten only their number. */
export function describeOwners(view: NameView, owners: Iterable<Owner>): string {
  const all = [...owners];
  const first = firstOf(all, ownersListed, (owner) => {
    const { type, id } = splitOwner(owner);
    return `${type}\0${nameOrder({ id, name: view.nameOf(type, id) ?? id })}`;
  });
  const named = first.map((owner) => describeOwner(view, owner)).join(', ');
  return all.length > ownersListed ? `${named} and ${all.length - ownersListed} more` : named;
}

/** A rule that a definition breaks by itself. */
export interface Problem {
  /** For example `['hops', 1, 'outer']`. */
  readonly path: readonly (string | number)[];
  readonly message: string;
}

/** The refusal of a definition by its first problem. */
export function firstProblem(problems: Iterable<Problem>): Refusal | undefined {
  for (const { path, message } of problems) {
    const place = path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${step}`)).join('');
    return { code: 'invalid_request', message: `${place.slice(1)}: ${message}` };
  }
  return undefined;
}

/** One event, unless the command is refused. */
export function unlessRefused<E>(refusal: Refusal | undefined, event: E): Decision<E> {
  return refusal === undefined ? ok([event]) : err(refusal);
}

/** The refusal of entries of a field on a node that does not exist. */
export function unknownNode(
  fleet: FleetView,
  field: string,
  entries: readonly { readonly node_id: string }[],
): Refusal | undefined {
  for (const [index, { node_id }] of entries.entries()) {
    if (fleet.has('node', node_id)) continue;
    const message = `${field}[${index}].node_id: expected the id of a node, there is no node ${node_id}`;
    return { code: 'invalid_request', message };
  }
  return undefined;
}
