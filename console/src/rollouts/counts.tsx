/** The nodes of waves by state: only states that have nodes, bad ones in their colour. */
import { Group } from '@mantine/core';
import type { ReactNode } from 'react';
import { formatCount } from '../shared/ui/format.js';
import { State } from '../shared/ui/state.js';
import { known } from '../shared/ui/states.js';
import type { Rollout } from './rollouts.js';
import { countNames } from './steps.js';

export function Counts({ waves }: { readonly waves: Rollout['waves'] }): ReactNode {
  const shown = countNames
    .map((name) => ({ name, count: waves.reduce((sum, { counts }) => sum + counts[name], 0) }))
    .filter(({ count }) => count > 0)
    .map(({ name, count }) => ({ name, count, state: known('rolloutNode', name) }));
  return (
    <Group gap="sm" component="span">
      {shown.map(({ name, count, state: [mood, word] }) => (
        <State key={name} mood={mood}>
          {formatCount(count)} {word}
        </State>
      ))}
    </Group>
  );
}
