/**
 * The ids behind the names of a document: which resource of the fleet each entry is, and what references lead to.
 * Implements `docs/contract/automation.md#the-fleet-as-a-file`, "A name is the identity".
 */
import { nameIndexKey } from '../resource/meta.js';
import type { FleetView } from '../resource/fleet-view.js';
import type { DocumentMistake, FleetDocument, Wanted } from './document.js';

export interface Resolved {
  /** The resource's id in the fleet, or the one that it gets. */
  idOf(standIn: string): string;
  /** True for an entry that the fleet does not have yet. */
  isNew(wanted: Wanted): boolean;
  readonly mistakes: readonly DocumentMistake[];
}

/** So many names are looked up at a time. */
const perPiece = 2_500;

/** Yields between two pieces. */
export function* resolveNames(fleet: FleetView, document: FleetDocument): Generator<void, Resolved> {
  const ids = new Map<string, string>();
  const created = new Set<string>();
  const mistakes: DocumentMistake[] = [];
  const { renamed, clashes } = renamings(fleet, document);
  mistakes.push(...clashes);
  const taken = new Set(renamed.values());
  /** Ids of the document's own resources, by the key of their name. */
  const named = new Map<string, string>();
  for (const [index, wanted] of document.resources.entries()) {
    if (index > 0 && index % perPiece === 0) yield;
    const found = fleet.idOfName(wanted.type, wanted.name);
    const existing = renamed.get(wanted) ?? (found !== undefined && !taken.has(found) ? found : undefined);
    if (existing === undefined) created.add(wanted.id);
    const id = existing ?? wanted.id;
    ids.set(wanted.id, id);
    named.set(nameIndexKey(wanted.type, wanted.name), id);
  }
  for (const [index, { type, name, id: standIn, at }] of document.references.entries()) {
    if (index > 0 && index % perPiece === 0) yield;
    const found = fleet.idOfName(type, name);
    const id = named.get(nameIndexKey(type, name)) ?? (found !== undefined && !taken.has(found) ? found : undefined);
    if (id !== undefined) ids.set(standIn, id);
    else mistakes.push({ at, message: `expected the name of a ${type}, there is none named "${name}"` });
  }
  return { idOf: (standIn) => ids.get(standIn) ?? standIn, isNew: ({ id }) => created.has(id), mistakes };
}

/** The ids of the resources that get another name. One of which neither name exists is created. */
function renamings(
  fleet: FleetView,
  document: FleetDocument,
): { readonly renamed: ReadonlyMap<Wanted, string>; readonly clashes: readonly DocumentMistake[] } {
  const renamed = new Map<Wanted, string>();
  const clashes: DocumentMistake[] = [];
  const by = new Map<string, Wanted>();
  for (const wanted of document.resources) {
    if (wanted.was === undefined) continue;
    const at = [...wanted.at, 'was'];
    const before = fleet.idOfName(wanted.type, wanted.was);
    const now = fleet.idOfName(wanted.type, wanted.name);
    if (before === undefined || before === now) {
      // Done already, or only spelled otherwise.
      continue;
    }
    if (now !== undefined) {
      const message = `both "${wanted.was}" and "${wanted.name}" exist; delete one of them, or leave this out`;
      clashes.push({ at, message });
    } else if (by.has(before)) {
      clashes.push({ at, message: `expected each former name once, "${by.get(before)?.name ?? ''}" has it too` });
    } else {
      by.set(before, wanted);
      renamed.set(wanted, before);
    }
  }
  return { renamed, clashes };
}
