/**
 * Drill of `docs/how-to/shared-eventstoredb.md`: other programs write to the server that has the log, into streams of their
 * own with names like ours, and by mistake into ours. One service, its restarts, and the commands that read the log.
 */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { freePorts, startProgram } from '../../scripts/stack/process.js';
import { prepareService, type ServiceProcess } from '../../scripts/stack/service.js';
import { agentStreams } from '../../src/kernel/event.js';
import { startEventStoreDb, type EventStoreDbServer } from '../servers/eventstoredb/server.js';
import { eventually } from '../support/eventually.js';
import { foreignKinds } from '../support/foreign-events.js';
import { runMaintenanceSeries } from '../support/programs.js';

const SVC_MASTER_KEY = Buffer.alloc(32, 7).toString('base64');
const kinds = Object.keys(foreignKinds) as readonly (keyof typeof foreignKinds)[];

let log: EventStoreDbServer;
let folder: string;
let service: ServiceProcess;
let env: Readonly<Record<string, string>>;

beforeEach(async () => {
  log = await startEventStoreDb();
  folder = await mkdtemp(join(tmpdir(), 'foreign-'));
  env = { SVC_EVENTSTORE_URL: log.url, SVC_READ_STORE: 'embedded', SVC_MASTER_KEY };
  service = await prepareService({ dataDir: join(folder, 'data'), env });
});
afterEach(async () => {
  await service.stop();
  await log.close();
  await rm(folder, { recursive: true, force: true });
});

/** @returns the event's id */
function write(stream: string, kind: keyof typeof foreignKinds): string {
  const id = randomUUID();
  const { kind: outcome } = log.log.append(stream, { kind: 'any' }, [{ id, ...foreignKinds[kind] }]);
  expect(outcome).toBe('success');
  return id;
}
const head = (stream: string): number => log.log.stream(stream)!.events.length - 1;
/** Lines of level error that name an event of somebody else. */
const told = (): readonly { readonly stream: string; readonly revision: number; readonly event_id: string }[] =>
  service
    .program()
    .output()
    .split('\n')
    .filter((line) => line.includes('"event_id"') && line.includes('somebody else has written'))
    .map((line) => JSON.parse(line));
/** Other errors, without those of a busy machine, on which the store may answer late. */
const errors = (): readonly string[] =>
  service
    .program()
    .output()
    .split('\n')
    .filter((line) => line.includes('"level":"error"') && !/somebody else has written|out of reach/.test(line));
async function metrics(name: string): Promise<Readonly<Record<string, number>>> {
  const text = await (await fetch(`${service.url}/metrics`)).text();
  const rows = text.matchAll(new RegExp(`^${name}(?:\\{stream="([^"]+)"\\})? (\\d+)$`, 'gm'));
  return Object.fromEntries(Array.from(rows, ([, stream = '', value]) => [stream, Number(value)]));
}
async function readiness(): Promise<readonly [number, string]> {
  const answer = await fetch(`${service.url}/readyz`);
  return [answer.status, await answer.text()];
}
/** Adds a node, and waits until everything that follows the log shows it: memory, the read models and the feed. */
async function addNode(name: string): Promise<void> {
  const admin = await service.admin();
  const { id } = await admin.call<{ id: string }>('POST', '/api/nodes', { name, address: '192.0.2.1' });
  await eventually(async () => {
    const audit = await admin.call<{ items: readonly { resource_id: string }[] }>('GET', '/api/audit');
    const feed = await admin.call<{ items: readonly object[] }>('GET', '/api/events?after=start&page_size=500');
    return [JSON.stringify(audit).includes(id), JSON.stringify(feed).includes(id)];
  }).toEqual([true, true]);
}

const others = ['svc-orders-1', 'svc-fleet-2', 'svc-agents-16'];
const facts = ['svc-signins', agentStreams[3]!, 'svc-webhooks'];

