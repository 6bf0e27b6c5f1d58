/** A cluster of nodes: the adapter finds the leader, follows a change, and finds it again after all nodes were away. */
import { setTimeout as delay } from 'node:timers/promises';
import { describe, it, type TestContext } from 'vitest';
import type { EventStore } from '../../../src/storage/event-store.js';
import { openEventStoreDb } from '../../../src/storage/eventstoredb/open.js';
import { startCluster, type EventStoreDbCluster } from '../../servers/eventstoredb/cluster.js';
import { appendAtEnd, appendSurely, commandOf, readAll } from '../contract/appending.js';
import type { Tuning } from '../../../src/storage/eventstoredb/tuning.js';
import { following, impatient, recordingLogger, type LogLine } from './fixture.js';

const ids = (events: readonly { id: string }[]): string[] => events.map(({ id }) => id);

describe.concurrent('a leader that is cut off from the others, and still reached by this instance', () => {
  it.for([
    ['all nodes', [0, 1, 2]],
    ['the old leader alone', [2]],
    ['another node alone', [0]],
  ] as const)('is left with a URL that names %s, also by the open subscription', async ([, named], { expect }) => {
    const cluster = await startCluster(3);
    const hosts = named.map((index) => `127.0.0.1:${cluster.nodes[index]!.port}`).join(',');
    const store = openEventStoreDb({ url: `esdb://${hosts}?tls=false`, logger: recordingLogger([]) });
    const other = openEventStoreDb({ url: cluster.url, logger: recordingLogger([]) });
    const { kinds, revisions, stop } = following(store);
    try {
      await appendAtEnd(store, 'svc-a', commandOf(1));
      await expect.poll(() => revisions).toEqual([0]);
      cluster.cutOff(2);
      expect((await store.append('svc-a', 0, commandOf(1))).kind).toBe('unknown');
      cluster.standDown(2);
      await expect(store.ping()).rejects.toMatchObject({ code: 'unavailable' });
      // It would stay open and silent for ever.
      await expect.poll(() => kinds).toContain('dropped');
      cluster.lead(1);
      await appendAtEnd(other, 'svc-a', commandOf(1));
      // No other node announces the new leader.
      if (named.length === 1 && named[0] === 2) await cluster.rejoin(2);
      await expect.poll(() => revisions).toEqual([0, 1]);
      expect(await appendAtEnd(store, 'svc-a', commandOf(1))).toBe(2);
      await expect.poll(() => revisions).toEqual([0, 1, 2]);
      await store.ping();
    } finally {
      await stop();
      await Promise.all([store.close(), other.close()]);
      await cluster.close();
    }
  });
});

interface Clustered {
  /** The test's own, which knows to which of the concurrent tests it belongs. */
  readonly expect: TestContext['expect'];
  readonly cluster: EventStoreDbCluster;
  readonly store: EventStore;
  readonly lines: LogLine[];
}

/** A test with a cluster of its own, because most of them wait. @param tuning how soon calls give up */
const inCluster =
  (test: (clustered: Clustered) => Promise<void>, tuning: Partial<Tuning> = {}) =>
  async ({ expect }: TestContext) => {
    const cluster = await startCluster();
    const lines: LogLine[] = [];
    const store = openEventStoreDb({ url: cluster.url, logger: recordingLogger(lines), tuning });
    try {
      await test({ expect, cluster, store, lines });
    } finally {
      await store.close();
      await cluster.close();
    }
  };

/** The gRPC library takes some seconds before it retries connections that were refused. */
const workingAgain = ({ expect, store }: Pick<Clustered, 'expect' | 'store'>): Promise<unknown> => {
  const ping = (): Promise<boolean> =>
    store.ping().then(
      () => true,
      () => false,
    );
  return expect.poll(ping, { timeout: 40_000 }).toBe(true);
};

