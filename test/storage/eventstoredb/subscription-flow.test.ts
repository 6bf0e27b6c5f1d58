/** What a subscription queues for an absent consumer is bounded in events and in bytes. */
import { Readable } from 'node:stream';
import type { EventStoreDBClient } from '@eventstore/db-client';
import { expect, it } from 'vitest';
import type { ProposedEvent } from '../../../src/kernel/event.js';
import { ownEvent } from '../../../src/storage/broken-log.js';
import { commandOf } from '../contract/appending.js';
import { bounds } from '../../../src/storage/bounds.js';
import { eventBytes } from '../../../src/storage/event-json.js';
import { openFlow } from '../../../src/storage/eventstoredb/subscription-flow.js';
import { tuning } from '../../../src/storage/eventstoredb/tuning.js';

const [{ metadata }] = commandOf(1) as [ProposedEvent];

/** A client whose subscription emits `count` events at once, in the form of the client package. */
function clientWith(count: number, text: string): { client: EventStoreDBClient; taken(): number } {
  let taken = 0;
  const subscription = new Readable({
    objectMode: true,
    read() {
      if (taken >= count) return;
      const revision = BigInt(taken);
      const position = { commit: revision, prepare: revision };
      const event = {
        isJson: true,
        streamId: 'svc-a',
        id: 'x',
        type: 'T',
        revision,
        position,
        data: { text },
        metadata,
      };
      taken += 1;
      this.push({ event });
    },
  });
  const stream = Object.assign(subscription, { unsubscribe: async () => void subscription.destroy() });
  return { client: { subscribeToAll: () => stream } as unknown as EventStoreDBClient, taken: () => taken };
}

const { queueHigh, queueBytesHigh } = tuning;

it.each([
  { what: 'events', text: '', count: queueHigh * 3, held: queueHigh },
  { what: 'bytes', text: 'x'.repeat(200_000), count: 300, held: queueBytesHigh / 200_000 },
])('pauses the flow when the queue is full in $what, and loses nothing', async ({ text, count, held }) => {
  const { client, taken } = clientWith(count, text);
  const stop = new AbortController();
  const flow = openFlow(
    { client, discarded: false, reached: false },
    { streams: ['svc-a', 'svc-b', 'svc-c'], after: 'start', signal: stop.signal },
  );
  let before = -1;
  // Waits until the flow takes no more without a consumer.
  while (taken() > before) {
    before = taken();
    for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  }
  expect(taken()).toBeGreaterThanOrEqual(Math.floor(held));
  // The stream itself reads a little ahead.
  expect(taken()).toBeLessThan(held + 64);
  let next = 0n;
  while (next < BigInt(count)) {
    for (const item of await flow.next()) {
      if (item.kind !== 'events') continue;
      expect(item.events.length).toBeLessThanOrEqual(bounds.itemEvents);
      expect(item.events.reduce((sum, event) => sum + eventBytes(ownEvent(event)), 0)).toBeLessThanOrEqual(
        bounds.itemBytes,
      );
      for (const { revision } of item.events) expect(BigInt(revision)).toBe(next++);
    }
  }
  stop.abort();
  await flow.close();
});
