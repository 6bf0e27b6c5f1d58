/** The states of webhooks and deliveries, each with its sign. */
import type { ReactNode } from 'react';
import { formatDuration } from '../shared/ui/format.js';
import { State, type Mood } from '../shared/ui/state.js';
import type { Delivery, Webhook } from './webhooks.js';
import classes from './webhooks.module.css';
import { text } from './webhooks.text.js';

const moods: Readonly<Record<Webhook['state'], Mood>> = {
  ok: 'good',
  failing: 'warning',
  stopped: 'bad',
  disabled: 'idle',
};

export function WebhookState({ state }: Pick<Webhook, 'state'>): ReactNode {
  return <State mood={moods[state]}>{text.states[state]}</State>;
}

/** The status of an answer, or why there was none. */
export function Outcome({ status, error }: Pick<Delivery, 'status' | 'error'>): ReactNode {
  return (
    <State mood={error === null ? 'good' : 'bad'}>
      <span className={classes.outcome}>{error ?? status}</span>
    </State>
  );
}

export function Lag({ lag }: Pick<Webhook, 'lag'>): ReactNode {
  return lag.caught_up ? text.caughtUp : formatDuration(lag.seconds);
}
