/** The states of a node, each with its sign. */
import type { ReactNode } from 'react';
import { formatCount, none } from '../shared/ui/format.js';
import { State } from '../shared/ui/state.js';
import { StateOf } from '../shared/ui/state-of.js';
import type { Node } from './nodes.js';

export function ApplyState({ state }: Pick<Node['apply'], 'state'>): ReactNode {
  return <StateOf kind="apply" is={state} />;
}

/** How many of the intended listeners run. */
export function ListenerCount({ listeners }: Pick<Node, 'listeners'>): ReactNode {
  if (listeners === null) return none;
  const { intended, running, failed } = listeners;
  const counts = `${formatCount(running)} / ${formatCount(intended)}`;
  return failed.length > 0 ? <State mood="warning">{counts}</State> : counts;
}
