/**
 * What an agent says of a listener: running, or its own word for why not; greyed, and with the time, if it is only last
 * known.
 */
import type { ReactNode } from 'react';
import { State } from './state.js';
import { text } from './ui.text.js';
import { When } from './when.js';

interface ListenerStateProps {
  /** Whether a deployed definition has it. */
  readonly deployed: boolean;
  /** The agent's word; null while no report tells. */
  readonly state: string | null;
  /** This is what its agent said last: the node is not online. */
  readonly stale: boolean;
  /** When it was said, where that is known. */
  readonly at?: string | null;
}

export function ListenerState({ deployed, state, stale, at = null }: ListenerStateProps): ReactNode {
  if (state === null) {
    return <State mood="idle">{deployed ? text.listener.untold : text.listener.notDeployed}</State>;
  }
  if (stale) {
    return (
      <State mood="idle">
        <span>
          {text.listener.lastKnown(state)}
          {at !== null && (
            <>
              {', '}
              <When at={at} />
            </>
          )}
        </span>
      </State>
    );
  }
  if (state === 'running') {
    return deployed ? (
      <State mood="good">{text.listener.running}</State>
    ) : (
      <State mood="warning">{text.listener.unexpected}</State>
    );
  }
  return deployed ? <State mood="bad">{state}</State> : <State mood="idle">{text.listener.notDeployed}</State>;
}
