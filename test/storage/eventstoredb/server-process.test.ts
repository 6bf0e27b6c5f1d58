/** The adapter against the test server as a separate process: killed, stopped, and started again on the same folder. */
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it, onTestFinished, vi } from 'vitest';
import { silentLogger } from '../../../src/kernel/logger.js';
import type { EventStore } from '../../../src/storage/event-store.js';
import { openEventStoreDb } from '../../../src/storage/eventstoredb/open.js';
import { freeze } from '../../support/freeze.js';
import { startChild, type Child } from '../children/start-child.js';
import { appendAtEnd, appendSurely, commandOf, readAll } from '../contract/appending.js';
import { following, impatient } from './fixture.js';
import { temporaryFolder } from '../contract/temporary-folder.js';

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let child: Child;
let store: EventStore;
let port = 0;

async function start(): Promise<void> {
  child = startChild('servers/eventstoredb/main', [folder.path, String(port)]);
  port = Number((await child.line((line) => line.startsWith('listening '))).split(' ')[1]);
}

beforeEach(async () => {
  folder = await temporaryFolder();
  port = 0;
  await start();
  store = openEventStoreDb({ url: `esdb://127.0.0.1:${port}?tls=false`, logger: silentLogger });
});
afterEach(async () => {
  await store.close();
  await child.stop('SIGKILL');
  await folder.remove();
});

it('keeps every acknowledged command exactly once through kill -9 and restart, without being opened again', async () => {
  const acknowledged: string[] = [];
  let stop = false;
  const writing = (async () => {
    while (!stop) {
      const events = commandOf(3);
      await appendAtEnd(store, 'svc-a', events).then(
        () => acknowledged.push(...events.map(({ id }) => id)),
        // The read failed while the server was away; the outcome is checked at the end.
        () => delay(20),
      );
    }
  })();
  for (let round = 1; round <= 3; round += 1) {
    const before = acknowledged.length;
    await expect.poll(() => acknowledged.length, { timeout: 40_000 }).toBeGreaterThan(before + 30);
    if (round === 3) break;
    await child.stop('SIGKILL');
    await start();
  }
  stop = true;
  await writing;
  const stored = (await readAll(store, 'svc-a')).map(({ id }) => id);
  expect(new Set(stored).size).toBe(stored.length);
  expect(acknowledged.every((id) => stored.includes(id))).toBe(true);
});

it('succeeds when the server is frozen for a moment', async () => {
  await appendAtEnd(store, 'svc-a', commandOf(1));
  await freeze(child.process);
  const late = appendSurely(store, 'svc-a', 0, commandOf(2));
  await delay(1500);
  child.process.kill('SIGCONT');
  expect(await late).toEqual({ kind: 'appended', revision: 2 });
  expect(await readAll(store, 'svc-a')).toHaveLength(3);
});

it('answers every call when the server hangs under load, and leaves no unhandled rejection', async () => {
  const appends = Array.from({ length: 200 }, (_, index) => ({
    stream: `svc-${index}`,
    events: commandOf(1, { text: 'x'.repeat(50_000) }),
  }));
  await store.close();
  const tuning = { ...impatient, appendMs: 3_000, appendTryMs: 1_000 };
  store = openEventStoreDb({ url: `esdb://127.0.0.1:${port}?tls=false`, logger: silentLogger, tuning });
  await appendAtEnd(store, 'svc-a', commandOf(1));
  await freeze(child.process);
  const outcomes = await Promise.all(appends.map(({ stream, events }) => store.append(stream, 'no_stream', events)));
  expect(outcomes.every(({ kind }) => kind === 'unknown' || kind === 'unavailable')).toBe(true);
  child.process.kill('SIGCONT');
  for (const { stream, events } of appends) {
    expect(await appendSurely(store, stream, 'no_stream', events)).toEqual({ kind: 'appended', revision: 0 });
  }
}, 120_000);

it('notices that the server of a quiet subscription hangs, and resumes after the last event', async () => {
  await store.close();
  // The client finds pings this frequent worth a line on the console.
  vi.spyOn(console, 'warn').mockImplementation(() => undefined);
  onTestFinished(() => void vi.restoreAllMocks());
  const tuning = { keepaliveMs: 1_000 };
  store = openEventStoreDb({ url: `esdb://127.0.0.1:${port}?tls=false`, logger: silentLogger, tuning });
  await appendAtEnd(store, 'svc-a', commandOf(2));
  const { kinds, revisions, stop } = following(store);
  await expect.poll(() => kinds, { timeout: 20_000 }).toContain('caught_up');
  await freeze(child.process);
  await expect.poll(() => kinds, { timeout: 40_000 }).toContain('dropped');
  child.process.kill('SIGCONT');
  await appendAtEnd(store, 'svc-a', commandOf(2));
  await expect.poll(() => revisions, { timeout: 40_000 }).toEqual([0, 1, 2, 3]);
  await stop();
}, 120_000);
