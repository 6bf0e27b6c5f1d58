/** Whether a resource is enabled. */
import type { ReactNode } from 'react';
import { State } from './state.js';
import { text } from './ui.text.js';

export function EnabledState({ enabled }: { readonly enabled: boolean }): ReactNode {
  return <State mood={enabled ? 'good' : 'idle'}>{enabled ? text.enabled : text.disabled}</State>;
}
