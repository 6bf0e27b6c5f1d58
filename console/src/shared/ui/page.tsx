/** The frame of every page: its heading with state, address and the main action, and the title of the tab. */
import { Title } from '@mantine/core';
import type { ReactNode } from 'react';
import classes from './page.module.css';

interface PageProps {
  readonly title: string;
  /** Beside the title, such as a state. */
  readonly aside?: ReactNode;
  /** Buttons: the main action, and a `More` for the rest. */
  readonly actions?: ReactNode;
  /** What it is, in a line below the title: an address to copy, a path. */
  readonly line?: ReactNode;
  readonly children: ReactNode;
}

export function Page({ title, aside, actions, line, children }: PageProps): ReactNode {
  return (
    <div className={classes.page}>
      <title>{`${title} · Gateway control`}</title>
      <header className={classes.heading}>
        <div className={classes.name}>
          <Title order={1}>{title}</Title>
          {aside}
        </div>
        {actions !== undefined && <div className={classes.actions}>{actions}</div>}
        {line !== undefined && <div className={classes.line}>{line}</div>}
      </header>
      {children}
    </div>
  );
}
