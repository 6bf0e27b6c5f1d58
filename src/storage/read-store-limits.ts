/**
 * Checks the bounds of collections, documents and leases. They are the same for every adapter, so that all read stores
 * accept the same writes. Implements `read-store.ts`.
 */
import { bounds } from './bounds.js';
import type { CollectionSpec } from './read-store.js';

/** @throws RangeError on a bad name */
export function assertSpec(spec: CollectionSpec): void {
  if (!/^[a-z_]{1,64}$/.test(spec.name)) throw new RangeError(`a collection is named [a-z_]+, not ${spec.name}`);
}

/** @throws RangeError on an empty id or one that is too long */
export function assertDocumentId(id: string): void {
  const bytes = Buffer.byteLength(id);
  if (bytes === 0 || bytes > bounds.documentIdBytes) {
    throw new RangeError(`a document id has 1 to ${bounds.documentIdBytes} bytes, not ${bytes}`);
  }
}

/** @throws RangeError on an empty kind or name, a kind with a NUL character, or names that are too long together */
export function assertLeaseName(kind: string, name: string): void {
  const bytes = Buffer.byteLength(kind) + 1 + Buffer.byteLength(name);
  if (kind.includes('\0') || kind.length === 0 || name.length === 0 || bytes > bounds.leaseNameBytes) {
    throw new RangeError(`kind and name of a lease have 1 to ${bounds.leaseNameBytes} bytes together`);
  }
}
