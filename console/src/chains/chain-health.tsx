/** The health of a chain, with its reasons. */
import type { ReactNode } from 'react';
import { StateOf } from '../shared/ui/state-of.js';
import type { Chain } from './chains.js';

export function HealthState({ health }: Pick<Chain, 'health'>): ReactNode {
  return <StateOf kind="health" is={health.state} why={health.reasons.join(' ') || undefined} />;
}
