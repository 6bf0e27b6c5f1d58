/**
 * `docs/contract/domain.md#commands-and-events`: the real service beside an event store whose clock is wrong takes no
 * commands and gets no traffic, says so, and recovers by itself.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { eventually } from '../../scripts/stack/process.js';
import { prepareService, type ServiceProcess } from '../../scripts/stack/service.js';
import { startEventStoreDb, type EventStoreDbServer } from '../servers/eventstoredb/server.js';

let folder: string;
let log: EventStoreDbServer;
let service: ServiceProcess;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-clock-'));
  log = await startEventStoreDb();
  const key = Buffer.alloc(32, 7).toString('base64');
  service = await prepareService({
    dataDir: folder,
    env: { SVC_READ_STORE: 'embedded', SVC_EVENTSTORE_URL: log.url, SVC_MASTER_KEY: key },
  });
});
afterEach(async () => {
  await service.stop();
  await log.close();
  await rm(folder, { recursive: true, force: true });
});

const get = (path: string) => fetch(service.url + path, { signal: AbortSignal.timeout(5_000) });
/** Reading a clock takes its time on a busy machine. */
const withinSeconds = 10;
const sentence = (direction: string): RegExp =>
  new RegExp(`the clock of this instance is (5\\d|6\\d|70) s ${direction} the event store's; expected at most 30 s`);
const reasons = async (): Promise<string[]> => ((await (await get('/readyz')).json()) as { reasons: string[] }).reasons;
const difference = async (): Promise<number> => {
  const text = await (await get('/metrics')).text();
  return Number(/^svc_store_clock_difference_seconds\{store="event store"\} (\S+)$/m.exec(text)?.[1]);
};
/** A start takes long on a busy machine. */
const patienceMs = 60_000;
const isReady = () =>
  eventually('it is ready', async () => ((await get('/readyz')).status === 200 ? true : undefined), patienceMs);

test('beside a wrong clock nothing is written, not even by a first start, until it is right again', async () => {
  log.faults.clockAheadMs = -60_000;
  const starting = service.start();
  const told = async () => (sentence('ahead of').test(service.program().output()) ? true : undefined);
  await eventually('the log says why it does not start', told, patienceMs);
  expect(await reasons()).toEqual([expect.stringContaining('the service is starting')]);
  log.faults.clockAheadMs = 0;
  await starting;
  await service.admin();
  await service.stop();

  log.faults.clockAheadMs = 60_000;
  await service.start({ unready: true });
  expect(await reasons()).toEqual([expect.stringMatching(sentence('behind'))]);
  expect(Math.abs((await difference()) + 60)).toBeLessThan(withinSeconds);
  const admin = await service.admin();
  expect((await admin.send('GET', '/api/nodes')).status).toBe(200);
  const node = { name: 'a', issue_psk: false };
  const refused = await admin.send('POST', '/api/nodes', node);
  expect([refused.status, refused.body.error]).toEqual([503, expect.stringMatching(sentence('behind'))]);
  expect(refused.body.error).toContain('nothing was written');

  log.faults.clockAheadMs = 0;
  await isReady();
  expect(Math.abs(await difference())).toBeLessThan(withinSeconds);
  expect((await admin.send('POST', '/api/nodes', node)).status).toBe(201);
}, 180_000);
