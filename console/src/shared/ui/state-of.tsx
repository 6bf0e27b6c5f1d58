/** A state that the API tells, as `states.ts` shows it. */
import type { ReactNode } from 'react';
import { State } from './state.js';
import { known, type Kind, type states } from './states.js';

interface StateOfProps<K extends Kind> {
  readonly kind: K;
  readonly is: keyof (typeof states)[K] & string;
  /** Why, shown on hover. */
  readonly why?: string | undefined;
}

export function StateOf<K extends Kind>({ kind, is, why }: StateOfProps<K>): ReactNode {
  const [mood, word] = known(kind, is);
  return (
    <State mood={mood} why={why}>
      {word}
    </State>
  );
}
