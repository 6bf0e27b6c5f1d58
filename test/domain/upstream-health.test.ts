/**
 * `docs/contract/notices.md#status-changes-are-facts`, an upstream's status, and `docs/contract/domain.md#health-of-a-chain`, how
 * long an agent may take to name an upstream.
 */
import { describe, expect, it } from 'vitest';
import { seenUpstream, upstreamStatus, type UpstreamInMetrics } from '../../src/domain/upstream/health.js';

const atSecond = (second: number): string => new Date(Date.UTC(2026, 0, 1) + second * 1000).toISOString();
const intervalSecs = 60;

/** In seconds since an arbitrary time. */
interface Case {
  readonly metrics?: { readonly at: number; readonly current?: boolean; readonly healthy?: boolean };
  readonly edited?: number;
  readonly deployed?: number;
  readonly session?: number;
  readonly now?: number;
}
function seen({ metrics, edited = 90, deployed = 95, session = 10, now = 110 }: Case) {
  const reported: UpstreamInMetrics | undefined = metrics && {
    at: atSecond(metrics.at),
    current: metrics.current ?? true,
    healthy: metrics.healthy,
  };
  return seenUpstream({
    metrics: reported,
    sessionAt: atSecond(session),
    editedAt: atSecond(edited),
    deployedAt: atSecond(deployed),
    now: Date.parse(atSecond(now)),
    metricsIntervalSecs: intervalSecs,
  }).seen;
}

describe('an upstream, as a node that dials it sees it', () => {
  it.each([
    ['is what its metrics say', { metrics: { at: 105, healthy: true } }, 'healthy'],
    ['is what they say', { metrics: { at: 105, healthy: false } }, 'unhealthy'],
    ['is awaited before any metrics', {}, 'awaited'],
    ['is awaited while they do not name it', { metrics: { at: 105 } }, 'awaited'],
    ['is awaited for two intervals', { metrics: { at: 105 }, now: 95 + 2 * intervalSecs - 1 }, 'awaited'],
    ['is unnamed after them', { metrics: { at: 200 }, now: 95 + 2 * intervalSecs }, 'unnamed'],
    [
      'is awaited, not what was said of an earlier endpoint',
      { metrics: { at: 80, current: false, healthy: false } },
      'awaited',
    ],
    ['is awaited, not healthy as it was before', { metrics: { at: 80, current: false, healthy: true } }, 'awaited'],
    [
      'stays known over an apply that did not edit it',
      { metrics: { at: 92, current: false, healthy: true } },
      'healthy',
    ],
    [
      'stays known over a short break of the session',
      { metrics: { at: 105, healthy: true }, session: 130, now: 131 },
      'healthy',
    ],
    [
      'is awaited again after a long one',
      { metrics: { at: 105, healthy: true }, session: 5_000, now: 5_001 },
      'awaited',
    ],
    [
      'is unhealthy until its agent says otherwise',
      { metrics: { at: 105, healthy: false }, session: 5_000, now: 9_000 },
      'unhealthy',
    ],
  ] as const)('%s', (_, given, expected) => {
    expect(seen(given)).toBe(expected);
  });
});

describe('the status of an upstream', () => {
  it.each([
    [[], 'unknown'],
    [['awaited', 'unnamed'], 'unknown'],
    [['awaited', 'healthy'], 'healthy'],
    [['healthy', 'unhealthy', 'healthy'], 'unhealthy'],
  ] as const)('that nodes see as %j is %s', (seenBy, status) => {
    expect(upstreamStatus(seenBy)).toBe(status);
  });
});
