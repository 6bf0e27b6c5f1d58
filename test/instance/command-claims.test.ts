/** A command to an agent is claimed at most once, however many instances try, and not after it has expired. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { limits } from '../../src/kernel/limits.js';
import { silentLogger } from '../../src/kernel/logger.js';
import type { CollectionSpec, Fields, ReadStore } from '../../src/storage/read-store.js';
import { openCommandClaims, type CommandClaims, type CommandClaimsDeps } from '../../src/instance/command-claims.js';
import { eventually } from '../support/eventually.js';
import { createManualClock } from '../support/manual-clock.js';
import { storesInMemory } from '../support/stores-in-memory.js';
import type { TemporaryStores } from '../support/temporary-stores.js';

let stores: TemporaryStores;
let instances: CommandClaims[];
const clock = createManualClock(Date.parse('2026-01-01T00:00:00.000Z'));

beforeEach(async () => {
  stores = storesInMemory();
  const open = () => openClaims();
  instances = [await open(), await open()];
});

afterEach(async () => {
  for (const instance of instances) await instance.close();
  await stores.close();
});

const openClaims = (over: Partial<CommandClaimsDeps> = {}): Promise<CommandClaims> =>
  openCommandClaims({
    readStore: stores.readStore,
    clock,
    logger: silentLogger,
    deletionTime: () => undefined,
    queued: () => [],
    ...over,
  });

const queue = (count: number, expiresInMs = limits.agent.commandExpiryMs) =>
  Array.from({ length: count }, (_, index) => ({
    id: `command-${index}`,
    command: `c${index}`,
    expires_at: new Date(clock.now() + expiresInMs).toISOString(),
  }));

test('two instances that claim at the same time share the queue: each command goes to one of them', async () => {
  const queued = queue(10);
  const claimed = await Promise.all(instances.map((instance) => instance.claim('node', queued)));
  expect(claimed.flat().sort()).toEqual(queued.map(({ command }) => command).sort());
  expect(await instances[0]!.claim('node', queued)).toEqual([]);
  expect(await instances[1]!.claim('node', queued)).toEqual([]);
});

test('at most 16 commands are claimed for one heartbeat, oldest first, the rest for the next', async () => {
  const queued = queue(20);
  expect(await instances[0]!.claim('node', queued)).toEqual(queued.slice(0, 16).map(({ command }) => command));
  expect(await instances[0]!.claim('node', queued)).toEqual(queued.slice(16).map(({ command }) => command));
});

test('a node is asked for diagnostics once a minute, by one instance; what else waits is not held up', async () => {
  const [a, b] = instances as [CommandClaims, CommandClaims];
  const [first, second, ...others] = queue(4);
  const asks = [first!, second!].map((one) => ({ ...one, command: 'RUN_DIAGNOSTICS' }));
  const queued = [...asks, ...others];
  const sent: string[] = [];
  /** All that was sent so far: what takes long comes with a later call. */
  const both = async (): Promise<readonly string[]> => {
    sent.push(...(await Promise.all([a.claim('node', queued), b.claim('node', queued)])).flat());
    return sent.toSorted();
  };
  const idsAsked = async () => (await b.asked(queued)).map(({ id }) => id);
  await eventually(both).toEqual(['RUN_DIAGNOSTICS', 'c2', 'c3']);
  expect(await idsAsked()).toEqual([first!.id]);
  clock.advance(limits.agent.diagnostics.everyMs - 1);
  expect(await both()).toEqual(['RUN_DIAGNOSTICS', 'c2', 'c3']);
  clock.advance(1);
  await eventually(both).toEqual(['RUN_DIAGNOSTICS', 'RUN_DIAGNOSTICS', 'c2', 'c3']);
  expect(await both()).toHaveLength(4);
  // One answer is for all.
  expect(await idsAsked()).toEqual([first!.id, second!.id]);
  await a.answered(await a.asked(queued));
  expect(await idsAsked()).toEqual([]);
  expect(Array.from((await b.delivered(queued.map(({ id }) => id))).values(), ({ answered }) => answered)).toEqual([
    true,
    true,
    false,
    false,
  ]);
});

test('an expired command is not claimed, and no answer to it is waited for', async () => {
  const sent = [{ ...queue(1)[0]!, command: 'RUN_DIAGNOSTICS' }];
  await eventually(() => instances[0]!.claim('node', sent)).toEqual(['RUN_DIAGNOSTICS']);
  clock.advance(limits.agent.commandExpiryMs - 1);
  expect(await instances[1]!.asked(sent)).toHaveLength(1);
  clock.advance(1);
  expect(await instances[1]!.asked(sent)).toEqual([]);

  expect(await instances[0]!.claim('node', queue(1, 0))).toEqual([]);
});

