/** The filters above a list: a search, and others that fold behind a button where the window is narrow. */
import { Button } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { IconAdjustments } from '@tabler/icons-react';
import type { ReactNode } from 'react';
import classes from './filter-bar.module.css';
import { text } from './ui.text.js';

interface FilterBarProps {
  readonly find: ReactNode;
  /** Whether there is anything to fold. */
  readonly folded: boolean;
  readonly children: ReactNode;
}

export function FilterBar({ find, folded, children }: FilterBarProps): ReactNode {
  const [opened, { toggle }] = useDisclosure();
  return (
    <div className={classes.bar}>
      <div className={classes.find}>{find}</div>
      {folded && (
        <Button
          variant="default"
          className={classes.fold}
          aria-expanded={opened}
          leftSection={<IconAdjustments size={14} />}
          onClick={toggle}
        >
          {text.filters}
        </Button>
      )}
      <div className={classes.others} data-filters data-opened={opened || undefined}>
        {children}
      </div>
    </div>
  );
}
