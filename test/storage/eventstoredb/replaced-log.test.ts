/** A log that is replaced under its followers: told when it begins, once a minute, and when it ends. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { EventStore } from '../../../src/storage/event-store.js';
import { openEventStoreDb } from '../../../src/storage/eventstoredb/open.js';
import { followLog, type FollowItem } from '../../../src/storage/follow.js';
import { startEventStoreDb, type EventStoreDbServer } from '../../servers/eventstoredb/server.js';
import { eventually } from '../../support/eventually.js';
import { createManualClock } from '../../support/manual-clock.js';
import { appendSurely, commandOf } from '../contract/appending.js';
import { impatient, recordingLogger, type LogLine } from './fixture.js';

const clock = createManualClock();
let server: EventStoreDbServer;
let store: EventStore;
let lines: LogLine[];
let items: FollowItem[];
let stop: AbortController;
let following: Promise<unknown>;

beforeEach(async () => {
  [lines, items, stop] = [[], [], new AbortController()];
  server = await startEventStoreDb();
  store = openEventStoreDb({ url: server.url, logger: recordingLogger(lines), clock, tuning: impatient });
  await appendSurely(store, 'svc-a', 'no_stream', commandOf(3));
  const follow = async (): Promise<void> => {
    for await (const item of followLog(store, { streams: ['svc-a'], after: 'start', signal: stop.signal }))
      items.push(item);
  };
  // As an instance has several.
  following = Promise.all([follow(), follow()]);
  await eventually(() => items.filter(({ kind }) => kind === 'caught_up').length).toBe(2);
});
afterEach(async () => {
  stop.abort();
  await following;
  await store.close();
  await server.close();
});

async function replace(log?: EventStoreDbServer['log']): Promise<void> {
  const { port } = server;
  await server.close();
  server = await startEventStoreDb(log === undefined ? { port } : { port, log });
}
const told = (): readonly string[] => lines.filter(({ level }) => level === 'error').map(({ message }) => message);
const refusals = (): number =>
  items.filter((item) => item.kind === 'dropped' && String(item.cause).includes('not the one')).length;
async function moreRefusals(count: number): Promise<void> {
  const before = refusals();
  await eventually(() => refusals() - before).toBeGreaterThan(count);
}

it('that is shorter is told once, each minute again, and when it is back', async () => {
  const { log } = server;
  await replace();
  await moreRefusals(4);
  const shorter = 'it is shorter than it was, emptied or restored from an older backup: it ends at';
  expect(told()).toEqual([expect.stringContaining(shorter)]);
  clock.advance(60_000);
  await moreRefusals(4);
  expect(told()).toEqual([expect.stringContaining(shorter), expect.stringContaining(shorter)]);

  await replace(log);
  await appendSurely(store, 'svc-a', 2, commandOf(1));
  await eventually(() => items.filter(({ kind }) => kind === 'commands').length).toBe(4);
  expect(lines.filter(({ message }) => message.endsWith('again the one that was followed'))).toHaveLength(1);
  expect(told()).toHaveLength(2);
});