test('a store that hangs delays no heartbeat; its late claims come with a later heartbeat, once', async () => {
  let release = (): void => undefined;
  const hanging = new Promise<void>((resolve) => (release = resolve));
  const readStore: ReadStore = {
    ...stores.readStore,
    async collection<F extends Fields>(spec: CollectionSpec) {
      const inner = await stores.readStore.collection<F>(spec);
      return {
        ...inner,
        insert: async (all: Parameters<typeof inner.insert>[0]) => (await hanging, inner.insert(all)),
      };
    },
  };
  const claims = await openClaims({ readStore });
  instances.push(claims);
  const queued = queue(2);
  expect(await claims.claim('n', queued)).toEqual([]);
  expect(await claims.claim('n', queued)).toEqual([]);
  release();
  const sent: string[] = [];
  await eventually(async () => {
    sent.push(...(await claims.claim('n', queued)));
    return [...sent].sort();
  }).toEqual(['c0', 'c1']);
  expect(await claims.claim('n', queued)).toEqual([]);
  expect(await instances[0]!.claim('n', queued)).toEqual([]);
});

const hour = 3_600_000;

/** Counts what is asked of the claims in a store. */
function counted(readStore: ReadStore): { readonly readStore: ReadStore; readonly calls: string[] } {
  const calls: string[] = [];
  const collection = async <F extends Fields>(spec: CollectionSpec) => {
    const inner = await readStore.collection<F>(spec);
    const insert: typeof inner.insert = (all) => (calls.push(`insert ${all.length}`), inner.insert(all));
    const find: typeof inner.find = (query) => (calls.push('find'), inner.find(query));
    const remove: typeof inner.remove = (ids) => (calls.push(`remove ${ids.length}`), inner.remove(ids));
    return { ...inner, insert, find, remove };
  };
  return { readStore: { ...readStore, collection }, calls };
}

test('16 commands are claimed by one write', async () => {
  const { readStore, calls } = counted(stores.readStore);
  const claims = await openClaims({ readStore });
  instances.push(claims);
  calls.length = 0;
  expect(await claims.claim('node', queue(16))).toHaveLength(16);
  expect(calls).toEqual(['insert 16']);
});

test('an instance whose clock is ahead removes no claim in use: the next instance does not send the command again', async () => {
  const queued = queue(1, limits.agent.commandExpiryMs);
  expect(await instances[0]!.claim('node', queued)).toEqual(['c0']);
  const { readStore, calls } = counted(stores.readStore);
  let time: number | undefined;
  const ahead = await openClaims({
    readStore,
    // Its own clock is a month ahead.
    clock: { now: () => clock.now() + 720 * hour, monotonic: clock.monotonic },
    deletionTime: () => time,
    purgeEveryMs: 1,
  });
  instances.push(ahead);
  const purged = async (): Promise<readonly string[]> => {
    calls.length = 0;
    await eventually(() => calls.filter((call) => call === 'find').length).toBeGreaterThan(1);
    return calls.filter((call) => call.startsWith('remove'));
  };
  // A day after it has expired it is still there; then it goes.
  time = clock.now() + 24 * hour;
  expect(await purged()).toEqual([]);
  const restarted = await openClaims();
  instances.push(restarted);
  expect(await restarted.claim('node', queued)).toEqual([]);
  time = clock.now() + 25 * hour;
  calls.length = 0;
  await eventually(() => calls).toContain('remove 1');
  time = undefined;
});

test('the time of a delivery is known for as long as the command is shown, and goes with it', async () => {
  const [gone, shown] = queue(2);
  const { readStore, calls } = counted(stores.readStore);
  let kept = [gone!, shown!];
  const claims = await openClaims({
    readStore,
    deletionTime: () => clock.now() + 48 * hour,
    purgeEveryMs: 1,
    queued: () => [['node', kept]],
  });
  instances.push(claims);
  const delivered = async () => [...(await claims.delivered(['command-0', 'command-1', 'unknown']))];
  expect(await delivered()).toEqual([]);
  await claims.claim('node', kept);
  const at = new Date(clock.now()).toISOString();
  const sent = { at, answered: false };
  // The claim may be confirmed after the call.
  await eventually(delivered).toEqual([
    ['command-0', sent],
    ['command-1', sent],
  ]);
  kept = [shown!];
  await eventually(delivered).toEqual([['command-1', sent]]);
  expect(calls).toContain('remove 1');
});

test('a command that was queued before the read store was emptied counts as sent, and later ones do not', async () => {
  const emptied = storesInMemory();
  const [old, fresh] = [queue(2), queue(3)];
  const claims = await openClaims({ readStore: emptied.readStore, queued: () => [['node', old]] });
  try {
    expect(await claims.claim('node', fresh)).toEqual(['c2']);
  } finally {
    await claims.close();
    await emptied.close();
  }
});
