/** Whether a join token still lets machines in. */
import type { ReactNode } from 'react';
import { State } from '../shared/ui/state.js';
import type { JoinToken } from './join-tokens.js';
import { text } from './join-tokens.text.js';
import { tokenState } from './machine-state.js';

export function Lets({ token }: { readonly token: JoinToken }): ReactNode {
  const state = tokenState(token);
  return <State mood={state === 'open' ? 'good' : 'idle'}>{text.states[state]}</State>;
}
