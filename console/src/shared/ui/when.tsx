/** A time relative to now, with the exact time on hover. */
import type { ReactNode } from 'react';
import { formatTime, formatRelative, none } from './format.js';
import { useNow } from './now.js';

export function When({ at }: { readonly at: string | null }): ReactNode {
  const now = useNow();
  if (at === null) return none;
  return (
    <time style={{ whiteSpace: 'nowrap' }} dateTime={at} title={formatTime(at)}>
      {formatRelative(at, now)}
    </time>
  );
}
