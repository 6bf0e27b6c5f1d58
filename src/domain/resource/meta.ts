/**
 * The fields that every resource has besides its definition, and the key of its name.
 * Implements `docs/contract/rest.md#consistency` and `docs/contract/rest.md#envelope`, the bounds.
 */
import { nfc } from '../../kernel/compare-text.js';

export interface ResourceMeta {
  readonly id: string;
  /** Grows by one with each event of the resource. */
  readonly version: number;
  /** RFC 3339, UTC, milliseconds. */
  readonly created_at: string;
  readonly updated_at: string;
  /** The set of the fleet file that owns it; absent or null for none. */
  readonly managed_by?: string | null | undefined;
}

/** The field that every definition has besides its own. */
export type Owned = Pick<ResourceMeta, 'managed_by'>;

/** The meta of a resource after its first event. */
export function firstVersion(id: string, at: string): ResourceMeta {
  return { id, version: 1, created_at: at, updated_at: at };
}

/** The meta of a restored resource. */
export function restoredVersion(
  id: string,
  { created_at, version }: { readonly created_at: string; readonly version: number },
  at: string,
): ResourceMeta {
  return { id, version: version + 1, created_at, updated_at: at };
}

/** The resource after one more event. */
export function nextVersion<S extends ResourceMeta>(state: S, at: string): S {
  return { ...state, version: state.version + 1, updated_at: at };
}

/** The same for equal names, which are compared case-insensitively after NFC. */
export function nameKey(name: string): string {
  return nfc(name).toLowerCase();
}

/**
 * A key by which names sort naturally when compared as text: runs of digits by their value, the rest in lower case,
 * ties by the name itself.
 */
export function sortKey(name: string): string {
  const natural = nameKey(name).replace(/[0-9]+/g, (run) => {
    const digits = run.replace(/^0+(?=.)/, '');
    // More digits mean a larger number. The leading 0 sorts a run where digits sort among other characters.
    return `0${String.fromCharCode(digits.length)}${digits}`;
  });
  return `${natural}\u0000${name}`;
}

/** A key by which resources sort by name, then by id. */
export const nameOrder = ({ id, name }: { readonly id: string; readonly name: string }): string =>
  `${sortKey(name)}\u0000${id}`;

/** The key of a name in the fleet's index of names. */
export function nameIndexKey(type: string, name: string): string {
  return `${type}/${nameKey(name)}`;
}
