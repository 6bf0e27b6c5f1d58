/** The command palette: keys alone find everything and do everything that the role may (`docs/contract/console.md#pages`). */
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openBrowser } from './support/browser.js';
import { expectAccessible } from './support/faults.js';
import { openSite, type Site } from './support/site.js';
import { expectAbsent, expectAttribute, expectSearch } from './support/waiting.js';

const browser = await openBrowser();

describe.skipIf(browser === undefined)('the command palette', () => {
  let site: Site;
  beforeAll(async () => {
    site = await openSite(browser!);
    const make = (path: string, body: object): Promise<{ readonly id: string }> => site.admin.call('POST', path, body);
    const node = await make('/api/nodes', { name: 'edge-1', address: '192.0.2.77' });
    const upstream = await make('/api/l4-upstreams', { name: 'web', endpoint: '203.0.113.5:443' });
    const chain = await make('/api/l4-chains', {
      name: 'front',
      payload: 'tcp',
      hops: [{ node_id: node.id, listen_port: 8443, outer: 'tcp', security: 'raw' }],
      target: { upstream_id: upstream.id },
    });
    await make(`/api/l4-chains/${chain.id}/deploy`, {});
    const document = 'svc: 1\nset: blue\nupstreams:\n  app: {endpoint: "203.0.113.9:443"}\n';
    const { etag } = await site.admin.call<{ etag: string }>('POST', '/api/fleet/plan', { document });
    await site.admin.call('POST', '/api/fleet/apply', { document }, { 'if-match': `"${etag}"` });
  });
  afterAll(async () => {
    await site.close();
  });

  const option = (page: Page, name: string | RegExp) => page.getByRole('option', { name });
  /** Without waiting for what is found. */
  async function take(page: Page, words: string): Promise<void> {
    await page.getByRole('heading', { level: 1 }).waitFor();
    await page.getByRole('button', { name: /^Go to/ }).waitFor();
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: /^Find anything/ }).waitFor();
    await page.keyboard.type(words);
    await page.keyboard.press('Enter');
    await page.getByRole('combobox', { name: /^Find anything/ }).waitFor({ state: 'hidden' });
  }

  test('Enter takes the first of what is found, by its name, its address or its port, of any kind', async () => {
    const page = await site.openAs('operator', '/');
    const places: readonly (readonly [words: string, place: RegExp])[] = [
      ['front', /\/chains\/[\w-]+$/],
      ['192.0.2.77', /\/nodes\/[\w-]+$/],
      ['web', /\/upstreams\/[\w-]+$/],
      ['203.0.113.5', /\/upstreams\/[\w-]+$/],
      ['blue', /\/fleet-file\/sets\/blue$/],
      ['port', /\/ports$/],
      ['add up', /\/upstreams\/new$/],
    ];
    for (const [words, place] of places) {
      await take(page, words);
      await page.waitForURL(place);
    }
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: /^Find anything/ }).waitFor();
    await page.keyboard.type('8443');
    await option(page, /edge-1 tcp 0\.0\.0\.0:8443/).waitFor();
    await expectAttribute(page.getByRole('option').first(), 'aria-selected').toBe('true');
    await expectAccessible(page);
    await page.keyboard.press('ArrowDown');
    await expectAttribute(page.getByRole('option').first(), 'aria-selected').toBe('false');
    await option(page, /edge-1 tcp/).click();
    await expectSearch(page).toMatch(/listen_port=8443/);
  });

  test('actions are done by keys: deploy, issue, undo, export, dark, sign out', async () => {
    const page = await site.openAs('operator', '/');
    await take(page, 'deploy fr');
    await page.waitForURL(/\/chains\/[\w-]+$/);
    await take(page, 'issue edge');
    await page.getByRole('dialog', { name: /edge-1/ }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    await take(page, 'undo');
    await page.waitForURL(/\/audit\?entry=/);
    await page.getByRole('button', { name: 'Preview undo' }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    for (const [words, file] of [
      ['export fl', 'blue.yaml'],
      ['export audit as c', 'audit.csv'],
    ] as const) {
      const saved = page.waitForEvent('download');
      await take(page, words);
      expect((await saved).suggestedFilename()).toBe(file);
    }
    await page.getByText(/\d+ entries exported/).waitFor();
    await take(page, 'dark');
    await expectAttribute(page.locator('html'), 'data-mantine-color-scheme').toBe('dark');
    await take(page, 'sign out');
    await page.locator('input[name=password]').waitFor();
  });

  test('a viewer is offered nothing that the service would refuse, and a failed search does not seem to have found nothing', async () => {
    const page = await site.openAs('viewer', '/');
    await page.getByRole('button', { name: /^Go to/ }).click();
    await option(page, 'Sign out').waitFor();
    await option(page, 'Create API token').waitFor();
    await expectAbsent(
      page,
      ...[/^Add /, /^Deploy/, /^Issue/, /^Rotate/, /^Undo/, /^Edit/, /^Users/].map((one) => option(page, one)),
    );
    await page.route(/\/api\/routes\?/, (route) => route.abort());
    await page.getByRole('combobox', { name: /^Find anything/ }).fill('edge-1');
    await page.getByRole('dialog').getByText('The service does not answer.').waitFor();
    await expectAbsent(page, page.getByText('No matches'));
  });
});
