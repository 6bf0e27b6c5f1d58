/** The verdict of the overview, and its rates. */
import { describe, expect, test } from 'vitest';
import { hasCarried, ratesOf, verdictOf } from '../../console/src/overview/verdict.js';
import type { Stats } from '../../console/src/shared/dashboard.js';

type Severity = Stats['matters'][number]['severity'];

function stats(severities: readonly Severity[], working = 1): Stats {
  const recent = { bytes_in: 300, bytes_out: 3_000, total_sessions: 10, error_sessions: 1 };
  return {
    matters: severities.map((severity) => ({ severity })),
    l4_chains: { health: { ok: working, degraded: 0, down: 0, unknown: 0 } },
    traffic: { total_sessions: 0, last_5m: recent },
  } as unknown as Stats;
}

describe('the verdict', () => {
  test.each([
    ['nothing needs somebody', stats([]), false, 'good', 'All is well'],
    ['something will soon', stats(['soon']), false, 'good', 'All is well'],
    ['a chain is down', stats(['down', 'degraded', 'soon']), false, 'bad', '2 things need attention'],
    ['a node is offline', stats(['degraded']), false, 'warning', '1 thing needs attention'],
    ['nothing is deployed', stats([], 0), false, 'idle', 'No chain is deployed yet'],
    ['reports cannot be read', stats([]), true, 'idle', expect.stringContaining('last known') as string],
    ['a chain is down by old reports', stats(['down']), true, 'bad', '1 thing needs attention'],
  ] as const)('given that %s', (_name, given, stale, mood, words) => {
    expect(verdictOf(given, stale)).toEqual({ mood, words });
  });
});

test('given the traffic of five minutes, rates are bytes a second, sessions a minute, and the share that failed', () => {
  expect(ratesOf(stats([]))).toEqual({ toClients: 10, fromClients: 1, sessions: 2, failed: 0.1 });
});

test('given no session, nothing has been carried, and no share has failed', () => {
  const { traffic } = stats([]);
  const none = { ...traffic.last_5m, total_sessions: 0, error_sessions: 0 };
  const quiet = { ...stats([]), traffic: { ...traffic, last_5m: none } };
  expect(hasCarried(quiet)).toBe(false);
  expect(ratesOf(quiet).failed).toBeNull();
});
