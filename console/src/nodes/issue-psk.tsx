/**
 * A new PSK for a node: guided on a page of its own, or at once, which asks first because it ends the session of the
 * old one.
 */
import { Menu } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { Confirm } from '../shared/forms/confirm.js';
import { useDialog } from '../shared/ui/dialog.js';
import { issuePsk, type Node } from './nodes.js';
import { text } from './nodes.text.js';

const dialog = 'psk';

/** The way to the guided rotation, and the new PSK at once. */
export function PskItems({ id }: Pick<Node, 'id'>): ReactNode {
  const { open } = useDialog(dialog);
  return (
    <>
      <Menu.Item renderRoot={(props) => <Link {...props} to="/nodes/$id/psk" params={{ id }} />}>
        {text.rotate}
      </Menu.Item>
      <Menu.Item onClick={open}>{text.issue}</Menu.Item>
    </>
  );
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
