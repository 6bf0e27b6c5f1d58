/**
 * The tamper-evident log on the real service with embedded stores: what it says of a log that somebody has changed, and what
 * `log:verify` proves before and after a rotation of the master key, an export and an import (`docs/log-chain.md`).
 */
import { cp, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { signIn } from '../../scripts/stack/rest-client.js';
import type { ServiceProcess } from '../../scripts/stack/service.js';
import { prepareService } from '../../scripts/stack/service.js';
import { runScript } from '../support/programs.js';
import type { ScriptOutcome } from '../support/programs.js';
import { proof } from '../support/proof.js';
import { tamper } from '../support/tampering.js';

let root: string;
let good: string;
let folders = 0;

const environment = (dataDir: string, more: object = {}): Readonly<Record<string, string>> => ({
  SVC_DATA_DIR: dataDir,
  SVC_HTTP_LISTEN_ADDR: '127.0.0.1:0',
  ...more,
});
const verify = (dataDir: string, ...args: readonly string[]): Promise<ScriptOutcome> =>
  runScript('log-verify', args, environment(dataDir));

/** A copy of the good folder that may be spoilt. */
async function copy(): Promise<string> {
  folders += 1;
  const folder = join(root, `copy-${folders}`);
  await cp(good, folder, { recursive: true });
  return folder;
}

async function serving<T>(
  dataDir: string,
  use: (service: ServiceProcess) => Promise<T>,
  start: Parameters<ServiceProcess['start']>[0] = {},
): Promise<T> {
  const service = await prepareService({ dataDir });
  await service.start(start);
  try {
    return await use(service);
  } finally {
    await service.stop();
  }
}

/** What a service says that must not write, asked in every way. */
async function readOnly(service: ServiceProcess): Promise<{ readonly reason: string; readonly refusal: string }> {
  const readiness = await fetch(`${service.url}/readyz`, { signal: AbortSignal.timeout(5_000) });
  const { ready, reasons } = (await readiness.json()) as { ready: boolean; reasons: readonly string[] };
  expect([readiness.status, ready]).toEqual([503, false]);
  const admin = await service.admin();
  const answer = await admin.send('POST', '/api/nodes', { name: 'refused', address: '192.0.2.9' });
  expect(answer.status).toBe(503);
  expect((await admin.send('GET', '/api/nodes')).status).toBe(200);
  return { reason: reasons.find((one) => one.includes('read-only')) ?? '', refusal: String(answer.body.error) };
}

const metric = async (service: ServiceProcess, name: string): Promise<number> =>
  Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(await (await fetch(`${service.url}/metrics`)).text())?.[1]);
const headsOf = ({ out }: ScriptOutcome): readonly string[] =>
  Array.from(out.matchAll(/head (\S+)$/gm), ([, head]) => head!);

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'tampered-'));
  good = join(root, 'good');
  await serving(good, async (service) => {
    const admin = await service.admin();
    for (const name of ['a', 'b', 'c']) await admin.call('POST', '/api/nodes', { name, address: '192.0.2.1' });
    expect(service.program().output()).toMatch(
      /"stream":"svc-fleet","head":"svc-fleet@0:[\w-]{43}".*the log chain begins/,
    );
  });
}, 90_000);
afterAll(async () => {
  await rm(root, { recursive: true, force: true });
});

test('a log that nobody touched is proven; one whose end was cut off is found out by a head that was kept', async () => {
  const [folder, before] = [await copy(), await copy()];
  const [fleet, accounts] = (await proof(folder)).heads;
  await serving(folder, async (service) => {
    expect(await metric(service, 'svc_log_broken')).toBe(0);
    // Each start tells the heads that it finds.
    for (const head of [fleet, accounts]) expect(service.program().output()).toContain(`"head":"${head}"`);
    await (await service.admin()).call('POST', '/api/nodes', { name: 'd', address: '192.0.2.4' });
  });
  const proven = await verify(folder, '--contains', fleet!, '--ends-on', accounts!);
  expect(proven.code).toBe(0);
  const [kept] = headsOf(proven);
  expect(proven.out).toContain('The log is complete and undamaged.');
  // The folder as it was is the log without its end.
  expect((await proof(before)).problems).toEqual([]);
  expect(await verify(before, '--contains', kept!)).toMatchObject({
    code: 1,
    out: expect.stringMatching(
      /PROBLEM: svc-fleet ends at revision \d+: it was cut off before the expected head svc-fleet@/,
    ),
  });
  expect(await verify(before, '--contains', 'svc-fleet@1')).toMatchObject({ code: 2 });
}, 60_000);

