/**
 * A flush of the embedded log that takes longer than its caller waits: whoever follows the log sees what it wrote as soon
 * as it is on the disk, without another append.
 */
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { uuidFromName } from '../../src/kernel/ids.js';
import { systemClock } from '../../src/kernel/clock.js';
import type { ProposedEvent } from '../../src/kernel/event.js';
import type { EventStore } from '../../src/storage/event-store.js';
import { eventually } from '../support/eventually.js';
import { openTemporaryStores, type TemporaryStores } from '../support/temporary-stores.js';

const disk = vi.hoisted(() => ({ slow: undefined as Promise<void> | undefined }));
vi.mock(import('../../src/storage/embedded/environment.js'), async (original) => {
  const { openEnvironment, ...others } = await original();
  return {
    ...others,
    openEnvironment(options) {
      const environment = openEnvironment(options);
      const commit: typeof environment.commit = async (...given) => {
        await disk.slow;
        return environment.commit(...given);
      };
      return { ...environment, commit };
    },
  };
});
vi.mock(import('../../src/storage/bounds.js'), async (original) => {
  const { bounds, ...others } = await original();
  return { ...others, bounds: { ...bounds, appendTimeoutMs: 50 as never } };
});

const event: ProposedEvent = {
  id: uuidFromName('slow'),
  type: 'E',
  data: {},
  metadata: {
    command: { id: uuidFromName('command'), index: 0, count: 1 },
    actor: { type: 'system', id: 's', name: 's' },
    request_id: 'r',
    occurred_at: '2025-01-01T00:00:00.000Z',
    schema_version: 1,
  },
};

let stores: TemporaryStores;
let seen: string[];
let goOn: () => void;
const stop = new AbortController();

async function follow(store: EventStore): Promise<void> {
  for await (const item of store.subscribe({ streams: ['svc-fleet'], after: 'start', signal: stop.signal })) {
    seen.push(...(item.kind === 'events' ? item.events.map(({ id }) => id) : [item.kind]));
  }
}

beforeEach(async () => {
  stores = await openTemporaryStores(systemClock);
  seen = [];
  void follow(stores.eventStore);
  await eventually(() => seen).toEqual(['caught_up']);
  disk.slow = new Promise((resolve) => (goOn = resolve));
});
afterEach(async () => {
  goOn();
  disk.slow = undefined;
  stop.abort();
  await stores.close();
});

const append = () => stores.eventStore.append('svc-fleet', 'no_stream', [event]);

it('an append that was given up and succeeds after all is followed, also when its repeat finds it written', async () => {
  expect(await append()).toMatchObject({ kind: 'unknown' });
  const repeat = append();
  goOn();
  await repeat;
  // On a busy machine more than one repeat may run out of its 50 ms.
  await eventually(append).toMatchObject({ kind: 'appended', revision: 0 });
  await eventually(() => seen).toEqual(['caught_up', event.id]);
});
