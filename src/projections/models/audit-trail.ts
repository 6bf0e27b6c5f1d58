/**
 * The entries about one resource, and the command of one entry, for reverts. Not how entries are shown: that is
 * `audit-queries.ts`. Implements `docs/contract/domain.md#audit-and-revert`.
 */
import type { EventStore } from '../../storage/event-store.js';
import type { Collection } from '../../storage/read-store.js';
import type { Projections } from '../port.js';
import { tuning } from '../tuning.js';
import type { AuditFields } from './audit.js';
import { readCommands } from './log-commands.js';

/** @param open returns the collection, or throws `unavailable` while the read models cannot be queried */
export function auditTrail(
  eventStore: EventStore,
  open: () => { readonly audit: Collection<AuditFields> },
): Projections['auditTrail'] {
  return {
    async command(id) {
      const document = await open().audit.get(id);
      if (document === undefined) return undefined;
      const [command] = await readCommands(eventStore, [document.fields]);
      return command;
    },
    async *about(type, id, behind) {
      for (let skip = 0; ; skip += tuning.auditTrailPage) {
        const { items } = await open().audit.find({
          where: [{ field: 'resource_id', op: 'eq', value: id }],
          sort: [{ field: 'order', direction: 'desc' }],
          skip,
          limit: tuning.auditTrailPage,
        });
        for (const { id: entryId, fields } of items) {
          if (fields.resource_type !== type || fields.position <= behind) continue;
          const { action, actor_type: actor, at, position, count: events } = fields;
          yield { id: entryId, action, actor, at, position, events };
        }
        if (items.length < tuning.auditTrailPage) return;
      }
    },
  };
}
