/** What a declared collection may look like, the same for every adapter. Implements `read-store.ts` (CollectionSpec). */
import type { CollectionSpec } from './read-store.js';
import { bounds } from './bounds.js';

/** @throws RangeError on a bad name, or an index of no or too many fields. */
export function assertSpec(spec: CollectionSpec): void {
  if (!/^[a-z_]{1,64}$/.test(spec.name)) throw new RangeError(`a collection is named [a-z_]+, not ${spec.name}`);
  for (const { fields } of spec.indexes) {
    if (fields.length === 0 || fields.length > bounds.indexFields) {
      throw new RangeError(`an index of ${spec.name} has 1 to ${bounds.indexFields} fields`);
    }
  }
}
