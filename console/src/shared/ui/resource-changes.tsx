/** Changes of several resources, each resource with its own. */
import { Stack, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { Changes } from './changes.js';
import type { Change } from './differences.js';
import { ResourceLink, typeNames } from './resource-link.js';

export interface ResourceChange extends Change {
  /** Absent if all changes are of one resource that is named beside them. */
  readonly resource?: { readonly type: string; readonly id: string | null; readonly name: string | null };
}

interface ResourceChangesProps {
  readonly changes: readonly ResourceChange[];
  /** The words for a field; its path in the API when absent. */
  readonly words?: (path: string) => string;
}

export function ResourceChanges({ changes, words }: ResourceChangesProps): ReactNode {
  const shown = { named: true, ...(words && { words }) } as const;
  const groups = Map.groupBy(changes, ({ resource }) => resource && `${resource.type} ${resource.id ?? resource.name}`);
  if (groups.size <= 1) return <Changes changes={changes} {...shown} />;
  return (
    <Stack gap="md">
      {[...groups].map(([key, group]) => (
        <div key={key ?? ''}>
          {group[0]?.resource !== undefined && (
            <Text size="sm" fw={600} pb={4}>
              {typeNames[group[0].resource.type]} <ResourceLink {...group[0].resource} />
            </Text>
          )}
          <Changes changes={group} {...shown} />
        </div>
      ))}
    </Stack>
  );
}
