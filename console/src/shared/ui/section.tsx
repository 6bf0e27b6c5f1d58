/** A part of a page with a heading of its own. */
import { Group, Paper, Stack, Title } from '@mantine/core';
import type { ReactNode } from 'react';

interface SectionProps {
  readonly title: string;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}

export function Section({ title, actions, children }: SectionProps): ReactNode {
  return (
    <Paper component="section" withBorder p="md" aria-label={title}>
      <Stack gap="sm">
        <Group justify="space-between" mih={28}>
          <Title order={2}>{title}</Title>
          {actions}
        </Group>
        {children}
      </Stack>
    </Paper>
  );
}
