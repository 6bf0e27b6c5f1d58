/** How many nodes there are by state, as filters of their list. */
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import type { SearchOf } from '../shared/api/crud.js';
import { dashboardQuery } from '../shared/dashboard.js';
import { CountChips, type CountChip } from '../shared/ui/count-chips.js';
import type { FiltersProps } from '../shared/ui/list-page.js';
import { known } from '../shared/ui/states.js';
import { text } from './nodes.text.js';

type Search = Pick<SearchOf<'node'>, 'status' | 'apply'>;

export function NodeCounts({ search, onFilter }: FiltersProps<SearchOf<'node'>>): ReactNode {
  const nodes = useQuery(dashboardQuery).data?.stats.nodes;
  const chip = (
    kind: 'node' | 'apply',
    state: 'online' | 'offline' | 'pending' | 'rejected',
    filter: Search,
  ): CountChip => {
    const [mood, word] = known(kind, state);
    const chosen = kind === 'node' ? search.status === state : search.apply === state;
    const none: Search = { status: undefined, apply: undefined };
    return {
      word,
      mood,
      count: nodes?.[state],
      chosen,
      onChoose: () => onFilter(chosen ? none : { ...none, ...filter }),
    };
  };
  const all: CountChip = {
    word: text.all,
    count: nodes?.total,
    chosen: search.status === undefined && search.apply === undefined,
    onChoose: () => onFilter({ status: undefined, apply: undefined }),
  };
  return (
    <CountChips
      label={text.byState}
      chips={[
        all,
        chip('node', 'online', { status: 'online' }),
        chip('node', 'offline', { status: 'offline' }),
        chip('node', 'pending', { status: 'pending' }),
        chip('apply', 'rejected', { apply: 'rejected' }),
      ]}
    />
  );
}
