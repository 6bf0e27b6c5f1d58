/** Idempotency keys of the last 24 hours, folded from the log (`docs/contract/rest.md#consistency`). */
import { describe, expect, it } from 'vitest';
import { acceptedKey } from '../../src/domain/aggregate/idempotency.js';
import { emptyFleet } from '../../src/domain/fleet/fleet.js';
import type { Fleet } from '../../src/domain/fleet/fleet.js';
import * as f from '../support/fleet.js';

const hour = 3_600_000;
const start = Date.UTC(2025, 0, 1, 12, 30);

function use(fleet: Fleet, name: string, key: string, hours: number): void {
  const performed = f.perform(fleet, f.createNode(name), {
    at: start + hours * hour,
    idempotency: { key_hash: key, body_hash: `body of ${name}` },
  });
  expect(performed.kind).toBe('written');
}

const accepted = (fleet: Fleet, key: string, hours: number) =>
  acceptedKey(fleet.idempotency, key, start + hours * hour);

describe('an idempotency key', () => {
  it('is recognised for 24 hours, with its command', () => {
    const fleet = emptyFleet();
    use(fleet, 'a', 'key', 0);
    expect(accepted(fleet, 'key', 23.99)).toMatchObject({
      resource_id: f.nodeId('a'),
      body_hash: 'body of a',
      revision: 0,
    });
    expect(accepted(fleet, 'key', 24)).toBeUndefined();
    expect(accepted(fleet, 'other', 0)).toBeUndefined();
  });

  it('used again after it expired is recognised for another 24 hours', () => {
    const fleet = emptyFleet();
    use(fleet, 'a', 'key', 0);
    use(fleet, 'b', 'key', 24.2);
    for (const step of [1, 2, 3, 4]) use(fleet, `n${step}`, `key ${step}`, 24.2 + step);
    expect(accepted(fleet, 'key', 30)).toMatchObject({ resource_id: f.nodeId('b') });
  });

  it('is dropped after it expired, so that the table does not grow without bound', () => {
    const fleet = emptyFleet();
    for (let step = 0; step < 400; step += 1) use(fleet, `n${step}`, `key ${step}`, step);
    expect(fleet.idempotency.keys.size).toBeLessThanOrEqual(27);
    expect([...fleet.idempotency.hours.entries()].length).toBeLessThanOrEqual(27);
    for (let step = 377; step < 400; step += 1) expect(accepted(fleet, `key ${step}`, 399.5)).toBeDefined();
  });

  it('of a rolled back command is forgotten, and the keys that it dropped are back', () => {
    const fleet = emptyFleet();
    use(fleet, 'a', 'kept', 0);
    const mark = fleet.journal.mark();
    use(fleet, 'b', 'lost', 30);
    expect(accepted(fleet, 'kept', 1), 'dropped by the other command').toBeUndefined();
    fleet.journal.rollback(mark);
    expect(accepted(fleet, 'lost', 30)).toBeUndefined();
    expect(accepted(fleet, 'kept', 1)).toBeDefined();
  });
});
