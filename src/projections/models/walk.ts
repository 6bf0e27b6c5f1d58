/** A step of a walk over stored documents, newest first. Implements `docs/contract/rest.md#envelope`, `after`. */
import type { StoredDocument } from '../../storage/read-store.js';

/** @param found the documents of a step, and one more if any @returns the place of the step's last; null at the end */
export function nextOf(found: readonly StoredDocument<{ readonly order: string }>[], pageSize: number): string | null {
  return found.length > pageSize ? (found[pageSize - 1]?.fields.order ?? null) : null;
}
