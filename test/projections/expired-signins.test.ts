/** The audit shows a sign-in for 400 days: on a store that drops its event then, and on one that still has it. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { setRetentions } from '../../src/commands/facts.js';
import { silentLogger } from '../../src/kernel/logger.js';
import type { Projections } from '../../src/projections/port.js';
import { checkReadModels } from '../../src/projections/rebuild/check.js';
import {
  append,
  caughtUp,
  openReadSide,
  signedIn,
  someUsers,
  userCreated,
  type Planned,
  type ReadSide,
} from '../support/read-side.js';
import { watchStoreClocks } from '../../src/instance/store-clocks.js';
import { startProjections } from '../../src/projections/projections.js';
import { createManualClock } from '../support/manual-clock.js';
import { openTemporaryStores } from '../support/temporary-stores.js';

const day = 24 * 3600 * 1000;
let side: ReadSide;

const now = (): string => new Date(side.clock.now()).toISOString();
const actionsOf = async (projections: Projections): Promise<string[]> =>
  (await projections.audit.list({ page: 1, pageSize: 100, includeAccounts: true })).items.map(({ action }) => action);

describe.each([
  ['drops', true],
  ['keeps', false],
])('on a log that %s the events of sign-ins after 400 days', (_, drops) => {
  let old: Planned;
  beforeEach(async () => {
    side = await openReadSide();
    if (drops) await setRetentions(side.stores.eventStore);
    const user = someUsers[0]!;
    old = { ...signedIn(user), at: now() };
    await side.append([{ ...userCreated(user), at: now() }, old, { ...signedIn(null), at: now() }]);
  });
  afterEach(() => side.close());

  test('their entries leave the audit at that age, those of users and younger sign-ins stay', async () => {
    side.clock.advance(399 * day);
    await side.append([{ ...signedIn(someUsers[0]!), at: now() }]);
    const before = await side.started();
    expect((await actionsOf(before)).sort()).toEqual([
      'session.sign_in',
      'session.sign_in',
      'session.sign_in_refused',
      'user.create',
    ]);
    await before.close();
    side.clock.advance(2 * day);
    // Until the log has an event of that day, nothing is over.
    const quiet = await side.started();
    expect((await actionsOf(quiet)).length).toBe(4);
    await quiet.close();
    await side.append([{ ...signedIn(someUsers[0]!), at: now() }]);

    // Nobody has removed them, and a fresh fold may or may not have them: that is no difference.
    const scratch = await openTemporaryStores(side.clock);
    const { eventStore, readStore } = side.stores;
    const report = await checkReadModels({
      eventStore,
      readStore,
      scratch: scratch.readStore,
      clock: side.clock,
      logger: silentLogger,
      signal: new AbortController().signal,
      onProgress: () => undefined,
    });
    expect(report?.differences).toEqual([]);
    await scratch.close();

    const after = await side.started();
    const left = ['session.sign_in', 'session.sign_in', 'user.create'];
    expect((await actionsOf(after)).sort()).toEqual(left);
    expect(await after.audit.get(old.id)).toBeUndefined();
    // A fresh fold shows the same.
    expect((await actionsOf(await side.started({ version: 77 }))).sort()).toEqual(left);
  });
});

test('one start with a clock 500 days ahead, which writes events of its time, removes none of them', async () => {
  const right = createManualClock();
  let aheadMs = 0;
  const clock = { now: () => right.now() + aheadMs, monotonic: right.monotonic };
  let stores = await openTemporaryStores(clock);
  const signIn = (): Planned => ({ ...signedIn(someUsers[0]!), at: new Date(clock.now()).toISOString() });
  const shownBy = async (): Promise<readonly string[]> => {
    const { eventStore, readStore } = stores;
    const named = { 'event store': eventStore, 'read store': readStore };
    const clocks = await watchStoreClocks({ stores: named, clock, logger: silentLogger });
    const projections = await startProjections({
      eventStore,
      readStore,
      logger: silentLogger,
      deletionTime: clocks.deletionTime,
    });
    await caughtUp(projections);
    const actions = await actionsOf(projections);
    await projections.close();
    await clocks.close();
    return actions;
  };
  try {
    await append(stores.eventStore, signIn());
    await stores.eventStore.trim();
    expect(await shownBy()).toHaveLength(1);
    aheadMs = 500 * day;
    stores = await stores.reopened();
    await append(stores.eventStore, signIn());
    expect(await shownBy()).toHaveLength(2);
    aheadMs = 0;
    stores = await stores.reopened();
    expect(await shownBy()).toHaveLength(2);
  } finally {
    await stores.close();
  }
});
