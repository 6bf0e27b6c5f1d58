/** Whether the agent of a node is connected. */
import type { ReactNode } from 'react';
import type { Schemas } from '../api/client.js';
import { State, type Mood } from './state.js';
import { text } from './ui.text.js';

type Status = Schemas['Node']['status'];

const moods: Readonly<Record<Status, Mood>> = { online: 'good', offline: 'bad', pending: 'idle' };

export function NodeStatus({ status }: { readonly status: Status }): ReactNode {
  return <State mood={moods[status]}>{text.nodeStates[status]}</State>;
}
