/** The nodes of waves by state: only what is there, what is wrong in its colour. */
import { Group } from '@mantine/core';
import type { ReactNode } from 'react';
import { formatCount } from '../shared/ui/format.js';
import { State, type Mood } from '../shared/ui/state.js';
import type { Rollout } from './rollouts.js';
import { text } from './rollouts.text.js';
import { countNames } from './steps.js';

export const nodeMoods: Readonly<Record<(typeof countNames)[number], Mood>> = {
  applied: 'good',
  pushed: 'busy',
  held: 'idle',
  rejected: 'bad',
  failed: 'bad',
  lost: 'bad',
  offline: 'warning',
};

export function Counts({ waves }: { readonly waves: Rollout['waves'] }): ReactNode {
  const shown = countNames
    .map((name) => ({ name, count: waves.reduce((sum, { counts }) => sum + counts[name], 0) }))
    .filter(({ count }) => count > 0);
  return (
    <Group gap="sm" component="span">
      {shown.map(({ name, count }) => (
        <State key={name} mood={nodeMoods[name]}>
          {formatCount(count)} {text.counts[name]}
        </State>
      ))}
    </Group>
  );
}
