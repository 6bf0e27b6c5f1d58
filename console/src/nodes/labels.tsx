/** The labels of a node. */
import { Badge, Group } from '@mantine/core';
import type { ReactNode } from 'react';
import type { Node } from './nodes.js';

export function Labels({ labels }: Pick<Node, 'labels'>): ReactNode {
  return (
    <Group gap={4}>
      {Object.entries(labels).map(([key, value]) => (
        <Badge key={key} variant="default" tt="none" fw={400} size="sm">
          {value === '' ? key : `${key}: ${value}`}
        </Badge>
      ))}
    </Group>
  );
}
