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
