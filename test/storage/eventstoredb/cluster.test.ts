/** A cluster of nodes: the leader is found, followed when it changes, and found again when nobody was there. */
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { EventStore } from '../../../src/storage/event-store.js';
import { openEventStoreDb } from '../../../src/storage/eventstoredb/open.js';
import { followLog } from '../../../src/storage/follow.js';
import { startCluster, type EventStoreDbCluster } from '../../servers/eventstoredb/cluster.js';
import { appendAtEnd, appendSurely, commandOf, readAll } from '../contract/appending.js';
import { recordingLogger, type LogLine } from './house.js';
import { bounds } from '../../../src/storage/bounds.js';

const ids = (events: readonly { id: string }[]): string[] => events.map(({ id }) => id);

describe('a cluster', { timeout: 90_000 }, () => {
  let cluster: EventStoreDbCluster;
  let store: EventStore;
  let lines: LogLine[];
  beforeEach(async () => {
    cluster = await startCluster();
    lines = [];
    store = openEventStoreDb({ url: cluster.url, logger: recordingLogger(lines) });
  });
  afterEach(async () => {
    await store.close();
    await cluster.close();
  });
  const away = (): Promise<unknown> => Promise.all(cluster.nodes.map((node) => node.refuse()));
  /** Connections that were refused for a while are tried again by the gRPC library in its own time, some seconds. */
  const workingAgain = (): Promise<unknown> => {
    const ping = (): Promise<boolean> =>
      store.ping().then(
        () => true,
        () => false,
      );
    return expect.poll(ping, { timeout: 40_000 }).toBe(true);
  };
  const back = (): Promise<unknown> => Promise.all(cluster.nodes.map((node) => node.listen()));

  it('is written and read at its leader only, although the first address is that of a follower', async () => {
    const [follower, leader] = cluster.nodes;
    const events = commandOf(3);
    expect(await store.append('svc-a', 'no_stream', events)).toMatchObject({ kind: 'appended', revision: 2 });
    expect(ids(await readAll(store, 'svc-a'))).toEqual(ids(events));
    expect(follower!.appends()).toBe(0);
    expect(leader!.appends()).toBe(1);
  });

  it('whose leader changes is followed at once: the append is answered, and stands once', async () => {
    for (let round = 0; round < 6; round += 1) {
      cluster.lead(round % 2);
      const outcome = await store.append('svc-a', round === 0 ? 'no_stream' : round - 1, commandOf(1));
      expect(outcome).toMatchObject({ kind: 'appended', revision: round });
    }
    expect(await readAll(store, 'svc-a')).toHaveLength(6);
    // The client moves to the new leader by itself.
    expect(lines.filter(({ level }) => level === 'warn')).toEqual([]);
  });

  it('whose leader changes under load loses no command and has none twice', async () => {
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
  });

  it('tells a conflict when another has written at the new leader what was left unanswered by the old one', async () => {
    const mine = commandOf(2);
    cluster.nodes[1]!.faults.appends = [{ kind: 'deadline' }];
    expect((await store.append('svc-a', 'no_stream', mine)).kind).toBe('unknown');
    cluster.lead(0);
    const others = commandOf(1);
    const other = openEventStoreDb({ url: cluster.url, logger: recordingLogger([]) });
    await appendSurely(other, 'svc-a', 'no_stream', others);
    await other.close();
    expect(await store.append('svc-a', 'no_stream', mine)).toEqual({ kind: 'conflict', actual: 0 });
    expect(ids(await readAll(store, 'svc-a'))).toEqual(ids(others));
  });

  it('of which nobody is there is unavailable for every call, and works again when it is back', async () => {
    await store.append('svc-a', 'no_stream', commandOf(1));
    for (const round of [1, 2]) {
      await away();
      // The first may still be on its way when the connection goes; those after it find nobody.
      await store.append('svc-a', 0, commandOf(1));
      const append = await store.append('svc-a', 0, commandOf(1));
      expect(append).toMatchObject({ kind: 'unavailable', cause: expect.stringContaining('Failed to discover') });
      await expect(readAll(store, 'svc-a')).rejects.toMatchObject({ code: 'unavailable' });
      await expect(store.ping()).rejects.toMatchObject({ code: 'unavailable' });
      await back();
      await workingAgain();
      expect(await appendAtEnd(store, 'svc-a', commandOf(1))).toBe(round);
      expect(await readAll(store, 'svc-a')).toHaveLength(round + 1);
      await store.ping();
    }
    const thrown = lines.filter(({ message }) => message.includes('thrown away'));
    expect(thrown.some(({ message }) => message.includes('appends'))).toBe(true);
  });

  it('that knows no node that lives is unavailable in time, for as long as it takes, and then works', async () => {
    for (const node of cluster.nodes) {
      node.faults.noNodes = true;
      node.cut();
    }
    await store.append('svc-a', 'no_stream', commandOf(1));
    for (let round = 0; round < 3; round += 1) {
      const started = performance.now();
      expect((await store.append('svc-a', 'no_stream', commandOf(1))).kind).toBe('unavailable');
      expect(performance.now() - started).toBeLessThan(bounds.appendTimeoutMs);
    }
    for (const node of cluster.nodes) node.faults.noNodes = false;
    await workingAgain();
    await appendAtEnd(store, 'svc-a', commandOf(1));
    await store.ping();
  });

  it('whose leader hangs is used again as soon as another one leads', async () => {
    await store.append('svc-a', 'no_stream', commandOf(1));
    const [follower, leader] = cluster.nodes;
    // It still takes connections, and calls, and says nothing to any.
    Object.assign(leader!.faults, { silentGossip: true, silentReads: true, silentFeatures: true });
    leader!.faults.choose = () => ({ kind: 'silent' });
    const events = commandOf(2);
    expect((await store.append('svc-a', 0, events)).kind).toBe('unknown');
    follower!.faults.leader = undefined;
    const started = performance.now();
    expect(await appendSurely(store, 'svc-a', 0, events)).toEqual({ kind: 'appended', revision: 2 });
    expect(performance.now() - started).toBeLessThan(2 * bounds.appendTimeoutMs);
    // The reads' client finds out in its own time.
    const read = (): Promise<number> =>
      readAll(store, 'svc-a')
        .then(({ length }) => length)
        .catch(() => 0);
    await expect.poll(read, { timeout: 40_000 }).toBe(3);
    expect(leader!.log.stream('svc-a')?.events).toHaveLength(3);
  });

  it('is followed without a gap or a repeat over a change of leader and the loss of a node', async () => {
    const stop = new AbortController();
    const revisions: number[] = [];
    const kinds = new Set<string>();
    let caughtUp = false;
    const following = (async () => {
      for await (const item of followLog(store, { prefix: 'svc-', after: 'start', signal: stop.signal })) {
        kinds.add(item.kind);
        caughtUp ||= item.kind === 'caught_up';
        if (item.kind !== 'commands') continue;
        revisions.push(...item.commands.flatMap(({ events }) => events.map(({ revision }) => revision)));
      }
    })();
    await expect.poll(() => caughtUp).toBe(true);
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
    stop.abort();
    await following;
    expect(revisions).toEqual(expected);
    expect(kinds).toContain('dropped');
  });
});
