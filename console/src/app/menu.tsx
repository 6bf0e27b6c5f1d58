/** The navigation: four groups of pages, each entry with a count of what is wrong there. */
import { VisuallyHidden } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { dashboardQuery, type Stats } from '../shared/dashboard.js';
import { useMay } from '../shared/session.js';
import { formatCount } from '../shared/ui/format.js';
import classes from './menu.module.css';
import { groups, type Entry } from './navigation.js';
import { text } from './shell.text.js';

export function Menu(): ReactNode {
  const stats = useQuery(dashboardQuery).data?.stats;
  return groups.map(({ label, pages }) => (
    <section key={label} className={classes.group} aria-label={label}>
      <div className={classes.label} aria-hidden="true">
        {label}
      </div>
      {pages.map((entry) => (
        <One key={entry.to} entry={entry} stats={stats} />
      ))}
    </section>
  ));
}

function One({ entry, stats }: { readonly entry: Entry; readonly stats: Stats | undefined }): ReactNode {
  const { to, label, role = 'viewer', icon: Icon, wrong } = entry;
  if (!useMay(role)) return null;
  const { count, mood } = (stats && wrong?.(stats)) ?? { count: 0, mood: 'idle' };
  return (
    <Link to={to} activeOptions={{ exact: to === '/' }} className={classes.entry}>
      <Icon size={17} stroke={1.7} aria-hidden="true" />
      <span className={classes.name}>{label}</span>
      {count > 0 && (
        <span className={classes.count} data-mood={mood} title={text.wrong(count)}>
          <span aria-hidden="true">{formatCount(count)}</span>
          <VisuallyHidden>{text.wrong(count)}</VisuallyHidden>
        </span>
      )}
    </Link>
  );
}