describe('a changed event', () => {
  test('of the fleet makes the service unready and read-only, and is named by it and by log:verify', async () => {
    const folder = await copy();
    await tamper(folder, 'svc-fleet', 2, (text) => text.replace('192.0.2.1', '203.0.113.66'));
    const commandId = await serving(
      folder,
      async (service) => {
        const { reason, refusal } = await readOnly(service);
        const [, id] =
          /breaks at revision 2, command ([\w-]{36}): its MAC does not fit its events: it was altered$/.exec(reason) ??
          [];
        expect(reason).toMatch(/^this instance is read-only: the log chain of svc-fleet breaks at revision 2, /);
        expect(refusal).toBe(`unavailable: ${reason}`);
        expect(await metric(service, 'svc_log_broken')).toBe(1);
        expect(await metric(service, 'svc_delivery_revision')).toBe(1);
        expect(service.program().output()).toMatch(
          /"error":"BrokenChainError: the log chain of svc-fleet breaks at revision 2/,
        );
        return id;
      },
      { unready: true },
    );
    expect(await verify(folder)).toMatchObject({
      code: 1,
      out: expect.stringMatching(`PROBLEM: .*svc-fleet breaks at revision 2, command ${commandId}: .*it was altered\n`),
    });
  }, 60_000);

  test('of the accounts does the same', async () => {
    const folder = await copy();
    await tamper(folder, 'svc-accounts', 1, (text) => text.replace('"role":"admin"', '"role":"viewer"'));
    const service = await prepareService({ dataDir: folder });
    try {
      await service.start({ unready: true });
      const answer = await fetch(`${service.url}/readyz`, { signal: AbortSignal.timeout(5_000) });
      expect(answer.status).toBe(503);
      expect(await answer.text()).toMatch(/read-only: the log chain of svc-accounts breaks at revision 1, command /);
      // The account that was changed is not taken over.
      await expect(signIn(service.url, 'admin', 'a password for the demo only')).rejects.toThrow();
    } finally {
      await service.stop();
    }
    expect((await proof(folder)).problems).toEqual([
      expect.stringMatching(/svc-accounts breaks at revision 1, command [\w-]{36}: .*it was altered$/),
    ]);
  }, 60_000);

  test('that was deleted, alone or with its whole command, is named as well', async () => {
    const folder = await copy();
    await tamper(folder, 'svc-fleet', 3, () => undefined);
    expect((await proof(folder)).problems).toEqual([
      'svc-fleet continues at revision 4 instead of 3: events are missing',
    ]);
    await tamper(folder, 'svc-fleet', 2, () => undefined);
    await serving(
      folder,
      async (service) =>
        expect((await readOnly(service)).reason).toMatch(/read-only: svc-fleet continues at 4 instead of 2$/),
      { unready: true },
    );
    expect((await proof(folder)).problems).toEqual([
      'svc-fleet continues at revision 4 instead of 2: events are missing',
    ]);
  }, 60_000);
});

test('a rotation of the master key, interrupted and repeated, keeps the whole log provable by the new key alone', async () => {
  const folder = await copy();
  const before = (await proof(folder)).heads;
  const old = (await readFile(join(folder, 'master.key'), 'utf8')).trim();
  const next = Buffer.alloc(32, 9).toString('base64');
  const rotate = (): Promise<ScriptOutcome> =>
    runScript('keys-rotate-master', [], environment(folder, { SVC_MASTER_KEY: old, SVC_NEW_MASTER_KEY: next }));
  expect((await rotate()).out).toContain('The log chain goes over to the new key at the next start.');
  expect(await rotate()).toMatchObject({ code: 0 });
  await rm(join(folder, 'master.key'));
  const service = await prepareService({ dataDir: folder, env: { SVC_MASTER_KEY: next } });
  await service.start();
  try {
    const admin = await service.admin();
    await admin.call('POST', '/api/nodes', { name: 'after the rotation', address: '192.0.2.7' });
    const { items } = await admin.call<{ items: readonly object[] }>('GET', '/api/audit?resource_id=log');
    expect(items.map((entry) => (entry as { changes: readonly { before: unknown }[] }).changes[0]?.before)).toEqual([
      expect.stringMatching(/^mk_/),
      expect.stringMatching(/^mk_/),
      null,
      null,
    ]);
  } finally {
    await service.stop();
  }
  const contains = before.flatMap((head) => ['--contains', head]);
  const proven = await runScript('log-verify', contains, environment(folder, { SVC_MASTER_KEY: next }));
  expect(proven).toMatchObject({ code: 0 });
  expect((await proof(folder, old)).problems[0]).toMatch(
    /svc-fleet breaks at revision \d+, command [\w-]{36}: it is linked under the key of another master key.*given one is mk_/,
  );
}, 90_000);

test('an archive and its copy are proven by the heads of the log, and refused under another master key', async () => {
  const archive = join(root, 'archive.jsonl');
  expect(await runScript('log-export', [archive], environment(good))).toMatchObject({ code: 0 });
  const key = (await readFile(join(good, 'master.key'), 'utf8')).trim();
  const heads = (await proof(good)).heads.flatMap((head) => ['--ends-on', head]);
  const withKey = (folder: string, SVC_MASTER_KEY: string) => environment(folder, { SVC_MASTER_KEY });
  expect(await runScript('log-verify', [archive, ...heads], withKey(root, key))).toMatchObject({ code: 0 });

  const target = join(root, 'imported');
  const other = Buffer.alloc(32, 3).toString('base64');
  expect(await runScript('log-import', [archive], withKey(target, other))).toMatchObject({
    code: 1,
    out: expect.stringMatching(
      /PROBLEM: .*svc-fleet breaks at revision 0, .* another master key.*\(the given one is mk_[\w-]+\)/,
    ),
    err: expect.stringContaining('is not imported: its log chain does not hold under the given master key'),
  });
  expect(await runScript('log-import', [archive], withKey(target, key))).toMatchObject({ code: 0 });
  expect(await proof(target, key)).toEqual(await proof(good));
}, 90_000);
