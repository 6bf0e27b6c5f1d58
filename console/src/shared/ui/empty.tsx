/** What to do where there is nothing yet. */
import { Stack, Text } from '@mantine/core';
import type { ReactNode } from 'react';

interface EmptyProps {
  /** What is not there. */
  readonly title: string;
  /** What to do. */
  readonly children: ReactNode;
}

export function Empty({ title, children }: EmptyProps): ReactNode {
  return (
    <Stack align="center" gap="xs" py="xl" px="md" ta="center">
      <Text fw={600}>{title}</Text>
      <Text size="sm" c="dimmed" component="div" maw={480}>
        {children}
      </Text>
    </Stack>
  );
}
