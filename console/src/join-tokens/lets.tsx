/** Whether a join token still lets machines in. */
import type { ReactNode } from 'react';
import { StateOf } from '../shared/ui/state-of.js';
import type { JoinToken } from './join-tokens.js';
import { tokenState } from './machine-state.js';

export function Lets({ token }: { readonly token: JoinToken }): ReactNode {
  return <StateOf kind="joinToken" is={tokenState(token)} />;
}
