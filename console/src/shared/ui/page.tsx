/** The frame of every page: its heading, what one can do there, and the title of the tab. */
import { Group, Stack, Title } from '@mantine/core';
import type { ReactNode } from 'react';

interface PageProps {
  readonly title: string;
  /** Beside the title, such as a state. */
  readonly aside?: ReactNode;
  /** Buttons. */
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}

export function Page({ title, aside, actions, children }: PageProps): ReactNode {
  return (
    <Stack gap="md">
      <title>{`${title} · Gateway control`}</title>
      <Group justify="space-between" gap="sm" mih={36}>
        <Group gap="md">
          <Title order={1}>{title}</Title>
          {aside}
        </Group>
        <Group gap="xs">{actions}</Group>
      </Group>
      {children}
    </Stack>
  );
}
