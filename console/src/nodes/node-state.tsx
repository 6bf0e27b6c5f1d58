/** The states of a node, each with its sign. */
import type { ReactNode } from 'react';
import { formatCount, none } from '../shared/ui/format.js';
import { State, type Mood } from '../shared/ui/state.js';
import type { Node } from './nodes.js';
import { text } from './nodes.text.js';

const applyMoods: Readonly<Record<Node['apply']['state'], Mood>> = {
  applied: 'good',
  pushed: 'busy',
  rejected: 'bad',
  none: 'idle',
};

export function ApplyState({ state }: Pick<Node['apply'], 'state'>): ReactNode {
  return <State mood={applyMoods[state]}>{text.applyStates[state]}</State>;
}

/** How many listeners run of those that should. */
export function ListenerCount({ listeners }: Pick<Node, 'listeners'>): ReactNode {
  if (listeners === null) return none;
  const { intended, running, failed } = listeners;
  const counts = `${formatCount(running)} / ${formatCount(intended)}`;
  return failed.length > 0 ? <State mood="warning">{counts}</State> : counts;
}