describe.concurrent('a cluster', () => {
  it(
    "is written and read only at its leader, even if the first address is a follower's",
    inCluster(async ({ expect, cluster, store }) => {
      const [follower, leader] = cluster.nodes;
      const events = commandOf(3);
      expect(await store.append('svc-a', 'no_stream', events)).toMatchObject({ kind: 'appended', revision: 2 });
      expect(ids(await readAll(store, 'svc-a'))).toEqual(ids(events));
      expect(follower!.appends()).toBe(0);
      expect(leader!.appends()).toBe(1);
    }),
  );

  it(
    'is followed at once when its leader changes: the append is answered and written once',
    inCluster(async ({ expect, cluster, store, lines }) => {
      for (let round = 0; round < 6; round += 1) {
        cluster.lead(round % 2);
        const outcome = await store.append('svc-a', round === 0 ? 'no_stream' : round - 1, commandOf(1));
        expect(outcome).toMatchObject({ kind: 'appended', revision: round });
      }
      expect(await readAll(store, 'svc-a')).toHaveLength(6);
      // The client moves to the new leader by itself.
      expect(lines.filter(({ level }) => level === 'warn')).toEqual([]);
    }),
  );

  it(
    'loses and repeats no command when its leader changes under load',
    inCluster(async ({ expect, cluster, store }) => {
      let over = false;
      const writers = [0, 1, 2, 3].map(async (writer) => {
        const written: string[] = [];
        while (!over || written.length < 20) {
          const events = commandOf(2);
          await appendAtEnd(store, `svc-${writer}`, events);
          written.push(...ids(events));
        }
        return written;
      });
      for (let change = 0; change < 8; change += 1) {
        await delay(40);
        cluster.lead(change % 2);
      }
      over = true;
      for (const [writer, written] of (await Promise.all(writers)).entries()) {
        expect(ids(await readAll(store, `svc-${writer}`))).toEqual(written);
      }
    }),
  );

  it(
    'reports a conflict when someone else wrote at the new leader after the old one left an append unanswered',
    inCluster(async ({ expect, cluster, store }) => {
      const unanswered = commandOf(2);
      cluster.nodes[1]!.faults.appends = [{ kind: 'deadline' }];
      expect((await store.append('svc-a', 'no_stream', unanswered)).kind).toBe('unknown');
      cluster.lead(0);
      const others = commandOf(1);
      const other = openEventStoreDb({ url: cluster.url, logger: recordingLogger([]) });
      await appendSurely(other, 'svc-a', 'no_stream', others);
      await other.close();
      expect(await store.append('svc-a', 'no_stream', unanswered)).toEqual({ kind: 'conflict', actual: 0 });
      expect(ids(await readAll(store, 'svc-a'))).toEqual(ids(others));
    }),
  );

  it(
    'is unavailable for every call while all nodes are away, and works again when they are back',
    inCluster(async ({ expect, cluster, store }) => {
      await store.append('svc-a', 'no_stream', commandOf(1));
      for (const round of [1, 2]) {
        await Promise.all(cluster.nodes.map((node) => node.refuse()));
        // The first may still be in flight when the connection ends; the later ones find no node.
        await store.append('svc-a', 0, commandOf(1));
        const append = await store.append('svc-a', 0, commandOf(1));
        expect(append).toMatchObject({ kind: 'unavailable', cause: expect.stringContaining('Failed to discover') });
        await expect(readAll(store, 'svc-a')).rejects.toMatchObject({ code: 'unavailable' });
        await expect(store.ping()).rejects.toMatchObject({ code: 'unavailable' });
        await Promise.all(cluster.nodes.map((node) => node.listen()));
        await workingAgain({ expect, store });
        expect(await appendAtEnd(store, 'svc-a', commandOf(1))).toBe(round);
        expect(await readAll(store, 'svc-a')).toHaveLength(round + 1);
        await store.ping();
      }
    }, impatient),
  );

  it(
    'is unavailable in time for as long as no known node is alive, and then works',
    inCluster(async ({ expect, cluster, store }) => {
      for (const node of cluster.nodes) {
        node.faults.noNodes = true;
        node.cut();
      }
      await store.append('svc-a', 'no_stream', commandOf(1));
      for (let round = 0; round < 3; round += 1) {
        const started = performance.now();
        expect((await store.append('svc-a', 'no_stream', commandOf(1))).kind).toBe('unavailable');
        expect(performance.now() - started).toBeLessThan(impatient.appendMs);
      }
      for (const node of cluster.nodes) node.faults.noNodes = false;
      await workingAgain({ expect, store });
      await appendAtEnd(store, 'svc-a', commandOf(1));
      await store.ping();
    }, impatient),
  );

  it(
    'is used again as soon as another node leads, when its leader hangs',
    inCluster(async ({ expect, cluster, store }) => {
      await store.append('svc-a', 'no_stream', commandOf(1));
      const leader = cluster.nodes[1];
      // It still accepts connections and calls, and answers none.
      Object.assign(leader!.faults, { silentGossip: true, silentReads: true, silentFeatures: true });
      leader!.faults.choose = () => ({ kind: 'silent' });
      const events = commandOf(2);
      expect((await store.append('svc-a', 0, events)).kind).toBe('unknown');
      cluster.lead(0);
      const started = performance.now();
      expect(await appendSurely(store, 'svc-a', 0, events)).toEqual({ kind: 'appended', revision: 2 });
      expect(performance.now() - started).toBeLessThan(2 * impatient.appendMs);
      // The client for reads notices later.
      const read = (): Promise<number> =>
        readAll(store, 'svc-a')
          .then(({ length }) => length)
          .catch(() => 0);
      await expect.poll(read, { timeout: 40_000 }).toBe(3);
      expect(leader!.log.stream('svc-a')?.events).toHaveLength(3);
    }, impatient),
  );

  it(
    'is followed without a gap or a repeat through a change of leader and the loss of a node',
    inCluster(async ({ expect, cluster, store }) => {
      const { kinds, revisions, stop } = following(store);
      await expect.poll(() => kinds, { timeout: 20_000 }).toContain('caught_up');
      for (let round = 0; round < 4; round += 1) {
        for (let count = 0; count < 5; count += 1) await appendAtEnd(store, 'svc-a', commandOf(3));
        const [from, to] = round % 2 === 0 ? [1, 0] : [0, 1];
        cluster.lead(to);
        if (round < 2) continue;
        await cluster.nodes[from]!.refuse();
        await appendAtEnd(store, 'svc-a', commandOf(1));
        await cluster.nodes[from]!.listen();
      }
      const expected = (await readAll(store, 'svc-a')).map(({ revision }) => revision);
      expect(expected).toHaveLength(62);
      await expect.poll(() => revisions.length, { timeout: 20_000 }).toBe(expected.length);
      await stop();
      expect(revisions).toEqual(expected);
      expect(kinds).toContain('dropped');
    }),
  );
});
