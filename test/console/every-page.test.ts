/** What holds for every page of the console, whichever there are (`docs/contract/console.md#rules`): a page is found by the router. */
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fillFleet, type FilledFleet } from '../../bench/console/fleet.js';
import { consolePages, visit, type ConsolePage } from '../../bench/console/pages.js';
import { openBrowser } from './support/browser.js';
import { faultsOf } from './support/faults.js';
import { pressAll } from './support/hands.js';
import { openSite, type Site } from './support/site.js';

const browser = await openBrowser();
const wide = { width: 1280, height: 800 };
const narrow = { width: 360, height: 740 };
/** For reviews of all pages with a browser on a busy machine. */
const withinMs = 600_000;

describe.skipIf(browser === undefined)('every page', () => {
  let site: Site;
  let fleet: FilledFleet;
  let pages: readonly ConsolePage[];
  let page: Page;
  beforeAll(async () => {
    site = await openSite(browser!);
    const { controlEndpoint } = site.service;
    fleet = await fillFleet({ rest: site.admin, controlEndpoint, nodes: 3 });
    page = await site.openAs('admin', '/', { reducedMotion: 'reduce', viewport: wide });
    pages = await consolePages(page);
  }, withinMs);
  afterAll(async () => {
    await fleet?.close();
    await site.close();
  });

  test(
    'has nothing that axe calls serious, in light and in dark, and fits windows of 1280 and 360 pixels',
    async () => {
      const faults: string[] = [];
      for (const { route, address } of pages) {
        await page.setViewportSize(wide);
        await visit(page, address);
        const found = [...(await faultsOf(page))];
        await page.setViewportSize(narrow);
        await page.emulateMedia({ colorScheme: 'dark' });
        found.push(...(await faultsOf(page, ['color-contrast'])));
        await page.emulateMedia({ colorScheme: 'light' });
        faults.push(...found.map((fault) => `${route}: ${fault}`));
      }
      expect(faults).toEqual([]);
    },
    withinMs,
  );

  test(
    'shows a viewer no button with which the service would refuse something, whatever address is opened',
    async () => {
      const viewer = await site.openAs('viewer', '/', { reducedMotion: 'reduce', viewport: wide });
      const refused: string[] = [];
      let route = '';
      viewer.on('response', (response) => {
        const { pathname } = new URL(response.url());
        const method = response.request().method();
        if (response.status() === 403 && method !== 'GET') refused.push(`${route}: ${method} ${pathname}`);
      });
      const pressed = new Set<string>();
      for (const { address, ...of } of pages) {
        route = of.route;
        await visit(viewer, address);
        await pressAll(viewer, address, pressed);
      }
      expect(refused).toEqual([]);
      expect(pressed.size).toBeGreaterThan(3);
    },
    withinMs,
  );
});
