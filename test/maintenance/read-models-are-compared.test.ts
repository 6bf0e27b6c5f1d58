/**
 * The read models of this release on real stores, compared with a fresh fold of the log: no difference is told where there is
 * none. Which ones are found is in `test/projections/comparing.test.ts`.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { streams } from '../../src/kernel/event.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { checkReadModels, type CheckOptions } from '../../src/projections/rebuild/check.js';
import { rebuildReadModels } from '../../src/projections/rebuild/rebuild.js';
import { appendFacts } from '../support/installations.js';
import { nodeCreated, openReadSide, planned, randomLog, sessionOpened, type ReadSide } from '../support/read-side.js';

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
        const created = nodeCreated(id);
        const data = { ...created.events[0]?.data, override: null, policies: [] };
        const deleted = round % 2 === 0 ? [planned(streams.fleet, [{ type: 'NodeDeleted', data }])] : [];
        await side.append([created, sessionOpened(id, `1.0.${round}`), ...deleted]);
      }
    })();
    const report = await check().finally(() => {
      checking = false;
    });
    await traffic;
    expect(report).toMatchObject({ differences: [], differenceCount: 0 });
  });
});
