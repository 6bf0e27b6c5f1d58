/** A step of a walk over stored documents, newest first. Implements `docs/contract/rest.md#envelope`, `after`. */
import type { StoredDocument } from '../../storage/read-store.js';

/** @param found one more than a step has, if there are so many @returns the place of the last one of the step; null at the end */
export function nextOf(found: readonly StoredDocument<{ readonly order: string }>[], pageSize: number): string | null {
  return found.length > pageSize ? (found[pageSize - 1]?.fields.order ?? null) : null;
}
