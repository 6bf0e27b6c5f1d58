/** Some file systems, such as those of memory cards and some network shares, have no hard links. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import type * as files from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { initialPasswordFile } from '../../src/app/first-admin.js';
import { loadMasterKey } from '../../src/security/master-key.js';
import { startAccounts } from '../support/accounts-fixture.js';
import { createCommandFixture } from '../support/command-fixture.js';

vi.mock('node:fs/promises', async (original) => ({
  ...(await original<typeof files>()),
  link: () => Promise.reject(Object.assign(new Error('operation not permitted, link'), { code: 'EPERM' })),
}));

test('without hard links, a first start creates the master key and the admin all the same', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'no-links-'));
  const fixture = await createCommandFixture();
  const instance = await startAccounts(fixture);
  try {
    expect(await loadMasterKey({ dataDir: folder, mayCreate: true })).toMatchObject({ ok: true });
    await instance.firstAdmin(folder);
    expect(readdirSync(folder).toSorted()).toEqual([initialPasswordFile, 'master.key']);
    const password = readFileSync(join(folder, initialPasswordFile), 'utf8').trim();
    expect(await instance.handlers.login('admin', password, '192.0.2.1', 'r')).toMatchObject({
      user: { username: 'admin' },
    });
  } finally {
    await instance.close();
    await fixture.close();
    rmSync(folder, { recursive: true });
  }
});
