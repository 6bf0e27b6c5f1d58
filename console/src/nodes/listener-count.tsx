/** How many of the intended listeners of a node run. */
import type { ReactNode } from 'react';
import { formatCount, none } from '../shared/ui/format.js';
import { State } from '../shared/ui/state.js';
import type { Node } from './nodes.js';

export function ListenerCount({ listeners }: Pick<Node, 'listeners'>): ReactNode {
  if (listeners === null) return none;
  const { intended, running, failed } = listeners;
  const counts = `${formatCount(running)} / ${formatCount(intended)}`;
  return failed.length > 0 ? <State mood="warning">{counts}</State> : counts;
}
