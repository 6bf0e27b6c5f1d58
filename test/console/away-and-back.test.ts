/** Live pages: a service that is killed and comes back, and lists of more than a page (`docs/contract/console.md#rules`). */
import { afterAll, beforeAll, describe, test } from 'vitest';
import { startAgentProcess } from '../../scripts/stack/agent.js';
import type { RunningProgram } from '../../scripts/stack/process.js';
import { prepareService, type ServiceProcess } from '../../scripts/stack/service.js';
import { openBrowser } from './support/browser.js';
import { openSiteOf, type Site } from './support/site.js';
import { expectAbsent, expectCount, expectOpacity, expectText } from './support/waiting.js';

const browser = await openBrowser();
const rowsMax = 60;

describe.skipIf(browser === undefined)('a page that stays open', () => {
  let site: Site<ServiceProcess>;
  let agent: RunningProgram | undefined;
  beforeAll(async () => {
    site = await openSiteOf(prepareService, browser!);
  });
  afterAll(async () => {
    await agent?.stop();
    await site.close();
  });
  const addNode = (name: string): Promise<{ readonly id: string; readonly control_psk: string }> =>
    site.admin.call('POST', '/api/nodes', { name });

  test('says that the service is out of reach, keeps the last known values greyed, and misses nothing when it is back', async () => {
    const { id, control_psk: controlPsk } = await addNode('stays');
    agent = startAgentProcess({ nodeId: id, controlEndpoint: site.service.controlEndpoint, controlPsk });
    const page = await site.openAs('admin', '/nodes');
    const row = page.getByRole('row', { name: /stays/ });
    await row.getByText('online').waitFor();
    await page.getByText('Live', { exact: true }).waitFor();
    await expectOpacity(page, 'main').toBe(1);

    await site.service.kill();
    await page
      .getByRole('alert')
      .getByText(/Out of reach since/)
      .waitFor();
    await expectOpacity(page, 'main').toBeLessThan(1);
    await expectText(row).toContain('online');

    await site.service.start();
    // Before the page has found its way back, so that no item of the feed tells it.
    const admin = await site.service.admin();
    await admin.call('POST', '/api/nodes', { name: 'came meanwhile' });
    await admin.call('PUT', `/api/nodes/${id}`, { name: 'stays, renamed' });
    await page.getByRole('row', { name: /came meanwhile/ }).waitFor();
    const renamed = page.getByRole('row', { name: /stays, renamed/ });
    await renamed.getByText('online').waitFor();
    await page.getByText('Live', { exact: true }).waitFor();
    await expectOpacity(page, 'main').toBe(1);
    await expectAbsent(page, page.getByText(/Out of reach/));
    // And what happens from now on.
    await admin.call('POST', '/api/nodes', { name: 'came afterwards' });
    await page.getByRole('row', { name: /came afterwards/ }).waitFor();
  });

  test('a page that was not loaded before comes by itself once the service is back', async () => {
    const page = await site.openAs('viewer', '/nodes');
    await page.getByText('Live', { exact: true }).waitFor();
    const away = page.getByRole('alert').getByText(/Out of reach since/);
    await site.service.kill();
    await away.waitFor();
    for (const name of ['Rollouts', 'Chains']) {
      await page.getByRole('link', { name }).click();
      await page.locator('main .mantine-Skeleton-root').first().waitFor();
      await away.waitFor();
    }
    await site.service.start();
    await page.getByRole('heading', { name: 'Chains' }).waitFor();
  });

  test('reads what takes long to its end, however much happens meanwhile', async () => {
    const admin = await site.service.admin();
    const { id } = await admin.call<{ id: string }>('POST', '/api/nodes', { name: 'changes' });
    const page = await site.openAs('viewer', '/nodes?q=changes');
    const row = page.getByRole('row', { name: /changes/ });
    await row.waitFor();
    await page.getByText('Live', { exact: true }).waitFor();
    await page.route(/\/api\/nodes\?/, (route) => setTimeout(() => void route.continue().catch(() => undefined), 800));
    let turn = 0;
    let isShown = false;
    const shown = row
      .getByText('changes often')
      .waitFor()
      .finally(() => (isShown = true));
    shown.catch(() => undefined);
    while (!isShown) {
      turn += 1;
      await admin.call('PUT', `/api/nodes/${id}`, { name: `changes often, ${turn} times` });
    }
    await shown;
  });

  test('says of a page that has lost its last row where the others are', async () => {
    const admin = await site.service.admin();
    const names = Array.from({ length: 51 }, (_, index) => `full-${index}`);
    let last = '';
    for (const name of names) last = (await admin.call<{ id: string }>('POST', '/api/nodes', { name })).id;
    const page = await site.openAs('operator', '/nodes?q=full&page=2');
    await page.getByRole('row', { name: /full-50/ }).waitFor();
    await admin.call('DELETE', `/api/nodes/${last}`);
    await page.getByText('none here, 50 on earlier pages').waitFor();
    await page.getByRole('button', { name: 'Previous page' }).click();
    await page.getByRole('row', { name: /full-49/ }).waitFor();
    await expectAbsent(page, page.getByText('none here'));
    await page.goto('/console/audit?q=full&page=9');
    await page.getByText('none here, 52 on earlier pages').waitFor();
  });

  test('dates what the service says by its clock, where that of the browser is wrong', async () => {
    const admin = await site.service.admin();
    const page = await site.openAs('viewer', '/');
    await page.clock.install({ time: Date.now() - 7_200_000 });
    await admin.call('POST', '/api/l4-upstreams', { name: 'dated', endpoint: '203.0.113.5:443' });
    await page.goto('/console/upstreams');
    await page
      .getByRole('row', { name: /dated/ })
      .getByText(/^(just now|\d+ seconds ago)$/)
      .waitFor();
  });

  test('has at most 60 rows of a list in the document, by pages, and says how many there are', async () => {
    const admin = await site.service.admin();
    const more = 130;
    for (let index = 0; index < more; index += 1) await admin.call('POST', '/api/nodes', { name: `many-${index}` });
    const page = await site.openAs('viewer', '/nodes?q=many');
    const rows = page.getByRole('row');
    await page.getByText(`of ${more}`).waitFor();
    await expectCount(rows).toBeGreaterThan(20);
    await expectCount(rows).toBeLessThanOrEqual(rowsMax);
    await expectAbsent(page, page.getByRole('row', { name: /many-129/ }));
    for (let turn = 0; turn < 2; turn += 1) {
      await page.getByRole('button', { name: /next/i }).click();
      await page.waitForURL(new RegExp(`page=${turn + 2}`));
    }
    await page.getByRole('row', { name: /many-129/ }).waitFor();
    await expectCount(rows).toBeLessThanOrEqual(rowsMax);
  });
});
