/** Idempotency keys of the last 24 hours, folded from the log (`docs/contract/rest.md#consistency`). */
import { describe, expect, it } from 'vitest';
import { acceptedKey, rememberKey, type IdempotencyTable } from '../../src/domain/aggregate/idempotency.js';
import { draftFleet, emptyFleet, type Fleet } from '../../src/domain/fleet/fleet.js';
import { streams, type RecordedEvent } from '../../src/kernel/event.js';
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

/** An accepted command of any kind, straight into the table. */
function record(table: IdempotencyTable, key: string, hours: number): void {
  const event: RecordedEvent = {
    id: key,
    stream: streams.fleet,
    type: 'NodeConfigRefreshed',
    data: { node_id: 'n' },
    revision: 0,
    position: 0,
    metadata: {
      command: { id: key, index: 0, count: 1 },
      actor: { type: 'system', id: 'test', name: 'test' },
      request_id: 'test',
      occurred_at: new Date(start + hours * hour).toISOString(),
      schema_version: 1,
      idempotency: { key_hash: key, body_hash: 'body' },
    },
  };
  rememberKey(table, event, 'n');
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

  it('used again after it expired is recognised for another 24 hours: its first use is dropped without it', () => {
    const table = emptyFleet().idempotency;
    for (const hours of [0, 60]) record(table, 'key', hours);
    for (let step = 0; step < 1_500; step += 1) record(table, `newer ${step}`, 60);
    expect(acceptedKey(table, 'key', start + 83.9 * hour)).toBeDefined();
    expect(acceptedKey(table, 'key', start + 84 * hour)).toBeUndefined();
  });

  it('is dropped after it expired, so that the table does not grow without bound', () => {
    const table = emptyFleet().idempotency;
    // One command each five minutes, for twenty days.
    const steps = 20 * 24 * 12;
    for (let step = 0; step < steps; step += 1) record(table, `key ${step}`, step / 12);
    expect(table.keys.size).toBeLessThan(2_000);
    expect([...table.hours.keys()].length).toBeLessThan(150);
    const now = start + ((steps - 1) / 12) * hour;
    const lastDay = Array.from({ length: 24 * 12 - 1 }, (_, index) => `key ${steps - 1 - index}`);
    for (const key of lastDay) expect(acceptedKey(table, key, now)).toBeDefined();
  });

  it('from the last minute of an hour is kept for the whole window, however many newer ones there are', () => {
    const table = emptyFleet().idempotency;
    const lastMinute = 29 / 60;
    record(table, 'key', lastMinute);
    for (let index = 0; index < 3_000; index += 1) record(table, `newer ${index}`, lastMinute + 23.1);
    expect(acceptedKey(table, 'key', start + (lastMinute + 23.1) * hour)).toBeDefined();
    expect(acceptedKey(table, 'key', start + (lastMinute + 23.99) * hour)).toBeDefined();
  });

  it('is kept for its window after a clock that was months ahead has written a thousand and was set right', () => {
    const table = emptyFleet().idempotency;
    for (let step = 0; step < 1_500; step += 1) record(table, `ahead ${step}`, 90 * 24);
    for (let step = 0; step < 100; step += 1) record(table, `key ${step}`, step / 5);
    for (let step = 0; step < 100; step += 1) {
      expect(acceptedKey(table, `key ${step}`, start + 20 * hour)).toBeDefined();
    }
  });

  it('is not dropped because one clock is days ahead and writes many commands', () => {
    const table = emptyFleet().idempotency;
    for (let step = 0; step < 3_000; step += 1) record(table, `key ${step}`, step / 1_000);
    for (let step = 0; step < 500; step += 1) record(table, `ahead ${step}`, 72);
    record(table, 'last', 3);
    for (const key of ['key 0', 'key 2999', 'ahead 0', 'ahead 499', 'last']) {
      expect(acceptedKey(table, key, start + 3 * hour), key).toBeDefined();
    }
  });

  it('of a command on a draft that is dropped is forgotten, and the keys that it dropped are back', () => {
    const fleet = emptyFleet();
    use(fleet, 'a', 'kept', 0);
    for (let step = 1; step < 1_000; step += 1) record(fleet.idempotency, `key ${step}`, 80);
    const draft = draftFleet(fleet);
    use(draft.state, 'b', 'lost', 80);
    expect(accepted(draft.state, 'kept', 1), 'dropped by the other command').toBeUndefined();
    draft.drop();
    expect(accepted(fleet, 'lost', 80)).toBeUndefined();
    expect(accepted(fleet, 'kept', 1)).toBeDefined();
  });
});
