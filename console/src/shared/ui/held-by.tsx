/** Says that a rollout holds a node back, and leads to it. */
import { Alert } from '@mantine/core';
import type { ReactNode } from 'react';
import { TextLink } from './links.js';
import { Sign } from './state.js';
import { text } from './ui.text.js';

/** @param rolloutId null: nothing is shown */
export function HeldBy({ rolloutId }: { readonly rolloutId: string | null }): ReactNode {
  if (rolloutId === null) return null;
  return (
    <Alert color="orange" variant="light" icon={<Sign mood="busy" />}>
      {text.heldBy}{' '}
      <TextLink to="/rollouts/$id" params={{ id: rolloutId }}>
        {text.toRollout}
      </TextLink>
    </Alert>
  );
}
