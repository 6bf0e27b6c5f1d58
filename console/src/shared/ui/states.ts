/**
 * Every state that the API tells, with the mood (colour and shape) and the word that it has on every page. The same
 * fact looks the same everywhere because it is defined once, here. Pure.
 */
import type { Schemas } from '../api/client.js';
import type { Mood } from './state.js';

type States<S extends string> = Readonly<Record<S, readonly [mood: Mood, word: string]>>;

const of = <S extends string>(states: States<S>): States<S> => states;

export const states = {
  node: of<Schemas['Node']['status']>({
    online: ['good', 'online'],
    offline: ['bad', 'offline'],
    pending: ['idle', 'never connected'],
  }),
  apply: of<Schemas['Node']['apply']['state']>({
    applied: ['good', 'applied'],
    pushed: ['busy', 'sent'],
    rejected: ['bad', 'rejected'],
    none: ['idle', 'not sent yet'],
  }),
  chain: of<Schemas['L4Chain']['status']>({
    draft: ['idle', 'never deployed'],
    deployed: ['good', 'deployed'],
    modified: ['busy', 'changed since'],
    disabled: ['idle', 'disabled'],
  }),
  health: of<Schemas['L4Chain']['health']['state']>({
    ok: ['good', 'working'],
    degraded: ['warning', 'degraded'],
    down: ['bad', 'down'],
    unknown: ['idle', 'unknown'],
  }),
  deployment: of<Schemas['DeploymentNode']['state']>({
    pending: ['busy', 'waiting'],
    pushed: ['busy', 'sent'],
    applied: ['good', 'applied'],
    rejected: ['bad', 'rejected'],
    offline: ['bad', 'offline'],
    held: ['busy', 'held by a rollout'],
  }),
  upstream: of<Schemas['L4Upstream']['health']>({
    healthy: ['good', 'healthy'],
    unhealthy: ['bad', 'unhealthy'],
    unknown: ['idle', 'health unknown'],
  }),
  command: of<Schemas['ListedAgentCommand']['state']>({
    queued: ['busy', 'queued'],
    delivered: ['good', 'delivered'],
    answered: ['good', 'answered'],
    expired: ['warning', 'not delivered'],
  }),
  webhook: of<Schemas['Webhook']['state']>({
    ok: ['good', 'delivering'],
    failing: ['warning', 'failing, retrying'],
    stopped: ['bad', 'stopped'],
    disabled: ['idle', 'disabled'],
  }),
  rollout: of<Schemas['Rollout']['state']>({
    running: ['busy', 'being applied'],
    baking: ['busy', 'under watch'],
    paused: ['warning', 'paused'],
    halted: ['bad', 'halted'],
    reverting: ['busy', 'being undone'],
    reverted: ['idle', 'undone'],
    completed: ['good', 'completed'],
    cancelled: ['idle', 'cancelled'],
  }),
  wave: of<'waiting' | 'applying' | 'baking' | 'stopped' | 'done'>({
    waiting: ['idle', 'waiting for its turn'],
    applying: ['busy', 'being applied'],
    baking: ['busy', 'under watch'],
    stopped: ['warning', 'stopped here'],
    done: ['good', 'done'],
  }),
  rolloutNode: of<Schemas['RolloutNode']['state']>({
    applied: ['good', 'applied'],
    pushed: ['busy', 'sent'],
    held: ['idle', 'held back'],
    rejected: ['bad', 'rejected'],
    failed: ['bad', 'failed'],
    lost: ['bad', 'lost'],
    offline: ['bad', 'offline'],
  }),
  joinToken: of<'open' | 'used up' | 'expired'>({
    open: ['good', 'lets machines in'],
    'used up': ['idle', 'used up'],
    expired: ['idle', 'expired'],
  }),
  machine: of<'deleted' | 'joined' | 'offline' | 'rejected' | 'applying' | 'connected' | 'applied'>({
    deleted: ['idle', 'deleted since'],
    joined: ['busy', 'joined, connecting'],
    offline: ['bad', 'offline'],
    rejected: ['bad', 'configuration rejected'],
    applying: ['busy', 'connected, applying'],
    connected: ['good', 'connected, nothing to apply yet'],
    applied: ['good', 'connected, applied'],
  }),
  apiToken: of<'expired'>({ expired: ['idle', 'expired'] }),
  incident: of<'lasts' | 'ended'>({ lasts: ['bad', 'still'], ended: ['good', 'ended'] }),
  certificate: of<'valid' | 'ending' | 'ended'>({
    valid: ['good', 'valid'],
    ending: ['warning', 'ends soon'],
    ended: ['bad', 'certificate ended'],
  }),
  matter: of<Schemas['Matter']['severity']>({
    down: ['bad', 'down'],
    degraded: ['warning', 'degraded'],
    soon: ['busy', 'soon'],
  }),
} as const;

export type Kind = keyof typeof states;

/** The word of each state of a kind, as filters offer them. */
export const wordsOf = (kind: Kind): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(states[kind]).map(([state, [, word]]) => [state, word]));

/** A state that this console does not know is shown in the service's own word. */
export function known(kind: Kind, state: string): readonly [mood: Mood, word: string] {
  const all: Readonly<Record<string, readonly [Mood, string]>> = states[kind];
  return all[state] ?? ['idle', state];
}
