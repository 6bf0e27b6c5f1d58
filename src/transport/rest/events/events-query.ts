/** The query of the event feed: its start and its filters. Implements `docs/contract/automation.md#event-feed`. */
import type { z } from 'zod';
import { auditedTypes } from '../../../domain/audit/describe.js';
import { webhookTypes } from '../../../domain/webhook/webhook.js';
import type { FeedFilters } from '../../../feed/filters.js';
import type { FeedType } from '../../../feed/port.js';
import { limits } from '../../../kernel/limits.js';
import { documented, sample } from '../schemas/documented.js';
import { formedText } from '../schemas/fields.js';
import { commaList, query, queryInteger, someOf } from '../schemas/query.js';

/** Types that can be selected; `ready` and `end` are always sent. */
const types: readonly FeedType[] = webhookTypes;

const formed = formedText('a text');
const notEmpty = (what: string) => commaList(what, (value) => (value === '' ? undefined : value));

export const eventsQuerystring = query({
  after: formed.optional().meta({
    description: 'A cursor: continue right after it. `start`: from the first event of the log. `now`: from now on',
    default: 'now',
    examples: ['start'],
  }),
  types: documented(someOf(types).optional(), 'Only these types, comma-separated', 'command,apply'),
  resource_type: someOf(auditedTypes)
    .optional()
    .meta({ description: 'Only about resources of these types, comma-separated', examples: ['node,l4_chain'] }),
  resource_id: documented(notEmpty('ids').optional(), 'Only about these resources, comma-separated', sample.chain),
  node_id: notEmpty('ids of nodes')
    .optional()
    .meta({
      description: 'Only items that concern these nodes, comma-separated',
      examples: [sample.entryNode],
    }),
  actor: notEmpty('ids or user names')
    .optional()
    .meta({ description: 'Only commands of these actors, by id or user name, comma-separated', examples: ['admin'] }),
  page_size: queryInteger(1, limits.rest.pageSizeMax, 'Items of a page; not for a stream')
    .optional()
    .meta({ default: limits.feed.pageSizeDefault, examples: [20] }),
  wait_ms: queryInteger(0, limits.feed.waitMsMax, 'How long a page waits for its first item; not for a stream')
    .optional()
    .meta({ default: 0, examples: [10_000] }),
});

export type EventsQuery = z.output<typeof eventsQuerystring>;

export function filtersOf({ types: asked, resource_type, resource_id, node_id, actor }: EventsQuery): FeedFilters {
  return { types: asked, resource_type, resource_id, node_id, actor };
}
