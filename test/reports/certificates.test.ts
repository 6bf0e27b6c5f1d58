/** When a certificate has reached another step of its remaining validity (`docs/contract/automation.md#event-feed`, `status`). */
import { expect, test } from 'vitest';
import { createCertificateTimes } from '../../src/reports/certificates.js';
import type { StatusDeps } from '../../src/reports/status.js';
import { createManualClock } from '../support/manual-clock.js';

const day = 24 * 60 * 60_000;

test('a step is noticed when it is due, also after the clock was ahead for a while', () => {
  const clock = createManualClock();
  const credential = { id: 'c', certificate: { not_after: new Date(clock.now() + 40 * day).toISOString() } };
  const fleet = { credentials: () => [credential], resources: { credential: { get: () => credential } } };
  const times = createCertificateTimes({ fleet, clock } as unknown as Pick<StatusDeps, 'fleet' | 'clock'>);
  const changed = [{ type: 'credential', id: 'c' }];
  expect([times.changes(), times.changes()]).toEqual([changed, []]);
  clock.jump(400 * day);
  expect([times.changes(), times.changes()]).toEqual([changed, []]);
  clock.jump(-400 * day);
  expect([times.changes(), times.changes()]).toEqual([changed, []]);
  clock.advance(11 * day);
  expect([times.changes(), times.changes()]).toEqual([changed, []]);
});
