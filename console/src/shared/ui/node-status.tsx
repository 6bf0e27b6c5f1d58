/** Whether the agent of a node is connected. */
import type { ReactNode } from 'react';
import type { Schemas } from '../api/client.js';
import { StateOf } from './state-of.js';

export function NodeStatus({ status }: Pick<Schemas['Node'], 'status'>): ReactNode {
  return <StateOf kind="node" is={status} />;
}