test('streams of others and foreign facts stop nothing: a first start, a running service, a restart, and each command', async () => {
  for (const stream of [...others, ...facts]) write(stream, 'withoutMetadata');
  await service.start();
  await addNode('first');
  for (const stream of [...others, ...facts]) for (const kind of kinds) write(stream, kind);
  await addNode('second');
  const expected = Object.fromEntries(facts.map((stream) => [stream, kinds.length + 1]));
  await eventually(() => metrics('svc_log_foreign_events_total')).toEqual(expected);
  expect(await readiness()).toEqual([200, expect.anything()]);
  expect(told()).toHaveLength(facts.length * (kinds.length + 1));
  expect(new Set(told().map(({ stream }) => stream))).toEqual(new Set(facts));
  expect(new Set(told().map(({ event_id }) => event_id)).size).toBe(told().length);
  expect(errors()).toEqual([]);
  expect(await metrics('svc_log_broken')).toEqual({ '': 0 });

  await service.stop();
  await service.start();
  await addNode('third');
  expect(errors()).toEqual([]);
  await service.stop();

  const here = { ...env, SVC_DATA_DIR: join(folder, 'data') };
  const there = { SVC_DATA_DIR: join(folder, 'there'), SVC_MASTER_KEY };
  const archive = join(folder, 'log.jsonl');
  const outcomes = await runMaintenanceSeries([
    { name: 'log:verify', args: [], env: here },
    { name: 'log:export', args: [archive], env: here },
    { name: 'projections:rebuild', args: [], env: here },
    { name: 'projections:rebuild', args: ['--check'], env: here },
    { name: 'log:verify', args: [archive], env: there },
    { name: 'log:import', args: [archive], env: there },
    { name: 'log:verify', args: [], env: there },
  ]);
  expect(outcomes).toMatchObject([
    { code: 0, out: expect.stringContaining('complete and proven') },
    { code: 0, err: expect.stringContaining('svc-signins') },
    ...Array.from({ length: 5 }, () => ({ code: 0 })),
  ]);
}, 240_000);

describe('an event of somebody else in', () => {
  test.each([
    ['svc-fleet', 'withoutMetadata'],
    ['svc-keyring', 'malformedData'],
  ] as const)(
    '%s makes the instance read-only at once, told once; it does not start again',
    async (stream, kind) => {
      await service.start();
      await addNode('before');
      const admin = await service.admin();
      const id = write(stream, kind);
      const revision = head(stream);
      const sentence = `${stream}@${revision} (event ${id}) was not written by this service`;
      await eventually(readiness).toEqual([503, expect.stringContaining(sentence)]);
      await expect(admin.call('POST', '/api/nodes', { name: 'after', address: '192.0.2.2' })).rejects.toThrow(
        /read-only.*docs\/how-to\/shared-eventstoredb\.md/,
      );
      expect(JSON.stringify(await admin.call('GET', '/api/nodes'))).toContain('"before"');
      await eventually(told).toEqual([expect.objectContaining({ stream, revision, event_id: id })]);
      expect(errors()).toEqual([]);
      expect(await metrics('svc_log_broken')).toEqual({ '': 1 });
      expect(await metrics('svc_log_foreign_events_total')).toEqual({ [stream]: 1 });
      await service.stop();

      const [http, control] = await freePorts(2);
      const listening = { SVC_HTTP_LISTEN_ADDR: `127.0.0.1:${http}`, SVC_REALITY_LISTEN_ADDR: `127.0.0.1:${control}` };
      const again = startProgram('main', { ...env, ...listening, SVC_DATA_DIR: join(folder, 'data') });
      await once(again.child, 'close');
      expect(again.child.exitCode).toBe(1);
      expect(again.output()).toContain(`The start is refused: ${sentence}`);

      await goesOn(stream, revision, sentence);
    },
    120_000,
  );
});

/** What finds the event, and the way out: an export without it, in a log of its own. */
async function goesOn(stream: string, revision: number, sentence: string): Promise<void> {
  const archive = join(folder, 'without.jsonl');
  const here = { ...env, SVC_DATA_DIR: join(folder, 'data') };
  const there = { SVC_DATA_DIR: join(folder, 'there'), SVC_MASTER_KEY };
  // An export leaves out by itself what is in the keyring's stream.
  const chained = stream !== 'svc-keyring';
  const whole = { name: 'log:export', args: [`${archive}.whole`], env: here };
  const upTo = chained ? ['--up-to', `${stream}@${revision - 1}`] : [];
  const outcomes = await runMaintenanceSeries([
    { name: 'log:verify', args: [], env: here },
    { name: 'projections:rebuild', args: [], env: here },
    ...(chained ? [whole] : []),
    { name: 'log:export', args: [archive, ...upTo], env: here },
    { name: 'log:import', args: [archive], env: there },
  ]);
  expect(outcomes).toMatchObject([
    { code: 4, out: expect.stringContaining(`PROBLEM: ${sentence}`) },
    { code: 1 },
    ...(chained ? [{ code: 1, err: expect.stringContaining(`${stream}@${revision}`) }] : []),
    { code: 0 },
    { code: 0 },
  ]);
  service.moveTo({ dataDir: there.SVC_DATA_DIR, env: { SVC_MASTER_KEY } });
  await service.start();
  expect(JSON.stringify(await (await service.admin()).call('GET', '/api/nodes'))).toContain('"before"');
}
