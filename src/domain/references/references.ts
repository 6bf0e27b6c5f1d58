/**
 * How one resource names another: the owner key `<resource type>/<id>`, and owners as sentences show them. Not which
 * resource refers to which: each declaration says that of its own.
 */

/** `<resource type>/<id>`. */
export type Owner = string;

export function ownerOf(type: string, id: string): Owner {
  return `${type}/${id}`;
}

export function splitOwner(owner: Owner): { readonly type: string; readonly id: string } {
  const at = owner.indexOf('/');
  return { type: owner.slice(0, at), id: owner.slice(at + 1) };
}

/** Where names are looked up for a sentence. */
export interface NameView {
  /** The name of a resource, or undefined when there is no such resource. */
  nameOf(type: string, id: string): string | undefined;
}

/** The owner of a node's multiplex port, which belongs to the connectivity settings. */
export function multiplexOwner(nodeId: string): Owner {
  return ownerOf('connectivity', nodeId);
}

/** A resource as a sentence shows it: type, name and id. */
export function describeOwner(view: NameView, owner: Owner): string {
  const { type, id } = splitOwner(owner);
  if (type === 'connectivity') {
    return `the multiplex port of node "${view.nameOf('node', id) ?? id}" (connectivity settings)`;
  }
  return `${type} "${view.nameOf(type, id) ?? id}" (${id})`;
}

const mostNamed = 10;

/** Several owners, sorted; the first ten are spelled out. */
export function describeOwners(view: NameView, owners: Iterable<Owner>): string {
  const sentences = [...owners].map((owner) => describeOwner(view, owner)).sort();
  const named = sentences.slice(0, mostNamed).join(', ');
  return sentences.length > mostNamed ? `${named} and ${sentences.length - mostNamed} more` : named;
}
