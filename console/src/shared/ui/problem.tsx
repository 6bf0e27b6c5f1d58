/** What the service refused or could not do, in its own sentence, with the request id under which its log has more. */
import { Alert, Button, Group, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import type { Refusal } from '../api/client.js';
import { sentenceOf } from './sentence.js';
import { Sign } from './state.js';
import { text } from './ui.text.js';

interface ProblemProps {
  readonly error: Refusal;
  /** Absent where trying again makes no sense. */
  readonly retry?: () => void;
}

export function Problem({ error, retry }: ProblemProps): ReactNode {
  return (
    <Alert color="red" variant="light" icon={<Sign mood="bad" />} role="alert">
      <Group justify="space-between">
        <Text size="sm">{sentenceOf(error)}</Text>
        {retry !== undefined && (
          <Button size="xs" variant="default" onClick={retry}>
            {text.tryAgain}
          </Button>
        )}
      </Group>
    </Alert>
  );
}
