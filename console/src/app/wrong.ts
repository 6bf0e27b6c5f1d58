/** What of a page needs somebody, counted from the dashboard. Pure. */
import type { Matter, Stats } from '../shared/dashboard.js';
import type { Mood } from '../shared/ui/state.js';

export interface Wrong {
  readonly count: number;
  readonly mood: Mood;
}

/** @returns how many resources the dashboard names for this */
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

/** Things that are wrong: a node that is offline and has rejected something has two. */
export const nodesWrong = ({ nodes: { offline, rejected } }: Stats): Wrong => ({
  count: offline + rejected,
  mood: 'bad',
});
