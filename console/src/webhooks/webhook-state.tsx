/** The outcome of a delivery, and how far behind a webhook is. */
import type { ReactNode } from 'react';
import { formatDuration } from '../shared/ui/format.js';
import { State } from '../shared/ui/state.js';
import type { Delivery, Webhook } from './webhooks.js';
import classes from './webhooks.module.css';
import { text } from './webhooks.text.js';

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
