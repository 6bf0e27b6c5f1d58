/** Says that somebody else changed what is being edited, who it was, and how both differ. */
import { Alert, Button, Group, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { read } from '../api/read.js';
import { Changes } from '../ui/changes.js';
import { differencesOf } from '../ui/differences.js';
import { Sign } from '../ui/state.js';
import { When } from '../ui/when.js';
import { text } from './forms.text.js';

interface OvertakenProps {
  readonly resourceId: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly mine: Readonly<Record<string, unknown>>;
  readonly theirs: Readonly<Record<string, unknown>>;
  readonly onTakeTheirs: () => void;
  readonly onKeepMine: () => void;
}

export function Overtaken(props: OvertakenProps): ReactNode {
  const { resourceId, labels, mine, theirs, onTakeTheirs, onKeepMine } = props;
  const { data: last } = useQuery(read('audit', '/api/audit', { query: { resource_id: resourceId, page_size: 1 } }));
  const entry = last?.items[0];
  const differing = Object.keys(mine)
    .filter((key) => JSON.stringify(mine[key]) !== JSON.stringify(theirs[key]))
    .flatMap((key) => differencesOf(mine[key], theirs[key], labels[key] ?? key));
  return (
    <Alert color="orange" variant="light" icon={<Sign mood="warning" />} title={text.overtaken} role="alert">
      <Stack gap="sm">
        {entry !== undefined && (
          <Text size="sm">
            {text.changedBy(entry.actor.name ?? entry.actor.type)} <When at={entry.at} />. {text.notLost}
          </Text>
        )}
        <Changes named changes={differing} headings={{ before: text.yours, after: text.theirs }} />
        <Group>
          <Button size="xs" variant="default" onClick={onTakeTheirs}>
            {text.takeTheirs}
          </Button>
          <Button size="xs" variant="light" onClick={onKeepMine}>
            {text.keepMine}
          </Button>
        </Group>
      </Stack>
    </Alert>
  );
}
