/** Items of the feed as text, in a stream and in a page. Implements `docs/contract/automation.md#event-feed`. */
import { z } from 'zod';
import type { FeedItem } from '../../../feed/port.js';
import { confirm, loggedEntry } from '../resources/audit.js';
import { rolloutStates } from '../../../domain/rollout/rollout.js';
import { component, documented, sample } from '../schemas/documented.js';
import { applyErrors, idOf, nodeId, statusResource, timeOf } from '../schemas/shared-schemas.js';

/** The first block of a stream. */
export const opening = 'retry: 2000\n\n';

/** An item as a block of a stream. The data of a fact lacks its time, which is added. */
export function eventBlock({ cursor, type, at, json }: FeedItem): string {
  const shown = type === 'command' || type === 'sign_in' ? json : `{"at":${JSON.stringify(at)},${json.slice(1)}`;
  return `id: ${cursor}\nevent: ${type}\ndata: ${shown}\n\n`;
}

export const readyBlock = (cursor: string, at: string): string =>
  `id: ${cursor}\nevent: ready\ndata: ${JSON.stringify({ at })}\n\n`;

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

const incidentOfStatus = component('IncidentOfStatus', 'An incident', {
  id: idOf('Id of the incident', sample.entry),
  began_at: timeOf('When it began'),
  status: documented(z.string(), 'The worst status so far', 'down'),
});

const item = z.union([
  component('EntryEvent', 'A command, or a sign-in', {
    ...common,
    type: documented(z.enum(['command', 'sign_in']), 'A command was written, or a user signed in or out', 'command'),
    data: component('LoggedEntry', 'An audit entry as it was written', { ...loggedEntry, confirm }),
  }),
  component('SessionEvent', 'A session has opened', {
    ...common,
    type: documented(z.literal('session'), "An agent's session has opened", 'session'),
    data: component('OpenedSession', 'A session of an agent', {
      ...node,
      agent_version: documented(z.string(), "The agent's version", '1.4.2'),
      instance_id: documented(z.string(), 'The instance that holds the session', sample.deployment),
    }),
  }),
  component('ApplyEvent', 'An agent applied or rejected a generation', {
    ...common,
    type: documented(z.literal('apply'), 'An agent reported', 'apply'),
    data: component('ReportedApply', 'What an agent did with a generation', {
      ...node,
      generation: documented(z.int(), 'The generation that it reported', 1285),
      state: documented(z.enum(['applied', 'rejected']), 'What the agent did with it', 'applied'),
      errors: applyErrors,
    }),
  }),
  component('StatusEvent', 'A status changed without a command', {
    ...common,
    type: documented(z.literal('status'), 'A status changed without a command', 'status'),
    data: component('ChangedStatus', 'A change of status', {
      resource: documented(statusResource, 'What has the status'),
      was: documented(z.string(), 'The status that was reported before', 'ok'),
      status: documented(z.string(), 'The status now', 'down'),
      since: timeOf('When it began'),
      reason: documented(z.string().nullable(), 'Why, as a sentence', 'node "edge-1" is offline'),
      incident: documented(incidentOfStatus.nullable(), 'The incident that it begins, belongs to or ends', null),
    }),
  }),
  component('RolloutEvent', 'A rollout has started, or has taken a step', {
    ...common,
    type: documented(z.literal('rollout'), 'A step of a rollout', 'rollout'),
    data: component('RolloutStep', 'A step of a rollout', {
      id: idOf('Id of the rollout', sample.rollout),
      policy: documented(z.string(), 'Its policy, by the name at that time', 'careful'),
      entry_id: documented(z.string().nullable(), 'The audit entry of its change; null of an upgrade', sample.entry),
      was: documented(z.enum(rolloutStates).nullable(), 'The state before; null of its start', 'running'),
      state: documented(z.enum(rolloutStates), 'The state now', 'baking'),
      wave: documented(z.int(), 'The current wave, from 1', 1),
      reason: documented(z.string().nullable(), 'Why it was halted or is reverted; else null', null),
    }),
  }),
]);

export const eventsPage = component('EventsPage', 'A page of the event feed', {
  items: documented(z.array(item), 'What happened, in order'),
  cursor: documented(z.string(), 'Where the next page starts', sampleCursor),
  caught_up: documented(z.boolean(), 'Whether this is the end of the log; if not, ask for the next page at once', true),
});

export const sampleStream = opening + readyBlock(sampleCursor, sample.time);
