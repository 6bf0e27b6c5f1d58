/** Who is signed in, and the sign-out. */
import { Button, Menu } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { meQuery, signOut } from '../shared/session.js';
import { sayRefused } from '../shared/ui/done.js';
import { text } from './shell.text.js';

export function UserMenu(): ReactNode {
  const { data: me } = useQuery(meQuery);
  const navigate = useNavigate();
  if (me === undefined) return null;
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button variant="subtle" size="xs" aria-label={text.signedInAs(me.username, text.roles[me.role])}>
          {me.username}
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>{text.signedInAs(me.username, text.roles[me.role])}</Menu.Label>
        <Menu.Item onClick={() => void navigate({ to: '/account' })}>{text.pages.account}</Menu.Item>
        <Menu.Item onClick={() => void signOut().catch((error: unknown) => sayRefused(error))}>
          {text.signOut}
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
