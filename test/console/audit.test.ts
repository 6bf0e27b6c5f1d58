/** The audit in the console: sentences by day, filters that the address keeps, files (`docs/contract/console.md#pages`). */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { goTo } from '../../bench/console/pages.js';
import { openBrowser } from './support/browser.js';
import { expectAccessible } from './support/faults.js';
import { openSite, type Site } from './support/site.js';
import { expectAbsent, expectCount, expectSearch, expectTexts } from './support/waiting.js';

const browser = await openBrowser();

describe.skipIf(browser === undefined)('the audit', () => {
  let site: Site;
  beforeAll(async () => {
    site = await openSite(browser!);
    const make = (path: string, body: object): Promise<{ readonly id: string }> => site.admin.call('POST', path, body);
    const { id } = await make('/api/l4-upstreams', { name: 'web', endpoint: 'a.example:80' });
    await site.admin.call('PUT', `/api/l4-upstreams/${id}`, { endpoint: 'b.example:80' });
    const node = await make('/api/nodes', { name: 'edge-1', description: '=1+1' });
    await site.admin.call('PUT', '/api/nodes/ports/policies', {
      nodeId: node.id,
      transport: 'tcp',
      listenAddr: '192.0.2.1',
      listenPort: 443,
      priorityOrder: ['tls'],
    });
  });
  afterAll(() => site.close());

  test('says in sentences who did what, under the day; sign-ins only if one wants them; free text finds names', async () => {
    const page = await site.openAs('admin', '/audit');
    await expectTexts(page.getByRole('heading', { level: 2 })).toEqual([
      expect.stringMatching(/^\w+day,? \d{1,2} \w+ \d{4}$/),
    ]);
    const entry = (words: string | RegExp) => page.getByRole('listitem').filter({ hasText: words });
    await expectCount(entry('admin changed endpoint of upstream web: a.example:80 → b.example:80')).toBe(1);
    await expectCount(entry('admin added upstream web: endpoint a.example:80')).toBe(1);
    await expectCount(entry(/listener policy edge-1 tcp 192\.0\.2\.1:443/)).toBe(1);
    await expectAbsent(page, entry('signed in'));
    await expectAccessible(page);
    await page.getByLabel('Sign-ins').check();
    await entry('admin signed in').first().waitFor();
    await expectSearch(page).toBe('?sign_ins=true');
    await goTo(page, '/audit');
    await page.getByLabel('Find by name or person').fill('web');
    await expectSearch(page).toBe('?q=web');
    await expectCount(page.getByRole('listitem')).toBe(2);
    // Somebody else's change appears without a reload.
    await site.admin.call('POST', '/api/l4-upstreams', { name: 'web 2', endpoint: 'c.example:80' });
    await entry('admin added upstream web 2').waitFor();
  });

  test('is saved as the filters leave it, for a spreadsheet and for a program', async () => {
    const page = await site.openAs('viewer', '/audit?q=edge-1');
    const save = async (as: string): Promise<string> => {
      await page.getByRole('button', { name: 'Export' }).click();
      const [file] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('menuitem', { name: as }).click(),
      ]);
      return readFileSync(await file.path(), 'utf8');
    };
    const rows = (await save('As CSV')).trim().split('\r\n');
    expect(rows).toEqual([expect.stringMatching(/^at,actor,/), expect.stringContaining(',node.create,node,')]);
    expect(JSON.parse(await save('As JSON'))).toEqual([expect.objectContaining({ action: 'node.create' })]);
  });

  test('leads from an entry to its API token only those who may see that', async () => {
    const made = await site.admin.call<{ token: string }>('POST', '/api/auth/tokens', { name: 'robot', role: 'admin' });
    const authorization = `Bearer ${made.token}`;
    const target = { name: 'made by a robot', endpoint: 'f.example:80' };
    const { id } = await site.admin.call<{ id: string }>('POST', '/api/l4-upstreams', target, { authorization });
    const { items } = await site.admin.call<{ items: { id: string }[] }>('GET', `/api/audit?resource_id=${id}`);
    const tokenOf = async (role: 'admin' | 'operator') => {
      const page = await site.openAs(role, `/audit?entry=${items[0]!.id}`);
      await page.getByRole('dialog').getByText('robot', { exact: true }).waitFor();
      return page.getByRole('dialog').getByRole('link', { name: 'robot', exact: true });
    };
    await expectCount(await tokenOf('admin')).toBe(1);
    await expectCount(await tokenOf('operator')).toBe(0);
  });

  test('a change that waits for a person is confirmed in its entry', async () => {
    const { id } = await site.admin.call<{ id: string }>('POST', '/api/l4-upstreams', {
      name: 'late',
      endpoint: 'd.example:80',
    });
    const change = { endpoint: 'e.example:80' };
    await site.admin.call('PUT', `/api/l4-upstreams/${id}?confirm=manual&confirm_secs=86400`, change);
    const newest = async () => {
      const { items } = await site.admin.call<{ items: readonly { id: string; confirm: object | null }[] }>(
        'GET',
        `/api/audit?resource_id=${id}`,
      );
      return items[0];
    };
    const entry = await newest();
    const page = await site.openAs('admin', `/audit?entry=${entry?.id}`);
    await page.getByText('Waits for a confirmation').waitFor();
    await page.getByRole('button', { name: 'Confirm', exact: true }).click();
    await page.getByText('Confirmed by admin').waitFor();
    expect((await newest())?.confirm).toMatchObject({ confirmed_by: { name: 'admin' } });
  });

  test('is narrowed to a time that is picked by day, hour and minute, in the reader’s zone', async () => {
    const page = await site.openAs('viewer', '/audit?from=2030-01-31T11:30:00.000Z', { timezoneId: 'Asia/Tokyo' });
    const from = page.getByRole('button', { name: 'From 31 Jan 2030, 20:30' });
    await page.getByText('No matches').waitFor();
    await from.click();
    await page.getByRole('button', { name: '30 January 2030' }).click();
    await page.getByLabel('Hours').fill('06');
    await expectAccessible(page);
    await page.getByRole('button', { name: 'Done' }).click();
    await expectSearch(page).toBe(`?from=${encodeURIComponent('2030-01-29T21:30:00.000Z')}`);
    await page.getByRole('button', { name: 'Clear From' }).click();
    await expectSearch(page).toBe('');
    await page.getByText('admin added upstream web: endpoint a.example:80').waitFor();
  });

  test('names both upstreams where the target of a chain was changed', async () => {
    const make = (path: string, body: object) => site.admin.call<{ id: string }>('POST', path, body);
    const [from, to] = [
      await make('/api/l4-upstreams', { name: 'old shop', endpoint: 'g.example:80' }),
      await make('/api/l4-upstreams', { name: 'new shop', endpoint: 'h.example:80' }),
    ];
    const node = await make('/api/nodes', { name: 'seller', address: '192.0.2.7' });
    const hops = [{ node_id: node.id, listen_addr: '192.0.2.7', listen_port: 443, outer: 'tcp', security: 'raw' }];
    const chain = await make('/api/l4-chains', {
      name: 'sales',
      payload: 'tcp',
      hops,
      target: { upstream_id: from.id },
    });
    await site.admin.call('PUT', `/api/l4-chains/${chain.id}`, { target: { upstream_id: to.id } });
    const page = await site.openAs('viewer', `/audit?resource_id=${chain.id}`);
    await page.getByText('admin changed target of chain sales: old shop → new shop').waitFor();
  });
});
