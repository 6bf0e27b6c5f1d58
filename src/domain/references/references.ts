/** Owner keys, which identify any resource in indexes, and the names of owners in sentences. */

/** `<resource type>/<id>` of the resource that a reference, a claim or a rule belongs to. */
export type Owner = string;

export function ownerOf(type: string, id: string): Owner {
  return `${type}/${id}`;
}

interface OwnerParts {
  readonly type: string;
  readonly id: string;
}

/** Cached, because one edit splits the owners of every node again, and each look-up would hash and compare a new slice. */
const splitBefore = new Map<Owner, OwnerParts>();
/** More than a fleet has. Beyond it, the cache is cleared. */
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

/** Copies a slice, which would otherwise keep the whole string alive. */
function ownText(slice: string): string {
  const [text = slice] = Object.keys({ [slice]: true });
  return text;
}

/** Looks up names for sentences. */
export interface NameView {
  /** The name of a resource; undefined when it does not exist. */
  nameOf(type: string, id: string): string | undefined;
}

/** The owner of a node's multiplex port, which the connectivity settings hold. */
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
