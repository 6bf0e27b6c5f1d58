/** One entry: what changed, and how to undo it. First it shows what an undo would change, or why the service refuses it. */
import { Button, Drawer, Group, Stack, Text } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { ReactNode } from 'react';
import { useMay } from '../shared/session.js';
import { actorName } from '../shared/ui/actor.js';
import { Changes } from '../shared/ui/changes.js';
import { sayDone } from '../shared/ui/done.js';
import { Facts } from '../shared/ui/facts.js';
import { Problem } from '../shared/ui/problem.js';
import { ResourceLink } from '../shared/ui/resource-link.js';
import { When } from '../shared/ui/when.js';
import { revert, revertPlanQuery } from './audit.js';
import type { AuditEntry } from './audit.js';
import { text } from './audit.text.js';

interface EntryDrawerProps {
  /** Undefined: closed. */
  readonly entry: AuditEntry | undefined;
  readonly onClose: () => void;
}

export function EntryDrawer({ entry, onClose }: EntryDrawerProps): ReactNode {
  return (
    <Drawer
      opened={entry !== undefined}
      onClose={onClose}
      position="right"
      size="xl"
      title={entry?.action}
      closeButtonProps={{ 'aria-label': text.close }}
    >
      {entry !== undefined && <Entry key={entry.id} entry={entry} />}
    </Drawer>
  );
}

function Entry({ entry }: { readonly entry: AuditEntry }): ReactNode {
  return (
    <Stack>
      <Facts
        facts={{
          [text.at]: <When at={entry.at} />,
          [text.actor]: actorName(entry.actor),
          [text.resource]: <ResourceLink {...entry.resource} />,
          [text.request]: entry.request_id,
          [text.position]: entry.position,
        }}
      />
      <Changes changes={entry.changes} />
      <Undo entry={entry} />
    </Stack>
  );
}

function Undo({ entry }: { readonly entry: AuditEntry }): ReactNode {
  const mayRevert = useMay('operator');
  const [asked, setAsked] = useState(false);
  if (entry.reverted_by !== null) return <Text size="sm">{text.revertedBy}</Text>;
  if (!entry.revertible) {
    return (
      <Text size="sm" c="dimmed">
        {text.notRevertible}: {entry.not_revertible_because}
      </Text>
    );
  }
  if (!mayRevert) return null;
  if (asked) return <Plan entry={entry} />;
  return (
    <Group>
      <Button variant="default" onClick={() => setAsked(true)}>
        {text.tryRevert}
      </Button>
    </Group>
  );
}

function Plan({ entry }: { readonly entry: AuditEntry }): ReactNode {
  const { data: plan, error, refetch } = useQuery(revertPlanQuery(entry.id));
  const doing = useMutation({
    mutationFn: () => revert(entry.id),
    onSuccess: () => sayDone(text.done(entry.action)),
  });
  if (error !== null) return <Problem error={error} retry={() => void refetch()} />;
  if (plan === undefined) return null;
  return (
    <Stack gap="sm">
      <Text size="sm">
        {text.wouldChange} {text.wouldDo}
      </Text>
      <Changes changes={plan} />
      {doing.error !== null && <Problem error={doing.error} />}
      <Group>
        <Button loading={doing.isPending} onClick={() => doing.mutate()}>
          {text.revert}
        </Button>
      </Group>
    </Stack>
  );
}
