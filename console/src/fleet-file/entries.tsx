/** Audit entries by name, as links. */
import { List } from '@mantine/core';
import type { ReactNode } from 'react';
import type { Schemas } from '../shared/api/client.js';
import { TextLink } from '../shared/ui/links.js';

type Entry = Pick<Schemas['AuditEntry'], 'id' | 'action' | 'resource'>;

export function Entries({ entries }: { readonly entries: readonly Entry[] }): ReactNode {
  return (
    <List size="sm">
      {entries.map(({ id, action, resource }) => (
        <List.Item key={id}>
          <TextLink to="/audit" search={{ entry: id }}>
            {action} {resource.name}
          </TextLink>
        </List.Item>
      ))}
    </List>
  );
}
