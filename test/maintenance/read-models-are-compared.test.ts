/** Comparing read models with a fresh fold of the log finds every wrong, missing or extra document, and no other. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { streams } from '../../src/kernel/event.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { checkReadModels } from '../../src/projections/rebuild/check.js';
import type { CheckOptions } from '../../src/projections/rebuild/check.js';
import { openCollections, groupVersion, readModels } from '../../src/projections/read-models.js';
import { rebuildReadModels } from '../../src/projections/rebuild/rebuild.js';
import type { Collection } from '../../src/storage/read-store.js';
import { appendFacts } from '../support/installations.js';
import { append, openReadSide, planned, randomLog, sessionOpened } from '../support/read-side.js';
import type { ReadSide } from '../support/read-side.js';

let side: ReadSide;
let scratch: ReadSide;
beforeEach(async () => {
  [side, scratch] = await Promise.all([openReadSide(), openReadSide()]);
});
afterEach(() => Promise.all([side.close(), scratch.close()]));

const signal = new AbortController().signal;
const check = (more: Partial<CheckOptions> = {}) => {
  const { eventStore, readStore } = side.stores;
  return checkReadModels({
    eventStore,
    readStore,
    scratch: scratch.stores.readStore,
    clock: side.clock,
    logger: silentLogger,
    signal,
    onProgress: () => undefined,
    ...more,
  });
};

async function collection(name: string): Promise<Collection> {
  return (await openCollections(side.stores.readStore, readModels, groupVersion)).get(name)!;
}

async function projected(seed: number): Promise<void> {
  await side.append(randomLog(seed));
  await (await side.started()).close();
}

describe('read models that hold what the log says', () => {
  it('have no difference, before and after a rebuild', async () => {
    await projected(31);
    const report = await check();
    expect(report).toMatchObject({ differences: [], differenceCount: 0, behind: 0 });
    expect(report?.documents).toBeGreaterThan(20);
    const { eventStore, readStore } = side.stores;
    const options = { eventStore, readStore, logger: silentLogger, signal, onProgress: () => undefined };
    await rebuildReadModels({ ...options, only: 'audit' });
    const again = await openReadSide();
    try {
      expect(await check({ scratch: again.stores.readStore })).toEqual(report);
    } finally {
      await again.close();
    }
  });

  it('have no difference while a service changes them', async () => {
    await side.append(randomLog(32));
    await appendFacts(side.stores.eventStore, 500, true);
    await side.started();
    let checking = true;
    const traffic = (async () => {
      for (let round = 0; checking; round += 1) {
        const id = `0000000${round % 3}-1111-4111-8111-111111111111`;
        const data = { node_id: id, name: id, description: null, address: null, labels: {} };
        await append(side.stores.eventStore, planned(streams.fleet, [{ type: 'NodeCreated', data }]));
        await append(side.stores.eventStore, sessionOpened(id, `1.0.${round}`));
        if (round % 2 === 0) {
          await append(
            side.stores.eventStore,
            planned(streams.fleet, [{ type: 'NodeDeleted', data: { ...data, override: null, policies: [] } }]),
          );
        }
      }
    })();
    const report = await check().finally(() => {
      checking = false;
    });
    await traffic;
    expect(report).toMatchObject({ differences: [], differenceCount: 0 });
  });

  it('are reported as behind, not as different, when nothing has followed the log', async () => {
    await projected(33);
    await side.append([sessionOpened('nobody'), ...randomLog(34).slice(0, 30)]);
    const report = await check();
    expect(report?.differences).toEqual([]);
    expect(report?.behind).toBeGreaterThan(0);
  });
});

describe('a difference is found', () => {
  it('in a field, with both values', async () => {
    await projected(35);
    const nodes = await collection('nodes');
    const { items } = await nodes.find({ limit: 1 });
    const { id, position, fields } = items[0]!;
    await nodes.remove([id]);
    await nodes.write([{ kind: 'put', id, position, fields: { ...fields, name_lower: 'planted' } }]);
    const report = await check();
    expect(report?.differenceCount).toBe(1);
    expect(report?.differences[0]).toContain(
      `nodes ${id}: position ${position}; name_lower is "planted", the log says`,
    );
  });

  it('in a document that is missing, extra or too new', async () => {
    await projected(36);
    const [chains, upstreams, audit] = await Promise.all(['chains', 'upstreams', 'audit'].map(collection));
    const gone = (await chains!.find({ limit: 1 })).items[0]!;
    await chains!.remove([gone.id]);
    await upstreams!.write([{ kind: 'put', id: 'planted', position: 7, fields: { name: 'planted' } }]);
    const entry = (await audit!.find({ limit: 1 })).items[0]!;
    await audit!.write([{ kind: 'put', id: entry.id, position: 2 ** 40, fields: entry.fields }]);
    const report = await check();
    expect(report?.differences.map((difference) => difference.replace(/: .*/, '')).sort()).toEqual(
      [`audit ${entry.id}`, `chains ${gone.id}`, 'upstreams planted'].sort(),
    );
    const other = await openReadSide();
    try {
      const one = await check({ only: 'upstreams', scratch: other.stores.readStore });
      expect(one?.differences).toEqual([
        expect.stringContaining('shown at position 7, but the log has no such document'),
      ]);
    } finally {
      await other.close();
    }
  });
});
