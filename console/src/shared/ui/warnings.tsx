/** What the service warns of: agents that cannot run what was asked of them. Shows nothing without warnings. */
import { Alert, List } from '@mantine/core';
import type { ReactNode } from 'react';
import { Sign } from './state.js';
import { text } from './ui.text.js';

export function Warnings({ sentences }: { readonly sentences: readonly string[] }): ReactNode {
  if (sentences.length === 0) return null;
  return (
    <Alert color="orange" variant="light" icon={<Sign mood="warning" />} title={text.warnings}>
      <List size="sm">
        {sentences.map((sentence) => (
          <List.Item key={sentence}>{sentence}</List.Item>
        ))}
      </List>
    </Alert>
  );
}
