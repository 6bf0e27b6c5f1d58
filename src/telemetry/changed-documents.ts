/**
 * One JSON document per node, written only when it differs from what this instance wrote last: runtime tables and links
 * are large and come with every heartbeat. Keeps a hash of each, never the document.
 */
import { createHash } from 'node:crypto';
import { createLru } from '../kernel/lru.js';
import type { Json } from '../kernel/json.js';
import type { Collection, Fields } from '../storage/read-store.js';

export interface ChangedDocuments {
  /** Writes those that have changed, given as JSON text. @throws ServiceError `unavailable` */
  write(entries: readonly (readonly [nodeId: string, json: string])[]): Promise<void>;
  /** The node's next document is written even if it has not changed. */
  forget(nodeId: string): void;
}

/** @param toFields puts the parsed JSON under the field that the collection has for it */
export function createChangedDocuments<F extends Fields>(
  collection: Collection<F>,
  toFields: (value: Json) => F,
  rememberedNodes: number,
): ChangedDocuments {
  const hashes = createLru<string, string>({ maxEntries: rememberedNodes });
  return {
    async write(entries) {
      const changed = entries
        .map(([nodeId, json]) => ({ nodeId, json, hash: createHash('sha256').update(json).digest('base64') }))
        .filter(({ nodeId, hash }) => hashes.get(nodeId) !== hash);
      if (changed.length === 0) return;
      await collection.set(
        changed.map(({ nodeId, json }) => ({ id: nodeId, fields: toFields(JSON.parse(json) as Json) })),
      );
      for (const { nodeId, hash } of changed) hashes.set(nodeId, hash);
    },
    forget: hashes.delete,
  };
}
