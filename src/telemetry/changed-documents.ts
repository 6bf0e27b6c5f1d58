/**
 * One table per node, as bytes, written only when it differs from what this instance wrote last: runtime tables and links
 * are large and come with every heartbeat. Keeps a hash of each, never the table.
 */
import { createLru } from '../kernel/lru.js';
import type { Collection } from '../storage/read-store.js';
import type { ReportedTable } from './port.js';

/** A stored table: a `HeartbeatRequest` of the wire with nothing but that list. */
export type TableFields = { readonly wire: Uint8Array };

export interface ChangedDocuments {
  /** Whether this instance wrote this table of the node last. */
  holds(nodeId: string, table: Pick<ReportedTable, 'hash'>): boolean;
  /** Writes those that have changed. @throws ServiceError `unavailable` */
  write(entries: readonly (readonly [nodeId: string, table: ReportedTable])[]): Promise<void>;
  /** The node's next table is written even if it has not changed. */
  forget(nodeId: string): void;
}

export function createChangedDocuments(
  collection: Pick<Collection<TableFields>, 'set'>,
  rememberedNodes: number,
): ChangedDocuments {
  const hashes = createLru<string, string>({ maxEntries: rememberedNodes });
  const holds: ChangedDocuments['holds'] = (nodeId, { hash }) => hashes.get(nodeId) === hash;
  return {
    holds,
    async write(entries) {
      const changed = entries.filter(([nodeId, table]) => !holds(nodeId, table));
      if (changed.length === 0) return;
      await collection.set(changed.map(([nodeId, { bytes }]) => ({ id: nodeId, fields: { wire: bytes } })));
      for (const [nodeId, { hash }] of changed) hashes.set(nodeId, hash);
    },
    forget: hashes.delete,
  };
}
