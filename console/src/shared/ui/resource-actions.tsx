/** What one can do with any resource: see its history, edit it, delete it, with what stands in the way. */
import { Menu, Stack } from '@mantine/core';
import { IconHistory, IconTrash } from '@tabler/icons-react';
import { useNavigate, type LinkProps } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { Done, Schemas } from '../api/client.js';
import { Confirm } from '../forms/confirm.js';
import { useMay, type Role } from '../session.js';
import { useDialog, type Dialog } from './dialog.js';
import { sayDone } from './done.js';
import { LinkButton } from './links.js';
import { More } from './more.js';
import { text } from './ui.text.js';
import { ListOfUsers } from './used-by.js';

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
  /** The main actions of those who may change it. */
  readonly children?: ReactNode;
  /** `Menu.Item`s with further actions of theirs. */
  readonly more?: ReactNode;
}

interface Removal {
  readonly run: () => Promise<Done<unknown>>;
  /** What it will do, or when it is refused. */
  readonly meaning: string;
  /** Where one goes afterwards. */
  readonly list: Target;
  /** What stands in the way, according to the service. */
  readonly usedBy?: readonly Schemas['Referrer'][];
  /** Whether a revert brings it back. */
  readonly undoable?: boolean;
}

export function ResourceActions(props: ResourceActionsProps): ReactNode {
  const { type, id, name, edit, remove, role = 'operator', more, children } = props;
  const mayChange = useMay(role);
  const navigate = useNavigate();
  const deleting = useDialog('delete');
  return (
    <>
      {mayChange && children}
      {mayChange && edit !== undefined && (
        <LinkButton variant="default" {...edit}>
          {text.edit}
        </LinkButton>
      )}
      <More>
        <Menu.Item
          leftSection={<IconHistory size={14} />}
          onClick={() => void navigate({ to: '/audit', search: { resource_type: type, resource_id: id } })}
        >
          {text.history}
        </Menu.Item>
        {mayChange && more}
        {mayChange && remove !== undefined && (
          <Menu.Item color="red" leftSection={<IconTrash size={14} />} onClick={deleting.open}>
            {text.remove}
          </Menu.Item>
        )}
      </More>
      {mayChange && remove !== undefined && <Remove id={id} name={name} dialog={deleting} {...remove} />}
    </>
  );
}

interface RemoveProps extends Removal {
  readonly id: string;
  readonly name: string;
  readonly dialog: Dialog;
}

function Remove({
  id,
  name,
  dialog: { opened, close },
  run,
  meaning,
  list,
  usedBy = [],
  undoable = true,
}: RemoveProps): ReactNode {
  const navigate = useNavigate();
  const confirm = async (): Promise<void> => {
    const { requestId } = await run();
    sayDone(text.removed(name), undoable ? { resourceId: id, requestId } : undefined);
    await navigate(list);
  };
  return (
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
          <ListOfUsers users={usedBy} />
        </Stack>
      )}
    </Confirm>
  );
}
