/** Items of the feed as text, in a stream and in a page. Implements `docs/contract/automation.md#event-feed`. */
import { z } from 'zod';
import type { FeedItem } from '../../../feed/port.js';
import type { StatusChange } from '../../../reports/counts.js';
import { loggedEntry } from '../resources/audit.js';
import { documented, sample } from '../schemas/documented.js';
import { applyErrors, nodeId, timeOf } from '../schemas/shared-schemas.js';

/** The first block of a stream. */
export const opening = 'retry: 2000\n\n';

/** An item as a block of a stream. The data of a fact lacks its time, which is added. */
export function eventBlock({ cursor, type, at, json }: FeedItem): string {
  const shown = type === 'command' || type === 'sign_in' ? json : `{"at":${JSON.stringify(at)},${json.slice(1)}`;
  return `id: ${cursor}\nevent: ${type}\ndata: ${shown}\n\n`;
}

export const readyBlock = (cursor: string, at: string): string =>
  `id: ${cursor}\nevent: ready\ndata: ${JSON.stringify({ at })}\n\n`;

/** A status is derived, so it has no id. */
export const statusBlock = (change: StatusChange, at: string): string =>
  `event: status\ndata: ${JSON.stringify({ at, ...change })}\n\n`;

export type EndReason = 'token_ended' | 'too_slow' | 'draining';

export const endBlock = (reason: EndReason, at: string): string =>
  `event: end\ndata: ${JSON.stringify({ at, reason })}\n\n`;

export const heartbeatBlock = (cursor: string | null): string =>
  cursor === null ? ': heartbeat\n\n' : `: heartbeat\nid: ${cursor}\n\n`;

/** An item as JSON, for a page. */
export function pageEntry({ cursor, type, at, json }: FeedItem): string {
  return `{"cursor":"${cursor}","type":"${type}","at":${JSON.stringify(at)},"data":${json}}`;
}

const sampleCursor = 'AfN0cmVhbQAAAAAFAAAAAAAABQEoa8sZ5HQ3mPo6Xk4p';
const common = {
  cursor: documented(z.string(), 'Resumes after this item, with `after` or `Last-Event-ID`', sampleCursor),
  at: timeOf('When it happened'),
};
const node = { node_id: nodeId, node_name: documented(z.string().nullable(), 'Its name at that time', 'edge-1') };

const item = z.union([
  z
    .object({
      ...common,
      type: documented(z.enum(['command', 'sign_in']), 'A command was written, or a user signed in or out', 'command'),
      data: z
        .object(loggedEntry)
        .meta({ id: 'LoggedEntry', description: 'The part of an audit entry that never changes' }),
    })
    .meta({ id: 'EntryEvent', description: 'A command, or a sign-in' }),
  z
    .object({
      ...common,
      type: documented(z.literal('session'), "An agent's session has opened", 'session'),
      data: z
        .object({
          ...node,
          agent_version: documented(z.string(), "The agent's version", '1.4.2'),
          instance_id: documented(z.string(), 'The instance that holds the session', sample.deployment),
        })
        .meta({ id: 'OpenedSession', description: 'A session of an agent' }),
    })
    .meta({ id: 'SessionEvent', description: 'A session has opened' }),
  z
    .object({
      ...common,
      type: documented(z.literal('apply'), 'An agent reported', 'apply'),
      data: z
        .object({
          ...node,
          generation: documented(z.int(), 'The generation that it reported', 1285),
          state: documented(z.enum(['applied', 'rejected']), 'What the agent did with it', 'applied'),
          errors: applyErrors,
        })
        .meta({ id: 'ReportedApply', description: 'What an agent did with a generation' }),
    })
    .meta({ id: 'ApplyEvent', description: 'An agent applied or rejected a generation' }),
]);

export const eventsPage = z
  .object({
    items: documented(z.array(item), 'What happened, in order'),
    cursor: documented(z.string(), 'Where the next page starts', sampleCursor),
    caught_up: documented(
      z.boolean(),
      'Whether this is the end of the log; if not, ask for the next page at once',
      true,
    ),
  })
  .meta({ id: 'EventsPage', description: 'A page of the event feed' });

export const sampleStream = opening + readyBlock(sampleCursor, sample.time);
