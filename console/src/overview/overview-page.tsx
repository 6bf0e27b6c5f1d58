/**
 * Whether all is well, in five seconds: first a verdict, then by name what needs somebody, worst first; below it figures, and
 * what was done last.
 */
import { SimpleGrid, Skeleton, Stack } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Page } from '../shared/ui/page.js';
import { Problem } from '../shared/ui/problem.js';
import { Attention } from './attention.js';
import { FirstSteps, hasCarried } from './first-steps.js';
import { Figures } from './figures.js';
import { dashboardQuery } from '../shared/dashboard.js';
import { text } from './overview.text.js';
import { Recent } from './recent.js';

export function OverviewPage(): ReactNode {
  const { data, error, refetch } = useQuery(dashboardQuery);
  const stats = data?.stats;
  return (
    <Page title={text.title}>
      {stats === undefined ? (
        error === null ? (
          <Placeholder />
        ) : (
          <Problem error={error} retry={() => void refetch()} />
        )
      ) : (
        <Stack>
          <Attention stats={stats} stale={data?.stale ?? false} />
          {!hasCarried(stats) && <FirstSteps stats={stats} />}
          <Figures stats={stats} />
          <Recent entries={stats.recent_audit} />
        </Stack>
      )}
    </Page>
  );
}

/** As large as what comes. */
function Placeholder(): ReactNode {
  return (
    <Stack>
      <Skeleton h={66} />
      <SimpleGrid cols={{ base: 2, sm: 4 }}>
        {Array.from({ length: 8 }, (_, index) => (
          <Skeleton key={index} h={84} />
        ))}
      </SimpleGrid>
    </Stack>
  );
}
