/**
 * The read models of this release on real stores, compared with a fresh fold of the log while a service changes them: no
 * difference is told where there is none. Which ones are found is in `test/projections/comparing.test.ts`.
 */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { streams } from '../../src/kernel/event.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { checkReadModels } from '../../src/projections/rebuild/check.js';
import { appendFacts } from '../support/installations.js';
import { nodeCreated, openReadSide, planned, randomLog, sessionOpened, type ReadSide } from '../support/read-side.js';

let side: ReadSide;
let scratch: ReadSide;
beforeEach(async () => {
  [side, scratch] = await Promise.all([openReadSide(), openReadSide()]);
});
afterEach(() => Promise.all([side.close(), scratch.close()]));

it('read models that a service changes have no difference from what the log says', async () => {
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
  const report = await checkReadModels({
    ...side.stores,
    scratch: scratch.stores.readStore,
    clock: side.clock,
    logger: silentLogger,
    signal: new AbortController().signal,
    onProgress: () => undefined,
  }).finally(() => {
    checking = false;
  });
  await traffic;
  expect(report).toMatchObject({ differences: [], differenceCount: 0 });
  expect(report?.documents).toBeGreaterThan(20);
});
