/** Last-good snapshots: sealed in the read store, served as they were applied, and gone with their node. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { stampOf } from '../../src/delivery/target.js';
import { lastGoodSnapshots, openLastGoodSnapshots, type LastGoodSnapshots } from '../../src/delivery/last-good.js';
import type { SnapshotPush } from '../../src/delivery/port.js';
import { silentLogger } from '../../src/kernel/logger.js';
import type { Keyring } from '../../src/security/keyring.js';
import type { Collection, Fields, ReadStore } from '../../src/storage/read-store.js';
import { testKeyring } from '../support/keyring.js';
import { eventually } from '../support/eventually.js';

interface Stored {
  readonly generation: number;
  readonly checksum: string;
  readonly sealed: Uint8Array;
}

let documents: Map<string, Stored>;
let keyring: Keyring;
let away: boolean;
let reads: number;
let logged: Record<string, unknown>[];
const opened: LastGoodSnapshots[] = [];

beforeEach(() => {
  documents = new Map();
  keyring = testKeyring();
  [away, reads, logged] = [false, 0, []];
});
afterEach(async () => {
  for (const snapshots of opened.splice(0)) await snapshots.close();
});

async function open(): Promise<LastGoodSnapshots> {
  const collection = {
    get: async (id: string) => {
      reads += 1;
      const fields = documents.get(id);
      return fields === undefined ? undefined : { id, fields };
    },
    set: async (entries: readonly { readonly id: string; readonly fields: Fields }[]) => {
      if (away) throw new Error('away');
      for (const { id, fields } of entries) documents.set(id, fields as unknown as Stored);
    },
    remove: async (ids: readonly string[]) => {
      for (const id of ids) documents.delete(id);
      return ids.length;
    },
  } as unknown as Collection<Fields>;
  const readStore = {
    collection: async (spec: unknown) => {
      expect(spec).toBe(lastGoodSnapshots);
      return collection;
    },
  } as unknown as ReadStore;
  const log = (fields: object): void => void logged.push(fields as Record<string, unknown>);
  const snapshots = await openLastGoodSnapshots({
    readStore,
    keyring,
    logger: { ...silentLogger, warn: log, error: log },
  });
  opened.push(snapshots);
  return snapshots;
}

const pushOf = (generation: number, text = `snapshot ${generation}`): SnapshotPush => ({
  generation,
  checksum: Buffer.alloc(32, generation),
  payload: Buffer.from(text),
});
const storedOf = (nodeId: string): Stored => {
  const stored = documents.get(nodeId);
  if (stored === undefined) throw new Error('nothing is stored');
  return stored;
};

describe('a last-good snapshot', () => {
  it('is served from memory until it is written, and as it was from the store afterwards', async () => {
    const snapshots = await open();
    const push = pushOf(3);
    expect(await snapshots.stamp('n1')).toBeUndefined();
    snapshots.save('n1', push);
    const before = reads;
    expect(await snapshots.stamp('n1')).toEqual(stampOf(push));
    expect(await snapshots.load('n1', stampOf(push))).toBe(push);
    expect(await snapshots.load('n1', stampOf(pushOf(4)))).toBeUndefined();
    expect(reads).toBe(before);
    await snapshots.flush();
    for (const reader of [snapshots, await open()]) {
      expect(await reader.stamp('n1')).toEqual(stampOf(push));
      expect(await reader.load('n1', stampOf(push))).toEqual(push);
    }
  });

  it('is sealed, and its clear bytes are nowhere in the store', async () => {
    const snapshots = await open();
    snapshots.save('n1', pushOf(3, 'a secret in a snapshot'));
    await snapshots.flush();
    const { generation, checksum, sealed } = storedOf('n1');
    expect([generation, checksum]).toEqual([3, stampOf(pushOf(3)).checksum]);
    expect(Buffer.from(sealed).includes('secret')).toBe(false);
  });

  it('is not served when another one is stored by now', async () => {
    const snapshots = await open();
    snapshots.save('n1', pushOf(3));
    await snapshots.flush();
    expect(await snapshots.load('n1', { ...stampOf(pushOf(3)), generation: 4 })).toBeUndefined();
    expect(await snapshots.load('n1', { ...stampOf(pushOf(3)), checksum: 'aa' })).toBeUndefined();
    expect(await snapshots.load('n2', stampOf(pushOf(3)))).toBeUndefined();
    expect(logged).toEqual([]);
  });

  it('is not served in the place of another node or generation, or when it was altered; each is told', async () => {
    const snapshots = await open();
    snapshots.save('n1', pushOf(3));
    await snapshots.flush();
    const stored = storedOf('n1');
    documents.set('n2', stored);
    expect(await snapshots.load('n2', stampOf(pushOf(3)))).toBeUndefined();
    documents.set('n1', { ...stored, generation: 4 });
    expect(await snapshots.load('n1', { ...stampOf(pushOf(3)), generation: 4 })).toBeUndefined();
    documents.set('n1', { ...stored, sealed: Buffer.from('x') });
    expect(await snapshots.load('n1', stampOf(pushOf(3)))).toBeUndefined();
    expect(logged).toEqual([
      { node_id: 'n2', generation: 3, reason: 'tampered' },
      { node_id: 'n1', generation: 4, reason: 'tampered' },
      { node_id: 'n1', generation: 3, reason: 'malformed' },
    ]);
  });

  it('is removed by an instance that never saw it too, and removing what is not there is nothing', async () => {
    const snapshots = await open();
    snapshots.save('n1', pushOf(3));
    snapshots.save('n2', pushOf(3));
    await snapshots.flush();
    const other = await open();
    await other.remove('n1');
    await other.remove('nobody');
    expect([...documents.keys()]).toEqual(['n2']);
  });

  it('that waits to be written is not written once its node is removed', async () => {
    const snapshots = await open();
    snapshots.save('n1', pushOf(3));
    await snapshots.remove('n1');
    await snapshots.flush();
    expect(documents.size).toBe(0);
    expect(await snapshots.stamp('n1')).toBeUndefined();
  });

  it('that cannot be written is told, stays in memory, and is written when the store is back', async () => {
    const snapshots = await open();
    away = true;
    snapshots.save('n1', pushOf(3));
    await eventually(() => logged.length).toBeGreaterThan(0);
    expect(logged[0]).toMatchObject({ error: 'Error: away' });
    expect(await snapshots.load('n1', stampOf(pushOf(3)))).toEqual(pushOf(3));
    away = false;
    await expect.poll(() => documents.size, { timeout: 10_000 }).toBe(1);
  });
});
