/** A list of nodes that one adds to by name. */
import { ActionIcon, Group, Stack } from '@mantine/core';
import type { ReactNode } from 'react';
import { ResourceSelect } from '../shared/forms/resource-select.js';
import { text } from './webhooks.text.js';

interface ChosenNodesProps {
  readonly value?: readonly string[];
  readonly onChange: (ids: readonly string[]) => void;
  readonly error?: ReactNode;
}

export function ChosenNodes({ value = [], onChange, error }: ChosenNodesProps): ReactNode {
  const without = (id: string): readonly string[] => value.filter((one) => one !== id);
  return (
    <Stack gap="xs">
      {[...value, ''].map((id, index) => (
        <Group key={id} gap="xs" align="flex-end" wrap="nowrap">
          <div style={{ flex: 1 }}>
            <ResourceSelect
              kind={{ type: 'node' }}
              label={index === 0 ? `${text.filters}: ${text.nodes}` : undefined}
              ariaLabel={text.addNode}
              placeholder={text.addNode}
              value={id}
              except={value}
              onChange={(chosen) => onChange(chosen === '' ? without(id) : [...without(id), chosen])}
              error={index === value.length ? error : undefined}
            />
          </div>
          {id !== '' && (
            <ActionIcon variant="default" size={36} aria-label={text.removeNode} onClick={() => onChange(without(id))}>
              ×
            </ActionIcon>
          )}
        </Group>
      ))}
    </Stack>
  );
}
