/** Stands for a page, or a part of one, that is loading. */
import { Skeleton, Stack } from '@mantine/core';
import type { ReactNode } from 'react';
import type { Refusal } from '../api/client.js';
import { Problem } from './problem.js';

export function PageSkeleton(): ReactNode {
  return (
    <Stack>
      <Skeleton h={30} w={220} mt={3} />
      <Skeleton h={120} />
      <Skeleton h={260} />
    </Stack>
  );
}

interface NotYetProps {
  /** Why the answer has not come. */
  readonly error: Refusal | null;
  /** Absent where trying again makes no sense. */
  readonly refetch?: (() => unknown) | undefined;
  /** Of a part of a page, in pixels; absent for a page. */
  readonly height?: number;
}

/** Stands for what is loading: a skeleton, or why it does not come. */
export function NotYet({ error, refetch, height }: NotYetProps): ReactNode {
  if (error === null) return height === undefined ? <PageSkeleton /> : <Skeleton h={height} />;
  return <Problem error={error} {...(refetch && { retry: () => void refetch() })} />;
}
