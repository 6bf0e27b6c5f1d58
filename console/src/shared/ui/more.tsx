/** What one can do besides the main action, behind "⋯". */
import { ActionIcon, Menu } from '@mantine/core';
import { IconDots } from '@tabler/icons-react';
import type { ReactNode } from 'react';
import { text } from './ui.text.js';

/** @param children `Menu.Item`s */
export function More({ children }: { readonly children: ReactNode }): ReactNode {
  return (
    <Menu position="bottom-end" width={200}>
      <Menu.Target>
        <ActionIcon variant="default" size={30} aria-label={text.more}>
          <IconDots size={16} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>{children}</Menu.Dropdown>
    </Menu>
  );
}
