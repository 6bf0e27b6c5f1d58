/** How much on a page needs attention, counted from the dashboard. Pure. */
import type { Matter, Stats } from '../shared/dashboard.js';
import type { Mood } from '../shared/ui/state.js';

export interface Wrong {
  readonly count: number;
  readonly mood: Mood;
}

/** @returns how many resources the dashboard counts for a kind of matter */
export const matters =
  (kind: Matter['kind'], mood: Mood) =>
  (stats: Stats): Wrong => ({
    count: stats.matters.filter((one) => one.kind === kind).reduce((sum, { count }) => sum + count, 0),
    mood,
  });

export const chainsWrong = ({ l4_chains: { health } }: Stats): Wrong => ({
  count: health.down + health.degraded,
  mood: health.down > 0 ? 'bad' : 'warning',
});

/** Problems, not nodes: a node that is offline and has rejected something counts twice. */
export const nodesWrong = ({ nodes: { offline, rejected } }: Stats): Wrong => ({
  count: offline + rejected,
  mood: 'bad',
});
