/** In the place of a page that comes. */
import { Skeleton, Stack } from '@mantine/core';
import type { ReactNode } from 'react';

export function PageSkeleton(): ReactNode {
  return (
    <Stack>
      <Skeleton h={30} w={220} mt={3} />
      <Skeleton h={120} />
      <Skeleton h={260} />
    </Stack>
  );
}
