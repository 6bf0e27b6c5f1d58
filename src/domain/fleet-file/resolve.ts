/**
 * Resolves the names of a document to ids of the fleet.
 * Implements `docs/contract/automation.md#the-fleet-as-a-file`, "A name is the identity".
 */
import { forEach } from '../../kernel/pieces.js';
import { nameIndexKey } from '../resource/meta.js';
import type { FleetView } from '../resource/fleet-view.js';
import type { DocumentMistake, FleetDocument, Wanted } from './document.js';

export interface Resolved {
  /** The resource's id in the fleet, or its future id. */
  idOf(standIn: string): string;
  isNew(wanted: Wanted): boolean;
  readonly mistakes: readonly DocumentMistake[];
}

const namesPerPiece = 1_000;

/** Yields between two pieces. */
export function* resolveNames(fleet: FleetView, document: FleetDocument): Generator<void, Resolved> {
  const ids = new Map<string, string>();
  const created = new Set<string>();
  const { renamed, mistakes } = renamings(fleet, document);
  const taken = new Set(renamed.values());
  /** The resource that keeps a name. */
  const found = (type: string, name: string): string | undefined => {
    const id = fleet.idOfName(type, name);
    return id === undefined || taken.has(id) ? undefined : id;
  };
  /** Ids of the document's own resources, by the key of their name. */
  const named = new Map<string, string>();
  yield* forEach(document.resources, namesPerPiece, (wanted) => {
    const existing = renamed.get(wanted) ?? found(wanted.type, wanted.name);
    if (existing === undefined) created.add(wanted.id);
    const id = existing ?? wanted.id;
    ids.set(wanted.id, id);
    named.set(nameIndexKey(wanted.type, wanted.name), id);
  });
  yield* forEach(document.references, namesPerPiece, ({ type, name, id: standIn, at }) => {
    const id = named.get(nameIndexKey(type, name)) ?? found(type, name);
    if (id !== undefined) ids.set(standIn, id);
    else mistakes.push({ at, message: `expected the name of a ${type}, there is none named "${name}"` });
  });
  return { idOf: (standIn) => ids.get(standIn) ?? standIn, isNew: ({ id }) => created.has(id), mistakes };
}

/** The ids of the resources that get a new name. */
function renamings(
  fleet: FleetView,
  document: FleetDocument,
): { readonly renamed: ReadonlyMap<Wanted, string>; readonly mistakes: DocumentMistake[] } {
  const renamed = new Map<Wanted, string>();
  const mistakes: DocumentMistake[] = [];
  const by = new Map<string, Wanted>();
  for (const wanted of document.resources) {
    if (wanted.was === undefined) continue;
    const at = [...wanted.at, 'was'];
    const before = fleet.idOfName(wanted.type, wanted.was);
    const now = fleet.idOfName(wanted.type, wanted.name);
    // Renamed before, or only the spelling differs.
    if (before === undefined || before === now) continue;
    if (now !== undefined) {
      const message = `both "${wanted.was}" and "${wanted.name}" exist; delete one of them, or leave this out`;
      mistakes.push({ at, message });
    } else if (by.has(before)) {
      mistakes.push({ at, message: `expected each former name once, "${by.get(before)?.name ?? ''}" has it too` });
    } else {
      by.set(before, wanted);
      renamed.set(wanted, before);
    }
  }
  return { renamed, mistakes };
}
