/**
 * Owner keys, which name any resource in indexes, and the way that sentences name it. Each declaration says which
 * resources its own refers to.
 */

/** `<resource type>/<id>`: the resource that a reference, a claim or a rule belongs to. */
export type Owner = string;

export function ownerOf(type: string, id: string): Owner {
  return `${type}/${id}`;
}

interface OwnerParts {
  readonly type: string;
  readonly id: string;
}

/**
 * Owners already split into their parts. One edit splits the owners of every node again and again, and a slice is a new
 * string that each look-up has to hash and to compare.
 */
const splitBefore = new Map<Owner, OwnerParts>();
/** More than a fleet has; all are forgotten at once, because it matters only to speed. */
const splitsRemembered = 100_000;

export function splitOwner(owner: Owner): OwnerParts {
  const known = splitBefore.get(owner);
  if (known !== undefined) return known;
  const at = owner.indexOf('/');
  const parts = { type: ownText(owner.slice(0, at)), id: ownText(owner.slice(at + 1)) };
  if (splitBefore.size >= splitsRemembered) splitBefore.clear();
  splitBefore.set(owner, parts);
  return parts;
}

/** The text as a string of its own: a slice would keep the whole and be compared through it. */
function ownText(slice: string): string {
  const [text = slice] = Object.keys({ [slice]: true });
  return text;
}

/** Looks up names for sentences. */
export interface NameView {
  /** The name of a resource; undefined when it does not exist. */
  nameOf(type: string, id: string): string | undefined;
}

/** The owner of a node's multiplex port: the part of the connectivity settings about that node. */
export function multiplexOwner(nodeId: string): Owner {
  return ownerOf('connectivity', nodeId);
}

/** Type, name and id of an owner, for a sentence. */
export function describeOwner(view: NameView, owner: Owner): string {
  const { type, id } = splitOwner(owner);
  if (type === 'connectivity') {
    return `the multiplex port of node "${view.nameOf('node', id) ?? id}" (connectivity settings)`;
  }
  return `${type} "${view.nameOf(type, id) ?? id}" (${id})`;
}

const ownersListed = 10;

/** Owners for a sentence, sorted; after the first ten only their number. */
export function describeOwners(view: NameView, owners: Iterable<Owner>): string {
  const sentences = [...owners].map((owner) => describeOwner(view, owner)).sort();
  const named = sentences.slice(0, ownersListed).join(', ');
  return sentences.length > ownersListed ? `${named} and ${sentences.length - ownersListed} more` : named;
}
