/** What to do where there is nothing yet, or nothing that the filters leave. */
import { Stack, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { TextLink } from './links.js';
import { text } from './ui.text.js';

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

/** In place of the rows of a list. @param filtered whether the list shows only some of what there is */
export function NoRows({ filtered, ...empty }: EmptyProps & { readonly filtered: boolean }): ReactNode {
  if (!filtered) return <Empty {...empty} />;
  return (
    <Empty title={text.noMatches}>
      <TextLink to="." search={{}}>
        {text.showAll}
      </TextLink>
    </Empty>
  );
}
