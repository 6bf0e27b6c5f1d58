/** What holds for every page of the console, whichever there are (`docs/contract/console.md#rules`): a page is found by the router. */
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fillFleet, type FilledFleet } from '../../bench/console/fleet.js';
import { consolePages, goTo, leadTo, visit, type ConsolePage } from '../../bench/console/pages.js';
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
        await goTo(page, address);
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
    'is never blank while its answers come',
    async () => {
      const kinds = pages.filter(({ route }) => /\$|\/edit$|topology|audit|identity/.test(route));
      const blank: string[] = [];
      // The session is known; nothing else is answered, so nothing is kept from one page for the next.
      await page.route(/\/api\/(?!auth\/me$)/, () => undefined);
      await page.goto('/console/');
      for (const { route, address } of kinds) {
        await leadTo(page, address);
        const some = page.locator('main :is(form, .mantine-Skeleton-root)').first();
        await some.waitFor().catch(() => blank.push(route));
      }
      expect(blank).toEqual([]);
      await page.unroute(/\/api\/(?!auth\/me$)/);
    },
    withinMs,
  );

  test(
    'asks before typed text is lost, but in the form of a new chain, which keeps it',
    async () => {
      const forms = pages.filter(({ route }) =>
        /\/(?:new|edit|rotate|password)$|^\/(?:account|fleet-file)$/.test(route),
      );
      const question = page.getByRole('dialog', { name: 'Leave this page?' });
      await page.setViewportSize(wide);
      for (const { route, address } of forms) {
        await goTo(page, address);
        // Those that choose from a list are not typed into.
        const field = page.locator(
          'main :is(input, textarea):visible:enabled:not([aria-haspopup], [readonly], [type=radio])',
        );
        await field.first().press('End');
        await field.first().pressSequentially('7');
        await page.getByRole('navigation').getByRole('link', { name: 'Topology' }).click();
        if (route !== '/chains/new') {
          await question.getByText('Not saved: ', { exact: false }).waitFor();
          await question.getByRole('button', { name: 'Leave' }).click();
        }
        await page.waitForURL('**/console/topology*');
      }
      expect(forms.length).toBeGreaterThan(20);
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
      let before = 0;
      for (const { address, ...of } of pages) {
        route = of.route;
        // A load takes longer than everything else here, so only after a button may have left something behind.
        await (before === pressed.size ? goTo : visit)(viewer, address);
        before = pressed.size;
        await pressAll(viewer, address, pressed);
      }
      expect(refused).toEqual([]);
      expect(pressed.size).toBeGreaterThan(3);
    },
    withinMs,
  );
});
