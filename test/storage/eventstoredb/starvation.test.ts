/**
 * A node that is cut off from its leader keeps subscriptions alive and delivers nothing more. That is noticed, and the
 * followers go on by another node; meanwhile nobody takes what they have for the end of the log.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { EventStore } from '../../../src/storage/event-store.js';
import { silentLogger } from '../../../src/kernel/logger.js';
import { readAddress } from '../../../src/storage/eventstoredb/address.js';
import { openConnection } from '../../../src/storage/eventstoredb/connection.js';
import { openEventStoreDb } from '../../../src/storage/eventstoredb/open.js';
import { missingAfter, watchForStarvation, type Arrived } from '../../../src/storage/eventstoredb/starvation.js';
import { followLog, type FollowItem } from '../../../src/storage/follow.js';
import { eventually } from '../../support/eventually.js';
import { startCluster, type EventStoreDbCluster } from '../../servers/eventstoredb/cluster.js';
import { appendAtEnd, commandOf } from '../contract/appending.js';
import { createManualClock } from '../../support/manual-clock.js';
import { recordingLogger, writeForeign, type LogLine } from './fixture.js';

const quick = { headEveryMs: 40, starvedMs: 120, starvedCatchingUpMs: 120 };

describe('a subscription to a node that is cut off from its leader', { timeout: 20_000 }, () => {
  let cluster: EventStoreDbCluster;
  let store: EventStore;
  let lines: LogLine[];
  let items: FollowItem[];
  let stop: AbortController;
  let following: Promise<void> | undefined;
  beforeEach(async () => {
    cluster = await startCluster();
    [lines, items, stop, following] = [[], [], new AbortController(), undefined];
    store = openEventStoreDb({ url: cluster.url, logger: recordingLogger(lines), tuning: quick });
  });
  afterEach(async () => {
    stop.abort();
    await following;
    await store.close();
    await cluster.close();
  });

  function follow(handle: (item: FollowItem) => Promise<void> = async () => undefined): void {
    following = (async () => {
      const streams = ['svc-a', 'svc-b'];
      for await (const item of followLog(store, { streams, after: 'start', signal: stop.signal })) {
        items.push(item);
        await handle(item);
      }
    })();
  }
  const kinds = (): string[] => items.map(({ kind }) => kind);
  const revisions = (): number[] =>
    items.flatMap((item) => (item.kind === 'commands' ? item.commands.map(({ events }) => events[0].revision) : []));
  const replaced = (): LogLine[] => lines.filter(({ message }) => message.includes('delivers nothing'));
  /** Makes another node the leader; the subscription stays where it is. */
  function cutOff(node: number): void {
    const { faults, log } = cluster.nodes[node]!;
    faults.cutOffAt = log.head();
    cluster.lead(1 - node);
  }

  it('is replaced by one at another node, which delivers what was missed, once', async () => {
    await appendAtEnd(store, 'svc-a', commandOf(1));
    follow();
    await eventually(kinds).toEqual(['commands', 'caught_up']);
    cutOff(1);
    await appendAtEnd(store, 'svc-a', commandOf(1));
    await appendAtEnd(store, 'svc-a', commandOf(1));
    await eventually(revisions).toEqual([0, 1, 2]);
    await eventually(() => kinds().at(-1)).toBe('caught_up');
    expect(kinds().filter((kind) => kind === 'dropped')).toHaveLength(1);
    expect(store.starved()).toBe(1);
    expect(replaced()).toEqual([
      expect.objectContaining({ level: 'warn', fields: expect.objectContaining({ streams: ['svc-a', 'svc-b'] }) }),
    ]);
  });

  it('does not count as caught up again before the missed event is there, however often it is replaced', async () => {
    await appendAtEnd(store, 'svc-a', commandOf(1));
    follow();
    await eventually(kinds).toEqual(['commands', 'caught_up']);
    // Every node is cut off: each new subscription says that it has reached the end of the log.
    for (const { faults, log } of cluster.nodes) faults.cutOffAt = log.head();
    await appendAtEnd(store, 'svc-a', commandOf(1));
    await eventually(() => store.starved()).toBeGreaterThan(2);
    expect(
      kinds()
        .slice(2)
        .every((kind) => kind === 'dropped'),
    ).toBe(true);
    for (const { faults } of cluster.nodes) faults.cutOffAt = undefined;
    await eventually(() => kinds().at(-1)).toBe('caught_up');
    expect(revisions()).toEqual([0, 1]);
  });

  it('does not count as caught up when it is the first one either', async () => {
    await appendAtEnd(store, 'svc-a', commandOf(1));
    const { faults, log } = cluster.nodes[1]!;
    faults.cutOffAt = log.head();
    await appendAtEnd(store, 'svc-b', commandOf(1));
    follow();
    await eventually(() => store.starved()).toBeGreaterThan(0);
    expect(kinds()).not.toContain('caught_up');
    cluster.lead(0);
    await eventually(kinds).toContain('caught_up');
    expect(items.flatMap((item) => (item.kind === 'commands' ? item.commands : []))).toHaveLength(2);
  });

  it('lacks only what the leader has in its streams, not foreign events', async () => {
    const connection = openConnection(readAddress(cluster.url), 'reads', silentLogger);
    const position = await appendAtEnd(store, 'svc-a', commandOf(1)).then(() => store.headPosition());
    try {
      writeForeign(cluster.nodes[0]!, 3);
      expect(await missingAfter(connection, ['svc-a', 'svc-b'], position)).toBeUndefined();
      await appendAtEnd(store, 'svc-b', commandOf(2));
      expect(await missingAfter(connection, ['svc-a', 'svc-b'], position)).toBe(await store.headPosition());
      expect(await missingAfter(connection, ['svc-a'], position)).toBeUndefined();
    } finally {
      await connection.close();
    }
  });
});

