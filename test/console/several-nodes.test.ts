/** Several nodes at once, from their list (`docs/contract/console.md#pages`). */
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { goTo } from '../../bench/console/pages.js';
import { openBrowser } from './support/browser.js';
import { expectAccessible, faultsOf } from './support/faults.js';
import { openSite, type Site } from './support/site.js';
import {
  expectAbsent,
  expectAttribute,
  expectCount,
  expectCut,
  expectHeight,
  expectSearch,
} from './support/waiting.js';

const browser = await openBrowser();
const longName = 'W'.repeat(128);

describe.skipIf(browser === undefined)('the list of nodes', () => {
  let site: Site;
  let page: Page;
  beforeAll(async () => {
    site = await openSite(browser!);
    const make = (path: string, body: object) => site.admin.call<{ id: string }>('POST', path, body);
    const [used] = [
      await make('/api/nodes', { name: 'edge-2', address: '192.0.2.7', labels: { rack: 'a' } }),
      await make('/api/nodes', { name: 'edge-10', labels: { rack: 'a' } }),
      await make('/api/nodes', { name: longName }),
    ];
    const hop = { node_id: used.id, listen_addr: '0.0.0.0', listen_port: 443, outer: 'tcp', security: 'raw' };
    const target = { endpoint: '192.0.2.1:80' };
    await make('/api/l4-chains', { name: 'front', payload: 'tcp', hops: [hop], target });
    page = await site.openAs('operator', '/nodes');
  });
  afterAll(() => site.close());

  const rows = () => page.locator('tbody tr');
  const toolbar = () => page.getByRole('toolbar');

  test('counts by state are filters, and an address finds its node', async () => {
    const chip = page.getByRole('button', { name: 'never connected 3' });
    await chip.click();
    await expectAttribute(chip, 'aria-pressed').toBe('true');
    await expectSearch(page).toBe('?status=pending');
    await chip.click();
    await page.getByLabel('Find by name, address, label, version').fill('192.0.2.7');
    await expectCount(rows()).toBe(1);
    await rows().getByRole('link', { name: 'edge-2' }).waitFor();
    await page.getByLabel('Find by name, address, label, version').fill('');
    await expectCount(rows()).toBe(3);
  });

  test('chosen nodes get labels as one command, which is undone as one', async () => {
    await page.getByLabel('Choose all on this page').check();
    await toolbar().getByText('3 chosen').waitFor();
    await toolbar().getByRole('button', { name: 'Labels' }).click();
    const dialog = page.getByRole('dialog', { name: 'Labels of 3 nodes' });
    await dialog.getByLabel('Set').fill('region:eu');
    await page.keyboard.press('Enter');
    await expectAccessible(page);
    // What is typed is there when the dialog opens again.
    await dialog.getByRole('button', { name: 'Cancel' }).last().click();
    await dialog.waitFor({ state: 'detached' });
    await toolbar().getByRole('button', { name: 'Labels' }).click();
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.waitFor({ state: 'detached' });
    await expectCount(page.getByText('region: eu')).toBe(3);
    await page.getByRole('button', { name: 'Undo' }).click();
    await expectCount(page.getByText('region: eu')).toBe(0);
  });

  test('a delete of several names what stands in the way of each, and the others are gone', async () => {
    await toolbar().getByRole('button', { name: 'Delete' }).click();
    await expectSearch(page).toBe('?dialog=delete');
    // Back closes the dialog alone.
    await page.goBack();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await toolbar().getByText('3 chosen').waitFor();
    await toolbar().getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    const refused = page.getByRole('dialog', { name: 'Not deleted' });
    await refused.getByRole('link', { name: 'edge-2' }).waitFor();
    await refused.getByRole('link', { name: 'front' }).waitFor();
    await expectCount(refused.getByRole('listitem')).toBe(1);
    await refused.getByRole('button', { name: 'Cancel' }).last().click();
    await expectSearch(page).toBe('');
    await expectCount(rows()).toBe(1);
    await page.getByRole('button', { name: 'Undo' }).last().click();
    await expectCount(rows()).toBe(3);
  });

  test('a long name fits a narrow window, in the list and on its page', async () => {
    const narrow = await site.openAs('viewer', '/nodes', { viewport: { width: 360, height: 740 } });
    await narrow.getByRole('link', { name: longName }).waitFor();
    await expectAccessible(narrow);
    await narrow.getByRole('link', { name: longName }).click();
    await narrow.getByRole('heading', { name: longName }).waitFor();
    await expectAccessible(narrow);
    // A viewer chooses nothing.
    await narrow.goBack();
    await narrow.getByRole('link', { name: longName }).waitFor();
    await expectAbsent(narrow, narrow.getByLabel('Choose all on this page'));
  });

  test('a long name is whole wherever it is named, and moves nothing aside', async () => {
    type Made = { readonly id: string };
    const make = (path: string, body: object) => site.admin.call<Made>('POST', path, body);
    const nodes = await site.admin.call<{ items: readonly Made[] }>('GET', `/api/nodes?q=${longName}`);
    const upstream = await make('/api/l4-upstreams', { name: longName, endpoint: '192.0.2.1:80' });
    const hop = { node_id: nodes.items[0]?.id, listen_port: 443, outer: 'tcp', security: 'raw' };
    const target = { upstream_id: upstream.id };
    const chain = await make('/api/l4-chains', { name: longName, payload: 'tcp', hops: [hop], target });
    await make(`/api/l4-chains/${chain.id}/deploy`, {});
    const operator = await site.openAs('operator', `/chains/${chain.id}`);
    await operator.getByText('applied on 0 of 1 nodes').waitFor();
    expect(await faultsOf(operator)).toEqual([]);
    await expectHeight(operator.getByText('Clients', { exact: true })).toBeLessThan(30);
    await goTo(operator, `/chains/${chain.id}/edit`);
    // It stays in sight while one fills in the form.
    await expectHeight(operator.getByRole('region', { name: 'The path so far' })).toBeLessThan(150);
    await operator.getByRole('combobox', { name: 'Node' }).click();
    await expectCut(operator.getByRole('option', { name: longName })).toBe(false);
    await goTo(operator, `/upstreams/${upstream.id}?dialog=delete`);
    const dialog = operator.getByRole('dialog', { name: `Delete ${longName}` });
    await expectCut(dialog.getByRole('heading')).toBe(false);
    await expectCut(dialog.getByRole('list')).toBe(false);
    expect(await faultsOf(operator)).toEqual([]);
    await goTo(operator, `/ports?node_id=${hop.node_id}`);
    await expectCut(operator.locator('table').locator('xpath=..')).toBe(false);
  });
});
