/**
 * Backups that the real service makes by itself, and what `maintenance restore` makes of them: `docs/contract/joining.md#backups`,
 * `docs/how-to/restore.md`.
 */
import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { eventually } from '../../scripts/stack/process.js';
import { prepareService, type ServiceProcess } from '../../scripts/stack/service.js';
import { runMaintenance, runMaintenanceProgram } from '../support/programs.js';
import { onStorePairs, type StorePair } from '../support/store-pairs.js';

const named = /^backup-([0-9a-f-]{36})-\d{8}T\d{6}Z\.svclog$/;

async function metric(service: ServiceProcess, name: string): Promise<number | undefined> {
  const text = await (await fetch(`${service.url}/metrics`)).text();
  const [, value] = new RegExp(`^${name} (\\S+)$`, 'm').exec(text) ?? [];
  return value === undefined ? undefined : Number(value);
}

interface NodeItem {
  readonly id: string;
  readonly generation: number;
}

async function nodesOf(service: ServiceProcess): Promise<readonly NodeItem[]> {
  const { items } = await (await service.admin()).call<{ items: readonly NodeItem[] }>('GET', '/api/nodes?sort=name');
  return items.map(({ id, generation }) => ({ id, generation }));
}

onStorePairs('backups by the service', (stores) => {
  test('are made at the start, proven, kept apart from what a kill leaves, and restored into empty stores', async () => {
    const root = await mkdtemp(join(tmpdir(), 'backups-'));
    const folder = join(root, 'backups');
    const pairs: StorePair[] = [await stores.open()];
    const key = { SVC_MASTER_KEY: randomBytes(32).toString('base64') };
    const first = { ...pairs[0]!.env, ...key };
    const service = await prepareService({ dataDir: join(root, 'data'), env: first });
    const verified = (...args: string[]) => runMaintenance('log:verify', args, key);
    try {
      await service.start();
      const admin = await service.admin();
      for (const name of ['a', 'b']) await admin.call('POST', '/api/nodes', { name, address: '192.0.2.1' });
      const before = await nodesOf(service);
      expect(await metric(service, 'svc_backup_bytes')).toBeUndefined();
      await service.stop();

      service.moveTo({ dataDir: join(root, 'data'), env: { ...first, SVC_BACKUP_DIR: folder } });
      await service.start();
      const file = await eventually('a backup is there', async () => {
        const files = await readdir(folder);
        return files.find((name) => named.test(name));
      });
      const [path, id] = [join(folder, file), named.exec(file)![1]];
      const { size, mode } = await stat(path);
      expect(mode & 0o777).toBe(0o600);
      await eventually('its metrics are shown', async () =>
        (await metric(service, 'svc_backup_bytes')) === size ? true : undefined,
      );
      const at = await metric(service, 'svc_backup_last_success_timestamp_seconds');
      expect(new Date(at! * 1000).toISOString().replaceAll(/[-:]|\.000/g, '')).toBe(file.slice(-23, -7));
      await eventually('it is logged', async () =>
        service.program().output().includes('a backup was made and verified') ? true : undefined,
      );
      const proven = await verified(path);
      expect(proven).toMatchObject({ code: 0, out: expect.stringContaining('is complete and proven.') });
      expect(await readFile(path, 'utf8')).not.toContain(key.SVC_MASTER_KEY);

      await service.kill();
      const left = join(folder, `backup-${id}-20260101T000000Z.svclog.unverified.part`);
      await writeFile(left, (await readFile(path)).subarray(0, 3000));
      await service.start();
      await eventually('what was left is gone', async () => ((await readdir(folder)).length === 1 ? true : undefined));
      await eventually('it knows of the backup', async () =>
        (await metric(service, 'svc_backup_last_success_timestamp_seconds')) === at ? true : undefined,
      );
      await service.kill();

      pairs.push(await stores.open());
      const empty = { ...pairs[1]!.env, ...key, SVC_DATA_DIR: join(root, 'restored') };
      const restore = (...args: string[]) => runMaintenanceProgram('restore', args, empty);
      const altered = join(root, 'altered.svclog');
      await writeFile(altered, (await readFile(path, 'utf8')).replace('"192.0.2.1"', '"192.0.2.2"'));
      expect(await restore(altered)).toMatchObject({ code: 1, err: expect.stringContaining('is not imported') });
      const [head = ''] = /svc-fleet@\d+:\S+/.exec(proven.out) ?? [];
      const later = head.replace(/@\d+/, '@999');
      expect(await restore(path, '--contains', later)).toMatchObject({
        code: 1,
        out: expect.stringContaining('was cut off before the expected head'),
        err: expect.stringContaining('is broken, or lacks an expected head'),
      });
      const restored = await restore(path, '--contains', head);
      expect(restored).toMatchObject({ code: 0, out: expect.stringContaining('The log is complete and proven.') });
      expect(await restore(path)).toMatchObject({ code: 0, out: expect.stringContaining('already been imported') });
      service.moveTo({ dataDir: join(root, 'restored'), env: { ...pairs[1]!.env, ...key } });
      await service.start();
      expect(await nodesOf(service)).toEqual(before);
    } finally {
      await service.stop();
      await rm(root, { recursive: true, force: true });
      for (const pair of pairs) await pair.close();
    }
  });
});
