/** Forms: leaving what was typed, and what is missing for them (`docs/contract/console.md#rules`). Every form is left in `every-page.test.ts`. */
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { goTo } from '../../bench/console/pages.js';
import { openBrowser } from './support/browser.js';
import { expectAccessible } from './support/faults.js';
import { openSite, type Site } from './support/site.js';
import {
  addressOf,
  expectAbsent,
  expectCovered,
  expectCut,
  expectText,
  expectValue,
  watchForNever,
} from './support/waiting.js';

const browser = await openBrowser();

describe.skipIf(browser === undefined)('a form', () => {
  let site: Site;
  let edit: string;
  beforeAll(async () => {
    site = await openSite(browser!);
    const { id } = await site.admin.call<{ id: string }>('POST', '/api/l4-upstreams', {
      name: 'web',
      endpoint: '203.0.113.5:443',
    });
    edit = `/upstreams/${id}/edit`;
  });
  afterAll(async () => {
    await site.close();
  });

  const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });
  const toNodes = (page: Page) => page.getByRole('navigation').getByRole('link', { name: 'Nodes' });
  const question = (page: Page) => page.getByRole('dialog', { name: 'Leave this page?' });
  const endpoint = (page: Page) => page.getByRole('textbox', { name: 'Endpoint' });
  const isAtNodes = (page: Page) => page.getByRole('heading', { name: 'Nodes' }).waitFor();
  const stay = async (page: Page): Promise<void> => {
    await button(page, 'Stay').last().click();
    await question(page).waitFor({ state: 'hidden' });
  };

  test('what was typed is not lost by a link, by Back or by the sign-out, unless one says so', async () => {
    const page = await site.openAs('operator', '/upstreams');
    await page.getByRole('link', { name: 'web', exact: true }).click();
    await page.getByRole('link', { name: 'Edit' }).click();
    await endpoint(page).fill('203.0.113.7:443');
    const leaveBy = {
      link: () => toNodes(page).click(),
      back: () => page.goBack(),
      cancel: () => button(page, 'Cancel').click(),
      async signOut() {
        await page.getByRole('button', { name: /^Signed in as operator/ }).click();
        await page.getByRole('menuitem', { name: 'Sign out' }).click();
      },
    };
    for (const leave of Object.values(leaveBy)) {
      await leave();
      await expectText(question(page)).toContain('Not saved: Endpoint.');
      await stay(page);
      await page.waitForURL(`**${edit}`);
      await expectValue(endpoint(page)).toBe('203.0.113.7:443');
    }
    await leaveBy.back();
    await expectAccessible(page);
    await button(page, 'Leave').click();
    await page.getByRole('link', { name: 'Edit' }).waitFor();
    await expectAbsent(page, question(page));
  });

  test('what was typed is still asked for after a sign-out that failed', async () => {
    const page = await site.openAs('operator', edit);
    await endpoint(page).fill('203.0.113.7:443');
    await page.route('**/api/auth/logout', (route) => route.abort());
    await page.getByRole('button', { name: /^Signed in as operator/ }).click();
    await page.getByRole('menuitem', { name: 'Sign out' }).click();
    await button(page, 'Leave').click();
    await page.getByText('The service does not answer.').waitFor();
    await toNodes(page).click();
    await expectText(question(page)).toContain('Not saved: Endpoint.');
    await stay(page);
    await expectValue(endpoint(page)).toBe('203.0.113.7:443');
  });

  test('the form of another resource, or of the same listener of another node, begins with what that one has', async () => {
    const made = (name: string) => site.admin.call<{ id: string }>('POST', '/api/nodes', { name });
    const [one, other] = [await made('one'), await made('other')];
    const page = await site.openAs('operator', `/nodes/${one.id}/edit`);
    await expectValue(page.getByRole('textbox', { name: 'Name' })).toBe('one');
    await goTo(page, `/nodes/${other.id}/edit`);
    await expectValue(page.getByRole('textbox', { name: 'Name' })).toBe('other');
    await goTo(page, `/nodes/${one.id}/edit`);
    await expectValue(page.getByRole('textbox', { name: 'Name' })).toBe('one');

    const listener = { transport: 'tcp', listenAddr: '0.0.0.0', listenPort: 443 };
    await site.admin.call('PUT', '/api/nodes/ports/policies', { nodeId: one.id, ...listener, priorityOrder: ['raw'] });
    const of = ({ id }: { id: string }): string =>
      `/listener-policies/edit?node_id=${id}&transport=tcp&listen_addr=0.0.0.0&listen_port=443`;
    const first = page.locator('main ol li').first();
    await goTo(page, of(other));
    await expectText(first).not.toContain('raw');
    await goTo(page, of(one));
    await expectText(first).toContain('raw');
    await goTo(page, of(other));
    await expectText(first).not.toContain('raw');
  });

  test('of two people who set the priority of one listener, the second sees both', async () => {
    const { id } = await site.admin.call<{ id: string }>('POST', '/api/nodes', { name: 'third' });
    const listener = { nodeId: id, transport: 'tcp', listenAddr: '0.0.0.0', listenPort: 443 };
    const set = (priorityOrder: string[]) =>
      site.admin.call('PUT', '/api/nodes/ports/policies', { ...listener, priorityOrder });
    const page = await site.openAs(
      'operator',
      `/listener-policies/edit?node_id=${id}&transport=tcp&listen_addr=0.0.0.0&listen_port=443`,
    );
    const first = page.locator('main ol li').first();
    await expectText(first).toContain('REALITY');
    await set(['raw']);
    await expectText(first).toContain('raw');
    await button(page, 'Move REALITY up').click();
    await expectText(first).toContain('REALITY');
    await set(['noise']);
    await page
      .getByRole('alert')
      .getByText(/^Changed by admin/)
      .waitFor();
    await button(page, 'Keep mine').click();
    await expectText(first).toContain('REALITY');
    await button(page, 'Save').click();
    await page.getByText('Priority saved.').waitFor();
    const { items } = await site.admin.call<{ items: object[] }>('GET', `/api/nodes/ports?node_id=${id}`);
    expect(items).toMatchObject([{ priorityOrder: ['reality', 'raw', 'tls', 'noise'], policySaved: true }]);
    await goTo(page, '/listener-policies/edit');
    await page.getByRole('combobox', { name: 'Node' }).fill('third');
    await page.getByRole('option', { name: 'third' }).click();
    await button(page, 'Save').click();
    await page.getByText(/^This listener has a priority of its own already/).waitFor();
  });

  test('a search for a resource that failed does not seem to have found nothing', async () => {
    const page = await site.openAs('operator', '/listener-policies/edit');
    const node = page.getByRole('combobox', { name: 'Node' });
    await node.waitFor();
    await page.route(/\/api\/nodes\?/, (route) => route.abort());
    await node.fill('nowhere');
    await page.getByText('The service does not answer.').waitFor();
    await expectAbsent(page, page.getByText('No matches'));
  });

  test('the browser asks before a reload', async () => {
    const page = await site.openAs('operator', edit);
    await endpoint(page).fill('203.0.113.7:443');
    const asked = page.waitForEvent('dialog');
    page.on('dialog', (dialog) => void dialog.dismiss());
    // It is told of a reload that did not happen, or of none at all.
    void page.reload({ timeout: 5_000 }).catch(() => undefined);
    expect((await asked).type()).toBe('beforeunload');
    await expectValue(endpoint(page)).toBe('203.0.113.7:443');
  });

  test('an untouched form, one put back as it was, and a saved one ask nothing', async () => {
    const page = await site.openAs('operator', edit);
    await endpoint(page).waitFor();
    await toNodes(page).click();
    await isAtNodes(page);
    await page.goBack();
    await endpoint(page).fill('203.0.113.7:443');
    await endpoint(page).fill('203.0.113.5:443');
    await toNodes(page).click();
    await isAtNodes(page);
    await page.goBack();
    await endpoint(page).fill('203.0.113.8:443');
    await button(page, 'Save').click();
    await page.getByText('Upstream web saved.').waitFor();
    await page.getByRole('link', { name: 'Edit' }).waitFor();
    await toNodes(page).click();
    await isAtNodes(page);
  });

  test('a notice covers no control, and its words are whole, in a narrow window too; after its undo nothing is left of what it made', async () => {
    const page = await site.openAs('operator', '/upstreams/new', { viewport: { width: 360, height: 640 } });
    await page.getByRole('textbox', { name: 'Name' }).fill('a name that is long enough for two lines of a notice');
    await endpoint(page).fill('203.0.113.9:443');
    await button(page, 'Add upstream').click();
    const undo = button(page, 'Undo');
    await undo.waitFor();
    await page.getByRole('heading', { level: 1 }).getByText('a name that').waitFor();
    await expectCovered(page).toEqual([]);
    await expectCut(undo).toBe(false);
    await undo.click();
    await page.getByText('Undone.').waitFor();
    await page
      .getByRole('alert')
      .getByText(/\(request [\w-]+\)/)
      .waitFor();
    await expectAbsent(page, page.getByRole('link', { name: 'Edit' }));
  });

  test('the filters of every list fold in a narrow window', async () => {
    const page = await site.openAs('viewer', '/audit', { viewport: { width: 360, height: 640 } });
    for (const list of ['audit', 'ports', 'rollouts', 'nodes', 'chains', 'credentials']) {
      await goTo(page, `/${list}`);
      const others = page.locator('main [data-filters]');
      await button(page, 'Filters').waitFor();
      await others.waitFor({ state: 'hidden' });
      await button(page, 'Filters').click();
      await others.waitFor({ state: 'visible' });
    }
  });

  test('who may not add one sees that, and no dead form', async () => {
    const page = await site.openAs('viewer', '/upstreams/new');
    await page.getByText('Only operators can change this.').waitFor();
    await expectAbsent(page, endpoint(page), button(page, 'Cancel'));
  });

  test('a chooser with nothing to choose leads to the form of the first one, which can be chosen when one comes back', async () => {
    const page = await site.openAs('operator', '/credentials/new?key_type=reality');
    await page.getByRole('textbox', { name: 'Name' }).fill('front');
    await page.getByText('There is none yet.').waitFor();
    const opened = page.waitForEvent('popup');
    await page.getByRole('link', { name: 'Add an X25519 key in a new tab' }).click();
    const other = await opened;
    await other.getByRole('textbox', { name: 'Name' }).fill('front key');
    await button(other, 'Add credential').click();
    await other.getByText('Credential front key added.').waitFor();
    await page.getByRole('combobox', { name: 'Key pair' }).click();
    await page.getByRole('option', { name: 'front key' }).click();
    await expectAbsent(page, page.getByText('There is none yet.'));
    await expectValue(page.getByRole('textbox', { name: 'Name' })).toBe('front');
  });

  test('a PSK that is shown once is not lost before it is copied', async () => {
    const page = await site.openAs('operator', '/nodes/new');
    await page.getByRole('textbox', { name: 'Name' }).fill('edge-1');
    await button(page, 'Add node').click();
    // The page with it has an address, at which others see the node alone.
    const other = await site.openAs('operator', await addressOf(page, /\/nodes\/(?!new)[\w-]+$/));
    await other.getByText(/^Its agent has never connected/).waitFor();
    await expectAbsent(other, other.getByLabel('Environment file'));
    await toNodes(page).click();
    await expectText(question(page)).toContain('Shown only once, and not copied yet: PSK.');
    await stay(page);
    await page.context().grantPermissions(['clipboard-write']);
    await page.getByRole('button', { name: 'Copy: Environment file' }).click();
    await page.getByRole('button', { name: 'Copied: Environment file' }).waitFor();
    await toNodes(page).click();
    await isAtNodes(page);
  });

  test('nor is a token, unless one says that it is saved', async () => {
    const page = await site.openAs('operator', '/tokens/new');
    await page.getByRole('textbox', { name: 'Name' }).fill('ci');
    await button(page, 'Create token').click();
    await page.getByRole('textbox', { name: 'Token' }).waitFor();
    await toNodes(page).click();
    await expectText(question(page)).toContain('not copied yet: API token.');
    await stay(page);
    await button(page, 'I have saved it').click();
    await page.getByText('Token ci added.').waitFor();
    await toNodes(page).click();
    await isAtNodes(page);
  });

  test('of one’s own account, what was typed stays when another page saves it', async () => {
    const page = await site.openAs('viewer', '/account');
    const fullName = page.getByRole('textbox', { name: 'Full name' });
    await fullName.fill('Vera');
    const other = await site.openAs('viewer', '/account');
    await other.getByRole('textbox', { name: 'Email' }).fill('vera@example.com');
    await button(other, 'Save').click();
    await other.getByText('Account saved.').waitFor();
    // A page that has been away reads everything anew.
    await site.endSession(page);
    const dialog = page.getByRole('dialog', { name: 'Sign in' });
    await dialog.getByLabel('User name').fill('viewer');
    await dialog.locator('input[name=password]').fill(site.service.adminPassword);
    await dialog.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('button', { name: 'Keep mine' }).click();
    await expectValue(fullName).toBe('Vera');
    await expectValue(page.getByRole('textbox', { name: 'Email' })).toBe('vera@example.com');
    await button(page, 'Save').click();
    await page.getByText('Account saved.').waitFor();
    await expectValue(fullName).toBe('Vera');
    await toNodes(page).click();
    await isAtNodes(page);
  });

  test('one’s own change is not told as that of somebody else while its answer and the next page come', async () => {
    const { id } = await site.admin.call<{ id: string }>('POST', '/api/nodes', { name: 'own' });
    const page = await site.openAs('operator', `/nodes/${id}/edit`);
    await page.getByText('Live', { exact: true }).waitFor();
    const neverSaid = await watchForNever(page, 'Someone else changed this');
    await page.getByRole('textbox', { name: 'Name' }).fill('own, renamed');
    let answer = (): void => undefined;
    const mayAnswer = new Promise<void>((resolve) => (answer = resolve));
    // A page that does not come soon gives way to a skeleton, but the form waits for the answer however long it takes.
    await page.route(`**/api/nodes/${id}`, async (route) => {
      if (route.request().method() !== 'PUT') return route.continue();
      const response = await route.fetch();
      await mayAnswer;
      return route.fulfill({ response });
    });
    await button(page, 'Save').click();
    await page.getByRole('heading', { name: 'Edit own, renamed' }).waitFor();
    answer();
    await page.getByRole('link', { name: 'Edit' }).waitFor();
    await neverSaid();
  });

  test('a key is rotated in the version that one has seen; who was told of another may go on', async () => {
    const made = { name: 'exit key', key_type: 'x25519' };
    const { id } = await site.admin.call<{ id: string }>('POST', '/api/credentials', made);
    const page = await site.openAs('operator', `/credentials/${id}/rotate`);
    await page.getByRole('heading', { name: 'Rotate exit key' }).waitFor();
    await site.admin.call('PUT', `/api/credentials/${id}`, { name: 'entry key' });
    await page.getByRole('heading', { name: 'Rotate entry key' }).waitFor();
    await button(page, 'Rotate now').click();
    await page
      .getByRole('alert')
      .getByText(/^If-Match: /)
      .waitFor();
    await button(page, 'Rotate now').click();
    await page.getByText('Credential entry key rotated.').waitFor();
  });

  test('so is the secret of a webhook, once its question is opened anew', async () => {
    const made = { name: 'told', url: 'https://hooks.example/told', types: ['command'] };
    const { id } = await site.admin.call<{ id: string }>('POST', '/api/webhooks', made);
    const page = await site.openAs('admin', `/webhooks/${id}`);
    const question = page.getByRole('dialog');
    await button(page, 'Rotate secret').click();
    await question.getByText('Rotate the secret of told?').waitFor();
    await site.admin.call('PUT', `/api/webhooks/${id}`, { name: 'told more' });
    await question.getByText('Rotate the secret of told more?').waitFor();
    await question.getByRole('button', { name: 'Rotate secret' }).click();
    await question.getByText(/^If-Match: /).waitFor();
    await button(page, 'Cancel').last().click();
    await question.waitFor({ state: 'hidden' });
    await button(page, 'Rotate secret').click();
    await question.getByRole('button', { name: 'Rotate secret' }).click();
    await page.getByRole('textbox', { name: 'Secret' }).waitFor();
  });

  test('what was typed is still there for the same person when their session has ended, and for no other', async () => {
    const page = await site.openAs('operator', edit);
    const signInAgain = async (username: string): Promise<void> => {
      const dialog = page.getByRole('dialog', { name: 'Sign in' });
      await site.endSession(page);
      await dialog.getByLabel('User name').fill(username);
      await dialog.locator('input[name=password]').fill(site.service.adminPassword);
      await dialog.getByRole('button', { name: 'Sign in' }).click();
      await dialog.waitFor({ state: 'hidden' });
      await page.getByText('Live', { exact: true }).waitFor();
    };
    await endpoint(page).fill('203.0.113.77:443');
    await signInAgain('operator');
    await expectValue(endpoint(page)).toBe('203.0.113.77:443');
    await signInAgain('admin');
    await expectValue(endpoint(page)).toBe('203.0.113.8:443');
  });
});
