/** Whether all is well, in one line. Pure. */
import type { Stats } from '../shared/dashboard.js';
import type { Mood } from '../shared/ui/state.js';
import { known } from '../shared/ui/states.js';
import { text } from './overview.text.js';

/** @param stale agents' reports are only as last read */
export function verdictOf(stats: Stats, stale: boolean): { readonly mood: Mood; readonly words: string } {
  const [worst, ...others] = stats.matters.filter(({ severity }) => severity !== 'soon');
  if (worst !== undefined) {
    return { mood: known('matter', worst.severity)[0], words: text.attention(1 + others.length) };
  }
  if (stale) return { mood: 'idle', words: text.stale };
  if (!runsSomething(stats)) return { mood: 'idle', words: text.nothingDeployed };
  return { mood: 'good', words: text.allWell };
}

/** Whether a chain is deployed and enabled. */
export function runsSomething({ l4_chains: { health } }: Stats): boolean {
  return health.ok + health.degraded + health.down + health.unknown > 0;
}

/** Whether any traffic has flowed. */
export function hasCarried({ traffic }: Stats): boolean {
  return traffic.total_sessions > 0;
}

/** The time that the service's recent counts cover. */
const recentSeconds = 300;

export interface Rates {
  readonly toClients: number;
  readonly fromClients: number;
  readonly sessions: number;
  /** The failed share of those sessions; null if there were none. */
  readonly failed: number | null;
}

/** Bytes a second and sessions a minute, over the last five minutes. */
export function ratesOf({ traffic: { last_5m: recent } }: Stats): Rates {
  return {
    toClients: recent.bytes_out / recentSeconds,
    fromClients: recent.bytes_in / recentSeconds,
    sessions: (recent.total_sessions * 60) / recentSeconds,
    failed: recent.total_sessions === 0 ? null : recent.error_sessions / recent.total_sessions,
  };
}
