/** Signing in and out of the console (`docs/contract/console.md#signing-in`). */
import { afterAll, beforeAll, describe, test } from 'vitest';
import { openBrowser } from './support/browser.js';
import { expectAccessible } from './support/faults.js';
import { openSite, type Site } from './support/site.js';
import { expectCookies, expectNowhere, expectSearch } from './support/waiting.js';

const browser = await openBrowser();

describe.skipIf(browser === undefined)('signing in', () => {
  let site: Site;
  beforeAll(async () => {
    site = await openSite(browser!);
  });
  afterAll(async () => {
    await site.close();
  });

  test('a sign-out that did not reach the service is told', async () => {
    const page = await site.openAs('viewer', '/');
    await page.route('**/api/auth/logout', (route) => route.abort());
    await page.getByRole('button', { name: /^Signed in as viewer/ }).click();
    await page.getByRole('menuitem', { name: 'Sign out' }).click();
    await page.getByText('The service does not answer.').waitFor();
  });

  test('a stranger is asked to sign in, reads why that failed, and then gets the page of the address, without a token that scripts could read, until they sign out', async () => {
    const page = await site.open('/nodes?status=offline');
    await page.getByLabel('User name').fill('admin');
    await page.locator('input[name=password]').fill('not the password');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText(/\(request [\w-]+\)/).waitFor();
    await expectAccessible(page);
    await page.locator('input[name=password]').fill(site.service.adminPassword);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'Nodes' }).waitFor();
    await expectSearch(page).toBe('?status=offline');
    // As each token begins.
    await expectNowhere(page, 'eyJ');
    await page.getByRole('button', { name: /admin/ }).click();
    await page.getByRole('menuitem', { name: 'Sign out' }).click();
    await page.locator('input[name=password]').waitFor();
    await expectCookies(page).toEqual([]);
  });
});
