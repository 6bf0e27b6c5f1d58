/** Stands for a page that failed to load or to render; the rest of the console stays. */
import { Button, Code, Stack } from '@mantine/core';
import type { ErrorComponentProps } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { Empty } from '../shared/ui/empty.js';
import { Page } from '../shared/ui/page.js';
import { text } from './shell.text.js';

export function Failed({ error }: ErrorComponentProps): ReactNode {
  return (
    <Page title={text.failed}>
      <Empty title={text.failedHint}>
        <Stack align="center" gap="sm">
          <Code>{error instanceof Error ? error.message : String(error)}</Code>
          <Button size="xs" onClick={() => location.reload()}>
            {text.loadAgain}
          </Button>
        </Stack>
      </Empty>
    </Page>
  );
}
