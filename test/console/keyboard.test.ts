/** Three journeys by the keyboard alone: nothing is clicked or filled in by a script (`docs/contract/console.md#rules`). */
import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openBrowser } from './support/browser.js';
import { tabTo } from './support/hands.js';
import { openSite, type Site } from './support/site.js';
import { addressOf, expectAbsent, expectCount, expectText, expectValue, patienceMs } from './support/waiting.js';

const browser = await openBrowser();
describe.skipIf(browser === undefined)('by the keyboard alone', () => {
  let site: Site;
  beforeAll(async () => {
    site = await openSite(browser!);
    const make = (path: string, body: object) => site.admin.call<{ readonly id: string }>('POST', path, body);
    for (let index = 1; index <= 3; index += 1) {
      await make('/api/nodes', { name: `edge-${index}`, address: `192.0.2.${index}` });
    }
    await make('/api/l4-upstreams', { name: 'shop', endpoint: '192.0.2.9:80' });
    const password = 'the password of somebody who leaves';
    await make('/api/auth/users', { username: 'kim', password, role: 'operator' });
  });
  afterAll(() => site.close());

  async function press(page: Page, what: Locator): Promise<void> {
    await tabTo(page, what);
    await page.keyboard.press('Enter');
  }
  async function type(page: Page, what: Locator, text: string): Promise<void> {
    await tabTo(page, what);
    await page.keyboard.press('Control+A');
    await page.keyboard.type(text);
  }
  const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });
  /** Required ones have a star. */
  const field = (page: Page, label: string) => page.getByLabel(new RegExp(`^${label}( \\*)?$`)).first();
  /** The only one that a field offers for the words. */
  async function pick(page: Page, label: string, words: string): Promise<void> {
    const combobox = field(page, label);
    await type(page, combobox, words);
    const options = page.getByRole('option');
    // Without what was offered before the words were typed.
    await expectCount(options).toBe(1);
    // A list that has just opened may forget which option is marked, and then ignores Enter.
    const chosen = async (): Promise<boolean> => {
      await page.keyboard.press('ArrowDown');
      await page.keyboard.press('Enter');
      return options.waitFor({ state: 'hidden', timeout: 5_000 }).then(
        () => true,
        () => false,
      );
    };
    await expect.poll(chosen, { timeout: patienceMs }).toBe(true);
    await expectValue(combobox).toBe(words);
  }

  test('one signs in, finds a node by its address, and opens it', async () => {
    const page = await site.open('/');
    await type(page, page.getByLabel('User name'), 'viewer');
    await type(page, page.getByRole('textbox', { name: 'Password' }), site.service.adminPassword);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1 }).waitFor();
    await press(page, page.getByRole('navigation').getByRole('link', { name: /^Nodes/ }));
    await page.getByRole('link', { name: 'edge-3' }).waitFor();
    await type(page, page.getByRole('searchbox'), '192.0.2.2');
    await expectAbsent(page, page.getByRole('link', { name: 'edge-3' }));
    await press(page, page.getByRole('link', { name: 'edge-2' }));
    await expectText(page.getByRole('heading', { level: 1 })).toBe('edge-2');
  });

  test('one builds a chain in its form, and deploys it', async () => {
    const page = await site.openAs('operator', '/chains');
    await press(page, page.getByRole('link', { name: 'Add chain' }).first());
    await type(page, field(page, 'Name'), 'front');
    await pick(page, 'Node', 'edge-1');
    await expectValue(field(page, 'Port')).toMatch(/^\d+$/);
    await pick(page, 'Upstream', 'shop');
    await press(page, button(page, 'Add and deploy'));
    await page.getByText('applied on 0 of 1 nodes').waitFor();
    const id = (await addressOf(page, /\/chains\/[\w-]{36}/)).slice('/chains/'.length, '/chains/'.length + 36);
    expect(await site.admin.call('GET', `/api/l4-chains/${id}`)).toMatchObject({ name: 'front', status: 'deployed' });
  });

  test('a person who leaves is shut out', async () => {
    const page = await site.openAs('admin', '/users');
    await press(page, page.getByRole('link', { name: 'kim' }));
    await press(page, button(page, 'Shut out'));
    await page.getByText(/Every session and API token of this person ends at once/).waitFor();
    await press(page, page.getByRole('dialog').getByRole('button', { name: 'Shut out', exact: true }));
    await page.getByText('kim is shut out.').waitFor();
    const signIn = site.admin.call('POST', '/api/auth/login', {
      username: 'kim',
      password: 'the password of somebody who leaves',
    });
    await expect(signIn).rejects.toThrow();
  });

  test('a dialog that a menu opened returns the focus to the button of the menu', async () => {
    const page = await site.openAs('operator', '/upstreams');
    await press(page, page.getByRole('link', { name: 'shop' }));
    await press(page, button(page, 'More actions'));
    await page.getByRole('menuitem', { name: 'Delete' }).press('Enter');
    await page.getByRole('dialog').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.locator('[aria-label="More actions"]:focus').waitFor();
  });
});
