/**
 * A node whose session stays while nothing of it arrives for long, as when its instance is frozen: it is back when it is seen
 * again, not when the session opened. `docs/contract/notices.md#status-changes-are-facts`.
 */
import { expect, test } from 'vitest';
import { dueFact, type Observed } from '../../src/domain/status/decide.js';
import { afterFact, type LastFact } from '../../src/domain/status/ledger.js';
import { timestamp } from '../../src/kernel/clock.js';
import { limits } from '../../src/kernel/limits.js';
import { createObserver, type ObserverDeps } from '../../src/status/observer.js';
import { createManualClock } from '../support/manual-clock.js';

const resource = { type: 'node', id: 'edge', name: 'edge-1' } as const;
const [openedAt, silentAt, backAt] = [1_000, 2_000, 60_000].map((ms) => Date.UTC(2026, 0, 1) + ms) as [
  number,
  number,
  number,
];
const incident = { id: 'one', began_at: timestamp(silentAt), status: 'offline' };
const offline: LastFact = afterFact(
  undefined,
  { resource, was: 'online', status: 'offline', since: timestamp(silentAt), reason: null, incident },
  timestamp(backAt - 1),
);

test('it is observed to be online since it is seen again, and has to stand', () => {
  const deps = {
    fleet: { node: () => ({ name: 'edge-1' }) },
    agentFacts: { of: () => ({ session: { at: timestamp(openedAt) }, connected_once: true }) },
    reports: { presence: () => ({ session_id: 'the same' }), vitals: () => ({ last_seen_at: timestamp(backAt) }) },
    counts: {},
    ledger: { last: () => offline },
    clock: createManualClock(backAt),
  } as unknown as ObserverDeps;
  expect(createObserver(deps).observe(resource, 0)).toMatchObject({
    status: 'online',
    since: backAt,
    dueAt: backAt + limits.status.standsMs,
  });
});

test('what another instance told to have begun later ended when it is decided', () => {
  const observed: Observed = { resource, status: 'online', reason: null, since: openedAt, dueAt: 0 };
  const due = dueFact(offline, observed, backAt + limits.status.perResource.gapMs, 'two');
  expect(due).toMatchObject({ kind: 'now', fact: { since: timestamp(backAt + limits.status.perResource.gapMs) } });
});
