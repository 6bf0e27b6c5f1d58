/** The labels of a node. */
import { Badge, Group } from '@mantine/core';
import type { ReactNode } from 'react';

export function Labels({ labels }: { readonly labels: Readonly<Record<string, string>> }): ReactNode {
  return (
    <Group gap={4}>
      {Object.entries(labels).map(([key, value]) => (
        <Badge key={key} variant="default" tt="none" fw={400} size="sm" flex="none" maw="100%">
          {value === '' ? key : `${key}: ${value}`}
        </Badge>
      ))}
    </Group>
  );
}
