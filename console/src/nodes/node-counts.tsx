/** How many nodes there are by state, as filters of their list. */
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import type { SearchOf } from '../shared/api/crud.js';
import { dashboardQuery } from '../shared/dashboard.js';
import { CountChips } from '../shared/ui/count-chips.js';
import type { FiltersProps } from '../shared/ui/list-page.js';
import { known } from '../shared/ui/states.js';
import { text } from './nodes.text.js';

const chips = [
  { field: 'status', kind: 'node', state: 'online' },
  { field: 'status', kind: 'node', state: 'offline' },
  { field: 'status', kind: 'node', state: 'pending' },
  { field: 'apply', kind: 'apply', state: 'rejected' },
] as const;

const all = { status: undefined, apply: undefined };

export function NodeCounts({ search, onFilter }: FiltersProps<SearchOf<'node'>>): ReactNode {
  const nodes = useQuery(dashboardQuery).data?.stats.nodes;
  return (
    <CountChips
      label={text.byState}
      chips={[
        {
          word: text.all,
          count: nodes?.total,
          chosen: search.status === undefined && search.apply === undefined,
          onChoose: () => onFilter(all),
        },
        ...chips.map(({ field, kind, state }) => {
          const [mood, word] = known(kind, state);
          const chosen = search[field] === state;
          const onChoose = (): void => onFilter({ ...all, ...(!chosen && { [field]: state }) });
          return { word, mood, count: nodes?.[state], chosen, onChoose };
        }),
      ]}
    />
  );
}
