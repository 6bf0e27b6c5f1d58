/**
 * A command of the log as an item of the feed: its subject, which filters compare, and its content, for which the caller
 * provides the names of that time. Pure. Implements `docs/contract/automation.md#event-feed`.
 */
import { agentEvent } from '../domain/agents/facts.js';
import { describeCommand } from '../domain/audit/describe.js';
import { statusChanged } from '../domain/status/facts.js';
import { fleetEvent } from '../domain/fleet/resources.js';
import { pick } from '../domain/resource/lifecycle.js';
import { rolloutKey } from '../domain/rollout/rollout.js';
import { timestamp } from '../kernel/clock.js';
import { lastEvent, streams, type RecordedCommand, type RecordedEvent } from '../kernel/event.js';
import { unreachable } from '../kernel/errors.js';
import { loggedEntry, namesShownBy } from '../projections/models/audit-entry.js';
import type { EntryConfirmation, NameLookup } from '../projections/port.js';
import type { FeedContent, FeedItem, FeedSubject } from './port.js';

/** An item before the names are known. */
export interface Outline {
  readonly about: FeedSubject;
  readonly at: string;
  readonly final: FeedItem['final'];
  /** The names that the content shows. */
  readonly names: readonly NameLookup[];
  content(nameOf: (lookup: NameLookup) => string | null): FeedContent;
}

/** The items of a command in order, mostly one. @param command in its current shape */
export function outlinesOf(command: RecordedCommand): readonly Outline[] {
  if (command.stream === streams.status) return [statusOutline(command)].filter((one) => one !== null);
  if (command.stream.startsWith(streams.agentsPrefix)) return [factOutline(command)].filter((one) => one !== null);
  const entry = entryOutline(command);
  const steps = command.stream === streams.fleet ? command.events.flatMap((event) => rolloutOutline(event) ?? []) : [];
  return entry === null ? steps : [entry, ...steps];
}

/** A step of a rollout, its start among them. */
function rolloutOutline(recorded: RecordedEvent): Outline | undefined {
  const event = fleetEvent(recorded);
  if (event.type !== 'RolloutStarted' && event.type !== 'RolloutStepped') return undefined;
  const { rollout_id: id } = event.data;
  const { occurred_at: at, command } = recorded.metadata;
  const data =
    event.type === 'RolloutStepped'
      ? pick(event.data, ['entry_id', 'policy', 'was', 'state', 'wave', 'reason'])
      : {
          entry_id: event.data.upgrade === true ? null : command.id,
          policy: event.data.policy.name,
          ...({ was: null, state: 'running', wave: 1, reason: null } as const),
        };
  return {
    at,
    final: null,
    names: [],
    about: {
      type: 'rollout',
      resources: [{ type: rolloutKey.type, id }],
      nodes: [],
      actor: null,
      readers: 'all',
    },
    content: () => ({ type: 'rollout', data: { id, ...data } }),
  };
}

function entryOutline(command: RecordedCommand): Outline | null {
  const described = describeCommand(command);
  if (described === null) return null;
  const [first] = command.events;
  const { resource } = described;
  const { actor, occurred_at: at } = first.metadata;
  const { position } = lastEvent(command);
  const lookup = (type: string, id: string): NameLookup => ({ type, id, position });
  const type = resource.type === 'session' ? 'sign_in' : 'command';
  return {
    at,
    final: described.notRevertibleBecause,
    names: namesShownBy(command, described),
    about: {
      type,
      resources: [{ type: resource.type, id: resource.id }, ...described.others],
      nodes: touchedBy(command),
      // A sign-in is a fact.
      actor: command.stream === streams.signins ? null : actor,
      readers: described.readers,
    },
    content: (nameOf) => ({
      type,
      data: {
        ...loggedEntry(command, described, (of, id) => (id === null ? null : nameOf(lookup(of, id)))),
        confirm: confirmationIn(command),
      },
    }),
  };
}

/** What a command says about its confirmation by a person; later commands tell the outcome. */
function confirmationIn({ stream, events }: RecordedCommand): EntryConfirmation | null {
  if (stream !== streams.fleet) return null;
  for (const recorded of events) {
    const event = fleetEvent(recorded);
    if (event.type !== 'ConfirmationAsked' || event.data.by !== 'manual') continue;
    const until = timestamp(Date.parse(recorded.metadata.occurred_at) + event.data.secs * 1_000);
    return { until, confirmed_at: null, confirmed_by: null, error: null };
  }
  return null;
}

/** The nodes that a command touched, as recorded with it, and those of its events. Older releases recorded only the latter. */
function touchedBy(command: RecordedCommand): FeedSubject['nodes'] {
  if (command.stream !== streams.fleet) return [];
  const { touched = [] } = lastEvent(command).metadata;
  if (touched === 'all') return touched;
  const about = command.events.flatMap(({ data: { node_id } }) => (typeof node_id === 'string' ? [node_id] : []));
  return about.every((id) => touched.includes(id)) ? touched : [...new Set([...touched, ...about])];
}

function statusOutline({ events: [event] }: RecordedCommand): Outline | null {
  const { again, ...data } = statusChanged(event).data;
  if (again === true) return null;
  const { type, id } = data.resource;
  return {
    at: event.metadata.occurred_at,
    final: null,
    names: [],
    about: {
      type: 'status',
      resources: [{ type, id }],
      nodes: type === 'node' ? [id] : [],
      actor: null,
      readers: 'all',
      status: data.status,
    },
    content: () => ({ type: 'status', data }),
  };
}

function factOutline(command: RecordedCommand): Outline | null {
  const [event] = command.events;
  const { type, data } = agentEvent(event);
  // A copy, written before the original expires, is not news.
  if (data.again_at !== undefined) return null;
  const { node_id } = data;
  const node: NameLookup = { type: 'node', id: node_id, position: event.position };
  const outline = (kind: 'session' | 'apply', content: Outline['content']): Outline => ({
    at: event.metadata.occurred_at,
    final: null,
    names: [node],
    about: {
      type: kind,
      resources: [{ type: 'node', id: node_id }],
      nodes: [node_id],
      actor: null,
      readers: 'all',
    },
    content,
  });
  switch (type) {
    case 'AgentSessionOpened':
      return outline('session', (nameOf) => {
        const { agent_version, instance_id } = data;
        return { type: 'session', data: { node_id, node_name: nameOf(node), agent_version, instance_id } };
      });
    case 'AgentConfigApplied':
      return outline('apply', (nameOf) => {
        const { generation } = data;
        return { type: 'apply', data: { node_id, node_name: nameOf(node), generation, state: 'applied', errors: [] } };
      });
    case 'AgentConfigRejected':
      return outline('apply', (nameOf) => {
        const { generation, errors } = data;
        return { type: 'apply', data: { node_id, node_name: nameOf(node), generation, state: 'rejected', errors } };
      });
    case 'AgentConfigConfirmed':
    case 'AgentVersionConflict':
    case 'AgentDuplicateSeen':
      return null;
    default:
      return unreachable(type);
  }
}
