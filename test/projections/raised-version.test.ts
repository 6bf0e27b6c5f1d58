/**
 * A raised version is filled beside the current one and takes over once it has caught up.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { streams } from '../../src/kernel/event.js';
import { uuidFromName } from '../../src/kernel/ids.js';
import { groupName, groupVersion } from '../../src/projections/read-models.js';
import {
  dump,
  nameOf,
  nodeRenamed,
  openReadSide,
  planned,
  randomLog,
  type Planned,
  type ReadSide,
} from '../support/read-side.js';

let side: ReadSide;
beforeEach(async () => {
  side = await openReadSide(undefined, { inMemory: true });
});
afterEach(() => side.close());

const node = uuidFromName('a node');
const fields = { node_id: node, name: 'one', description: null, address: null, labels: {} };
const created = (): Planned => planned(streams.fleet, [{ type: 'NodeCreated', data: fields }]);

describe('a raised version', () => {
  it('is filled beside the current one, gets the pointer once it has caught up, and keeps it', async () => {
    const { readStore } = side.stores;
    await side.append(randomLog(4));
    expect(await readStore.activeVersion(groupName)).toBeUndefined();
    const old = await side.started();
    expect(await readStore.activeVersion(groupName)).toBe(groupVersion);
    const before = await dump(readStore);

    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const slow = {
      ...readStore,
      async collection(spec: Parameters<typeof readStore.collection>[0]) {
        const collection = await readStore.collection(spec);
        return {
          ...collection,
          async write(writes: Parameters<typeof collection.write>[0]) {
            await held;
            return collection.write(writes);
          },
        };
      },
    } as typeof readStore;
    const next = await side.start({ version: groupVersion + 1, readStore: slow });
    await expect(nameOf(next, node)).rejects.toMatchObject({ code: 'unavailable' });
    expect(await readStore.activeVersion(groupName)).toBe(groupVersion);
    release();
    await expect.poll(() => next.status().caughtUp, { timeout: 20_000 }).toBe(true);
    expect(await readStore.activeVersion(groupName)).toBe(groupVersion + 1);
    expect(await dump(readStore, groupVersion + 1)).toEqual(before);

    // The older release still reads its own version, after a restart too, and does not take the pointer back.
    await side.append([created(), nodeRenamed(node, 'one')]);
    expect(await old.reached(await side.stores.eventStore.headPosition(), 10_000)).toBe(true);
    expect(await nameOf(old, node)).toBe('one');
    await old.close();
    const oldAgain = await side.started();
    expect(await nameOf(oldAgain, node)).toBe('one');
    expect(await readStore.activeVersion(groupName)).toBe(groupVersion + 1);
  });
});
