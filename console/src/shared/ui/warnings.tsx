/** What the service warns of, usually agents that cannot run what was asked of them. Shows nothing without warnings. */
import { Alert, List } from '@mantine/core';
import type { ReactNode } from 'react';
import { Sign } from './state.js';
import { text } from './ui.text.js';

interface WarningsProps {
  readonly sentences: readonly string[];
  /** Null for none. */
  readonly title?: string | null;
}

export function Warnings({ sentences, title = text.warnings }: WarningsProps): ReactNode {
  if (sentences.length === 0) return null;
  return (
    <Alert color="orange" variant="light" icon={<Sign mood="warning" />} title={title}>
      <List size="sm">
        {sentences.map((sentence) => (
          <List.Item key={sentence}>{sentence}</List.Item>
        ))}
      </List>
    </Alert>
  );
}
