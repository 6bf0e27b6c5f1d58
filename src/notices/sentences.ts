/**
 * The catalogue of sentences: one for each kind of item of the event feed, and one for several of a kind. What happened,
 * to what, why, since when. Implements `docs/contract/notices.md#webhooks-for-people`, "one sentence an item".
 */
import type { StatusFact } from '../domain/status/facts.js';
import { isBad, type StatusType } from '../domain/status/status.js';
import type { FeedContent } from '../feed/port.js';
import { unreachable } from '../kernel/errors.js';
import { nameOf, piecesOf, type Line } from './line.js';

/** How a message looks and how loud it is. */
export type Tone = 'bad' | 'warning' | 'good' | 'neutral';

/** What happened, as one sentence. */
export function sentenceOf(content: FeedContent): Line {
  switch (content.type) {
    case 'status':
      return statusSentence(content.data);
    case 'session': {
      const { node_name, node_id, agent_version } = content.data;
      return [
        'The agent of node ',
        nameOf(node_name ?? node_id),
        ' has connected, version ',
        nameOf(agent_version),
        '.',
      ];
    }
    case 'apply': {
      const { node_name, node_id, generation, state, errors } = content.data;
      const node = ['Node ', nameOf(node_name ?? node_id), ` ${state} generation ${generation}`];
      const [first] = errors;
      if (first === undefined) return [...node, '.'];
      const more = errors.length === 1 ? '' : ` and ${errors.length - 1} more`;
      return [...node, ': ', nameOf(first.message), `${more}.`];
    }
    case 'rollout':
      return rolloutSentence(content.data);
    case 'command':
    case 'sign_in':
      return commandSentence(content.data);
    default:
      return unreachable(content);
  }
}

type Entry = Extract<FeedContent, { readonly type: 'command' | 'sign_in' }>['data'];

function commandSentence({ action, actor, resource, changes, changes_total }: Entry): Line {
  const who = nameOf(actor.name ?? 'somebody');
  const verb = action.slice(action.indexOf('.') + 1);
  if (verb === 'sign_in') return [who, ' signed in.'];
  if (verb === 'sign_out') return [who, ' signed out.'];
  if (verb === 'sign_in_refused') return ['A sign-in of ', who, ' was refused.'];
  const what = resource.name ?? resource.id;
  const noun = nouns[resource.type] ?? resource.type.replaceAll('_', ' ');
  // An entry about several nodes is named by their number.
  const about =
    resource.id === null && what !== null ? [` ${what}`] : [` ${noun}`, ...(what === null ? [] : [' ', nameOf(what)])];
  const done = [who, ` ${verbs[verb] ?? `did "${verb}" to`}`, ...about];
  if (verb !== 'update' && verb !== 'label') return [...done, '.'];
  const paths = new Set(changes.map(({ path }) => (verb === 'label' ? path.replace(/^labels\./, '') : path)));
  const fields = [...paths].slice(0, 5);
  if (fields.length === 0) return [...done, '.'];
  // Each of several nodes has its own change of the same label.
  const left = (verb === 'label' ? paths.size : changes_total) - fields.length;
  const more = left > 0 ? ` and ${left} more` : '';
  return [...done, ': ', ...fields.flatMap((field, index) => [index === 0 ? '' : ', ', nameOf(field)]), `${more}.`];
}

const verbs: { readonly [verb: string]: string } = {
  create: 'created',
  update: 'changed',
  delete: 'deleted',
  deploy: 'deployed',
  psk: 'issued a new PSK for',
  refresh: 'refreshed the configuration of',
  command: 'sent a command to',
  label: 'changed labels of',
  revert: 'reverted a change of',
  stop: 'stopped',
  resume: 'resumed',
  apply: 'applied',
  pause: 'paused',
  advance: 'advanced',
  complete: 'completed',
  psk_candidate: 'issued or took back a second PSK of',
  rotate: 'made a second key of',
  retire: 'ended the old key of',
  release: 'released',
  confirm: 'confirmed',
};

const nouns: { readonly [type: string]: string } = {
  l4_chain: 'chain',
  l4_upstream: 'upstream',
  l3_network: 'network',
  connectivity: 'the connectivity settings',
  fleet: 'fleet set',
  api_token: 'API token',
  service: 'the service',
  confirmation: 'change',
};

