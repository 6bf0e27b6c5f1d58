/**
 * Whether all is well, in five seconds: first a verdict, then the names of what needs attention, worst first; below,
 * what the fleet carries, and what was done last.
 */
import { Skeleton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { dashboardQuery } from '../shared/dashboard.js';
import { HistorySection } from '../shared/ui/history.js';
import { Page } from '../shared/ui/page.js';
import { Problem } from '../shared/ui/problem.js';
import { Figures } from './figures.js';
import { FirstSteps } from './first-steps.js';
import { Matters } from './matters.js';
import { text } from './overview.text.js';
import { Recent } from './recent.js';
import { hasCarried, runsSomething } from './verdict.js';

const shown = ['load'] as const;

export function OverviewPage(): ReactNode {
  const { data, error, refetch } = useQuery(dashboardQuery);
  if (data === undefined) {
    return (
      <Page title={text.title}>
        {error === null ? <Placeholder /> : <Problem error={error} retry={() => void refetch()} />}
      </Page>
    );
  }
  const { stats, stale } = data;
  const runs = runsSomething(stats);
  return (
    <Page title={text.title}>
      <Matters stats={stats} stale={stale} />
      {!hasCarried(stats) && <FirstSteps stats={stats} />}
      {runs && <Figures stats={stats} />}
      {runs && <HistorySection type="fleet" title={text.load} shown={shown} usual="1h" />}
      <Recent entries={stats.recent_audit} />
    </Page>
  );
}

/** As large as the page will be. */
function Placeholder(): ReactNode {
  return (
    <>
      <Skeleton h={52} />
      <Skeleton h={58} />
      <Skeleton h={250} />
      <Skeleton h={420} />
    </>
  );
}
