/** A new PSK for a node, which ends the session of the old one: it asks first. */
import { Menu } from '@mantine/core';
import type { ReactNode } from 'react';
import { Confirm } from '../shared/forms/confirm.js';
import { useDialog } from '../shared/ui/dialog.js';
import { issuePsk, type Node } from './nodes.js';
import { text } from './nodes.text.js';

const dialog = 'psk';

export function IssuePskItem(): ReactNode {
  const { open } = useDialog(dialog);
  return <Menu.Item onClick={open}>{text.issue}</Menu.Item>;
}

interface IssuePskProps {
  readonly node: Node;
  readonly onIssued: (psk: string | null) => void;
}

export function IssuePsk({ node: { id, name }, onIssued }: IssuePskProps): ReactNode {
  const { opened, close } = useDialog(dialog);
  return (
    <Confirm
      opened={opened}
      title={text.issueTitle(name)}
      action={text.issue}
      onConfirm={async () => onIssued((await issuePsk(id)).control_psk)}
      onClose={close}
    >
      {text.issueMeaning}
    </Confirm>
  );
}