function statusSentence({ resource: { type, name }, status, since, reason, incident }: StatusFact): Line {
  const named = [`${subjects[type].one} `, nameOf(name)];
  if (status === 'offline') return [...named, ` is offline, last seen ${timeOf(since)} UTC.`];
  const lasted = incident === null ? undefined : durationOf(Date.parse(since) - Date.parse(incident.began_at));
  const again = isBad(type, status) || lasted === undefined ? '' : ` again after ${lasted}`;
  const said = `${states[type][status] ?? status}${again}`;
  if (reason === null) return [...named, ` ${said}.`];
  return [...named, ` ${said}: `, ...piecesOf(reason), '.'];
}

type RolloutStep = Extract<FeedContent, { readonly type: 'rollout' }>['data'];

function rolloutSentence({ policy, was, state, wave, reason }: RolloutStep): Line {
  const said = was === null ? 'has started: wave 1 gets the change' : rolloutSaid(state, wave, was);
  const why = reason === null ? [] : [': ', ...piecesOf(reason)];
  return ['A rollout by the policy ', nameOf(policy), ` ${said}`, ...why, '.'];
}

function rolloutSaid(state: RolloutStep['state'], wave: number, was: RolloutStep['was']): string {
  switch (state) {
    case 'running':
      return was === 'baking' ? `goes on: wave ${wave} gets the change` : `goes on with wave ${wave}`;
    case 'baking':
      return was === 'paused'
        ? `goes on with the bake of wave ${wave}`
        : `has reached the nodes of wave ${wave}, which now bake`;
    case 'paused':
      return `is paused in wave ${wave}`;
    case 'halted':
      return `is halted in wave ${wave}`;
    case 'reverting':
      return `has failed in wave ${wave}, and is reverted`;
    case 'reverted':
      return 'is reverted';
    case 'completed':
      return 'is completed';
    case 'cancelled':
      return 'is cancelled: its change was reverted';
    default:
      return unreachable(state);
  }
}

/** The words in front of the names of several resources of a type with the same status. */
export function severalAre(type: StatusType, status: string, count: number): string {
  const said = (states[type][status] ?? status).replace(/^is /, 'are ').replace(/^has /, 'have ');
  return `${count.toLocaleString('en-GB')} ${subjects[type].many} ${said.replace(/^ends /, 'end ')}: `;
}

const subjects: { readonly [T in StatusType]: { readonly one: string; readonly many: string } } = {
  node: { one: 'Node', many: 'nodes' },
  l4_chain: { one: 'Chain', many: 'chains' },
  l4_upstream: { one: 'Upstream', many: 'upstreams' },
  credential: { one: 'The certificate of', many: 'certificates' },
};

const states: { readonly [T in StatusType]: { readonly [status: string]: string } } = {
  node: { online: 'is online', offline: 'is offline' },
  l4_chain: { ok: 'is ok', degraded: 'is degraded', down: 'is down' },
  l4_upstream: { healthy: 'is healthy', unhealthy: 'is unhealthy' },
  credential: {
    '30_days': 'ends within 30 days',
    '7_days': 'ends within 7 days',
    '1_day': 'ends within a day',
    ended: 'has ended',
  },
};

export function toneOf(content: FeedContent): Tone {
  switch (content.type) {
    case 'status': {
      const { resource, status } = content.data;
      if (status === 'degraded' || (resource.type === 'credential' && status !== 'ended')) return 'warning';
      return isBad(resource.type, status) ? 'bad' : 'good';
    }
    case 'apply':
      return content.data.state === 'rejected' ? 'bad' : 'neutral';
    case 'rollout': {
      const { state } = content.data;
      if (state === 'halted' || state === 'reverting') return 'bad';
      return state === 'completed' ? 'good' : 'neutral';
    }
    default:
      return 'neutral';
  }
}

/** The time of day: `12:04:31`. */
const timeOf = (at: string): string => new Date(at).toISOString().slice(11, 19);

/** `45 s`, `4 min 10 s`, `2 h 5 min`, `3 d 4 h`. @internal exported for tests */
export function durationOf(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  const units = [
    ['d', 86_400],
    ['h', 3_600],
    ['min', 60],
    ['s', 1],
  ] as const;
  const first = units.findIndex(([, size]) => seconds >= size);
  if (first === -1) return '0 s';
  let left = seconds;
  const parts: string[] = [];
  for (const [unit, size] of units.slice(first, first + 2)) {
    if (left >= size) parts.push(`${Math.floor(left / size)} ${unit}`);
    left %= size;
  }
  return parts.join(' ');
}
