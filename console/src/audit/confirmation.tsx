/** For a change that is undone unless a person confirms it: the deadline or the outcome, and the confirmation. */
import { Alert, Button, Group, Stack, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { useAttempt } from '../shared/forms/attempt.js';
import { queryClient } from '../shared/live/queries.js';
import { useMay } from '../shared/session.js';
import { actorName } from '../shared/ui/actor.js';
import { sayDone } from '../shared/ui/done.js';
import { Problem } from '../shared/ui/problem.js';
import { When } from '../shared/ui/when.js';
import { confirmChange, type AuditEntry } from './audit.js';
import { text } from './audit.text.js';

export function Confirmation({ entry }: { readonly entry: AuditEntry }): ReactNode {
  const { confirm, reverted_by } = entry;
  if (confirm === null) return null;
  const { until, confirmed_at, confirmed_by, error } = confirm;
  if (error !== null) return <Alert color="red">{text.notUndone(error)}</Alert>;
  if (confirmed_at !== null) {
    return (
      <Text size="sm">
        {text.confirmed(confirmed_by === null ? '' : actorName(confirmed_by))} <When at={confirmed_at} />
      </Text>
    );
  }
  // Undone, by itself or by a person: another line says so.
  if (reverted_by !== null) return null;
  return (
    <Alert color="yellow" title={text.waits}>
      <Stack gap="sm">
        <Text size="sm">
          {text.until} <When at={until} />
        </Text>
        <ConfirmButton entry={entry} />
      </Stack>
    </Alert>
  );
}

function ConfirmButton({ entry }: { readonly entry: AuditEntry }): ReactNode {
  const mayConfirm = useMay('operator');
  const { working, refused, attempt } = useAttempt();
  if (!mayConfirm) return null;
  const confirm = (): Promise<void> =>
    attempt(async () => {
      await confirmChange(entry.id);
      sayDone(text.confirmDone);
      await queryClient.invalidateQueries({ queryKey: ['audit'] });
    });
  return (
    <>
      {refused !== undefined && <Problem error={refused} />}
      <Group>
        <Button loading={working} onClick={() => void confirm()}>
          {text.confirm}
        </Button>
      </Group>
    </>
  );
}