describe('a subscription to which nothing arrives', () => {
  const arrived: Arrived = { messages: 5, position: 100, paused: false, live: true };
  /** Lets the watch look many times, with the heads that the leader reports. */
  async function starvedAfterLooks(
    newest: number,
    is: () => Arrived,
  ): Promise<readonly { readonly position: number; readonly afterMs: number }[]> {
    const starved: { position: number; afterMs: number }[] = [];
    const clock = createManualClock();
    let looks = 0;
    const watch = watchForStarvation({
      clock,
      everyMs: 1,
      starvedMs: 5_000,
      starvedCatchingUpMs: 30_000,
      arrived() {
        looks += 1;
        clock.advance(400);
        return is();
      },
      missing: async (position) => (newest > position ? newest : undefined),
      onStarved: (position) => starved.push({ position, afterMs: clock.monotonic() }),
      onError: (error) => expect.fail(String(error)),
    });
    await eventually(() => looks).toBeGreaterThan(300);
    await watch.close();
    return starved;
  }

  it('is starved when the leader has an event that it lacks: for longer while it still reads the log', async () => {
    const [live] = await starvedAfterLooks(120, () => arrived);
    expect(live?.position).toBe(120);
    expect(live?.afterMs).toBeGreaterThanOrEqual(5_000);
    expect(live?.afterMs).toBeLessThan(10_000);
    const [early] = await starvedAfterLooks(120, () => ({ ...arrived, live: false }));
    expect(early?.afterMs).toBeGreaterThanOrEqual(30_000);
  });

  it('is not, when its consumer is slow, or when something arrives now and then', async () => {
    expect(await starvedAfterLooks(120, () => ({ ...arrived, paused: true }))).toEqual([]);
    let messages = 0;
    const slowly = (): Arrived => ({ ...arrived, messages: Math.floor((messages += 1) / 5) });
    expect(await starvedAfterLooks(120, slowly)).toEqual([]);
  });
});
