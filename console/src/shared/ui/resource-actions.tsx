/** What one can do with any resource: see its history, edit it, delete it, with what stands in the way. */
import { Button, List, Stack } from '@mantine/core';
import { useNavigate, type LinkProps } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { Done, Schemas } from '../api/client.js';
import { Confirm } from '../forms/confirm.js';
import { useMay, type Role } from '../session.js';
import { useDialog } from './dialog.js';
import { sayDone } from './done.js';
import { LinkButton } from './links.js';
import { ResourceLink } from './resource-link.js';
import { text } from './ui.text.js';

type Target = Pick<LinkProps, 'to' | 'params'>;

interface ResourceActionsProps {
  readonly type: NonNullable<Schemas['AuditedResource']['type']>;
  readonly id: string;
  readonly name: string;
  /** Absent where it cannot be edited. */
  readonly edit?: Target;
  /** Absent where it cannot be deleted. */
  readonly remove?: Removal;
  /** Who may change it. */
  readonly role?: Role;
  /** Further buttons of those who may change it. */
  readonly children?: ReactNode;
}

interface Removal {
  readonly run: () => Promise<Done<unknown>>;
  /** What it will do, or when it is refused. */
  readonly meaning: string;
  /** Where one goes afterwards. */
  readonly list: Target;
  /** What the service says that it stands in the way. */
  readonly usedBy?: readonly Schemas['Referrer'][];
  /** Whether a revert brings it back. */
  readonly undoable?: boolean;
}

export function ResourceActions(props: ResourceActionsProps): ReactNode {
  const { type, id, name, edit, remove, role = 'operator', children } = props;
  const mayChange = useMay(role);
  return (
    <>
      <LinkButton variant="default" to="/audit" search={{ resource_type: type, resource_id: id }}>
        {text.history}
      </LinkButton>
      {mayChange && (
        <>
          {children}
          {edit !== undefined && (
            <LinkButton variant="default" {...edit}>
              {text.edit}
            </LinkButton>
          )}
          {remove !== undefined && <Remove id={id} name={name} {...remove} />}
        </>
      )}
    </>
  );
}

interface RemoveProps extends Removal {
  readonly id: string;
  readonly name: string;
}

function Remove({ id, name, run, meaning, list, usedBy = [], undoable = true }: RemoveProps): ReactNode {
  const navigate = useNavigate();
  const { opened, open, close } = useDialog('delete');
  const confirm = async (): Promise<void> => {
    const { requestId } = await run();
    sayDone(text.removed(name), undoable ? { resourceId: id, requestId } : undefined);
    await navigate(list);
  };
  return (
    <>
      <Button size="xs" color="red" variant="light" onClick={open}>
        {text.remove}
      </Button>
      <Confirm
        opened={opened}
        title={text.removeTitle(name)}
        action={text.remove}
        onConfirm={usedBy.length === 0 ? confirm : undefined}
        onClose={close}
      >
        {usedBy.length === 0 ? (
          meaning
        ) : (
          <Stack gap="xs">
            {text.inTheWay}
            <List size="sm">
              {usedBy.map((user) => (
                <List.Item key={`${user.type} ${user.id}`}>
                  <ResourceLink {...user} />
                </List.Item>
              ))}
            </List>
          </Stack>
        )}
      </Confirm>
    </>
  );
}
