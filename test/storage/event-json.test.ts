/** The size of an event is exact, and its JSON is made as rarely as possible on the way into a store. */
import { afterEach, describe, expect, it, vi } from 'vitest';
import * as fc from 'fast-check';
import { propose } from '../../src/commands/proposal.js';
import { systemClock } from '../../src/kernel/clock.js';
import type { ProposedEvent } from '../../src/kernel/event.js';
import { randomIds } from '../../src/kernel/ids.js';
import type { JsonObject } from '../../src/kernel/json.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { eventBytes, wholeEventBytes } from '../../src/storage/event-json.js';
import type { EventStore } from '../../src/storage/event-store.js';
import { openEventStoreDb } from '../../src/storage/eventstoredb/open.js';
import { startEventStoreDb } from '../servers/eventstoredb/server.js';
import { closersAfterEach } from '../support/closers.js';
import { openTemporaryStores } from '../support/temporary-stores.js';
import { commandOf, readAll } from './contract/appending.js';

const context = {
  actor: { type: 'user', id: 'u-1', name: 'an administrator' },
  requestId: 'the request',
} as const;
const proposed = (data: JsonObject): readonly ProposedEvent[] =>
  propose([{ type: 'ThingHappened', data }], context, systemClock, randomIds).events;

describe('the size of an event', () => {
  it('is that of its JSON', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.string({ unit: 'binary' }), (data, type) => {
        const [event] = commandOf(1, data as JsonObject).map((one) => ({ ...one, type }));
        const parts = [event!.data, event!.metadata].map((part) => Buffer.byteLength(JSON.stringify(part)));
        for (let repeat = 0; repeat < 2; repeat += 1) {
          expect(eventBytes(event!)).toBe(parts[0]! + parts[1]!);
          expect(wholeEventBytes(event!)).toBe(Buffer.byteLength(JSON.stringify(event)));
        }
      }),
    );
  });
});

describe('the JSON of an event', () => {
  const text = 'x'.repeat(100_000);
  const closers = closersAfterEach();
  afterEach(() => void vi.restoreAllMocks());

  /** Counts how often the data and the metadata of one event become text while it is decided and appended. */
  async function counted(store: EventStore): Promise<{ data: number; metadata: number }> {
    // The client requests the server's features before its first append.
    await store.append('svc-a', 'no_stream', proposed({}));
    const stringify = vi.spyOn(JSON, 'stringify');
    const events = proposed({ text });
    expect(await store.append('svc-a', 0, events)).toMatchObject({ kind: 'appended', revision: 1 });
    const made = stringify.mock.results.map(({ value }) => String(value));
    stringify.mockRestore();
    expect((await readAll(store, 'svc-a'))[1]).toMatchObject({ data: events[0]!.data, metadata: events[0]!.metadata });
    return {
      data: made.filter((json) => json.includes(text)).length,
      metadata: made.filter((json) => json.includes(context.requestId)).length,
    };
  }

  it('is made once for EventStoreDB, except that the client package makes that of the data again', async () => {
    const server = await startEventStoreDb();
    closers.push(() => server.close());
    const store = openEventStoreDb({ url: server.url, logger: silentLogger });
    closers.push(() => store.close());
    expect(await counted(store)).toEqual({ data: 2, metadata: 1 });
  });

  it('is made once for the embedded log', async () => {
    const stores = await openTemporaryStores(systemClock);
    closers.push(() => stores.close());
    expect(await counted(stores.eventStore)).toEqual({ data: 1, metadata: 1 });
  });
});
