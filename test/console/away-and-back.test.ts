/** Live pages: a service that is killed and comes back, and lists of more than a page (`docs/contract/console.md#rules`). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startAgentProcess } from '../../scripts/stack/agent.js';
import type { RunningProgram } from '../../scripts/stack/process.js';
import { openBrowser } from './support/browser.js';
import { openSite } from './support/site.js';
import type { Site } from './support/site.js';

const browser = await openBrowser();
const rowsMax = 60;

describe.skipIf(browser === undefined)('a page that stays open', () => {
  let site: Site;
  let agent: RunningProgram | undefined;
  beforeAll(async () => {
    site = await openSite(browser!);
  }, 60_000);
  afterAll(async () => {
    await agent?.stop();
    await site.close();
    await browser!.close();
  }, 60_000);
  const addNode = (name: string): Promise<{ readonly id: string; readonly control_psk: string }> =>
    site.admin.call('POST', '/api/nodes', { name });

  test('says that the service is out of reach, keeps the last known values greyed, and misses nothing when it is back', async () => {
    const { id, control_psk: controlPsk } = await addNode('stays');
    agent = startAgentProcess({ nodeId: id, controlEndpoint: site.service.controlEndpoint, controlPsk });
    const page = await site.openAs('admin', '/nodes');
    const row = page.getByRole('row', { name: /stays/ });
    await row.getByText('online').waitFor();
    await page.getByText('Live', { exact: true }).waitFor();
    const opacity = () => page.evaluate<string>(`getComputedStyle(document.querySelector('main')).opacity`);
    expect(await opacity()).toBe('1');

    await site.service.kill();
    await page
      .getByRole('alert')
      .getByText(/Out of reach since/)
      .waitFor();
    expect(Number(await opacity())).toBeLessThan(1);
    expect(await row.innerText()).toContain('online');

    await site.service.start();
    // Before the page has found its way back, so that no item of the feed tells it.
    const admin = await site.service.admin();
    await admin.call('POST', '/api/nodes', { name: 'came meanwhile' });
    await admin.call('PUT', `/api/nodes/${id}`, { name: 'stays, renamed' });
    await page.getByRole('row', { name: /came meanwhile/ }).waitFor();
    const renamed = page.getByRole('row', { name: /stays, renamed/ });
    await renamed.getByText('online').waitFor({ timeout: 30_000 });
    await page.getByText('Live', { exact: true }).waitFor();
    expect([await opacity(), await page.getByText(/Out of reach/).count()]).toEqual(['1', 0]);
    // And what happens from now on.
    await admin.call('POST', '/api/nodes', { name: 'came afterwards' });
    await page.getByRole('row', { name: /came afterwards/ }).waitFor();
  }, 90_000);

  test('has at most 60 rows of a list in the document, by pages, and says how many there are', async () => {
    const admin = await site.service.admin();
    const more = 130;
    for (let index = 0; index < more; index += 1) await admin.call('POST', '/api/nodes', { name: `many-${index}` });
    const page = await site.openAs('viewer', '/nodes?q=many');
    const rows = page.getByRole('row');
    await page.getByText(`of ${more}`).waitFor();
    const first = await rows.count();
    expect(first).toBeGreaterThan(20);
    expect(first).toBeLessThanOrEqual(rowsMax);
    expect(await page.getByRole('row', { name: /many-99/ }).count()).toBe(0);
    for (let turn = 0; turn < 2; turn += 1) {
      await page.getByRole('button', { name: /next/i }).click();
      await page.waitForURL(new RegExp(`page=${turn + 2}`));
    }
    await page.getByRole('row', { name: /many-99/ }).waitFor();
    expect(await rows.count()).toBeLessThanOrEqual(rowsMax);
  }, 60_000);
});
