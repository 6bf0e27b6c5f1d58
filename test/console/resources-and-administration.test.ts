/** Journeys over the pages of resources and of administration (`docs/contract/console.md#pages`, `#rules`). */
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { goTo } from '../../bench/console/pages.js';
import { openBrowser } from './support/browser.js';
import { expectAccessible } from './support/faults.js';
import { dropFile, more } from './support/hands.js';
import { openSite, type Site } from './support/site.js';
import {
  addressOf,
  expectAbsent,
  expectDisabled,
  expectNowhere,
  expectSearch,
  expectText,
  expectValue,
  valueOf,
} from './support/waiting.js';

const browser = await openBrowser();

interface Resource {
  readonly id: string;
  readonly name: string;
}

describe.skipIf(browser === undefined)('resources and administration', () => {
  let site: Site;
  let upstream: Resource;
  let certificate: Resource;
  beforeAll(async () => {
    site = await openSite(browser!);
    const make = (path: string, body: object): Promise<Resource> => site.admin.call('POST', path, body);
    upstream = await make('/api/l4-upstreams', { name: 'web', endpoint: '203.0.113.5:443' });
    certificate = await make('/api/credentials', {
      name: 'web-cert',
      key_type: 'tls_cert',
      self_signed: { common_name: 'web.example' },
    });
    const node = await make('/api/nodes', { name: 'edge-1', address: '192.0.2.1' });
    await make('/api/l4-chains', {
      name: 'front',
      payload: 'tcp',
      hops: [{ node_id: node.id, listen_port: 443, outer: 'tcp', security: 'tls', credential_id: certificate.id }],
      target: { upstream_id: upstream.id },
    });
  });
  afterAll(async () => {
    await site.close();
  });

  const button = (page: Page, name: string | RegExp) => page.getByRole('button', { name, exact: true });
  const endpointOf = async (): Promise<string> =>
    (await site.admin.call<{ endpoint: string }>('GET', `/api/l4-upstreams/${upstream.id}`)).endpoint;

  test('two people edit one resource: the second sees who was faster and both versions, keeps theirs, and can undo it', async () => {
    const page = await site.openAs('operator', `/upstreams/${upstream.id}/edit`);
    await page.getByLabel('Endpoint').fill('203.0.113.7:443');
    await site.admin.call('PUT', `/api/l4-upstreams/${upstream.id}`, { endpoint: '203.0.113.6:443' });
    const overtaken = page.getByRole('alert');
    await overtaken.getByText(/^Changed by admin/).waitFor();
    await expectText(overtaken).toMatch(/203\.0\.113\.7:443\s+203\.0\.113\.6:443/);
    await expectValue(page.getByLabel('Endpoint')).toBe('203.0.113.7:443');
    await expectDisabled(button(page, 'Save')).toBe(true);
    await button(page, 'Keep mine').click();
    await button(page, 'Save').click();
    await page.getByText('Upstream web saved.').waitFor();
    expect(await endpointOf()).toBe('203.0.113.7:443');
    await button(page, 'Undo').click();
    await page.getByText('Undone.').waitFor();
    expect(await endpointOf()).toBe('203.0.113.6:443');
  });

  test('who edits what somebody else deletes reads that at once, and still has what was typed', async () => {
    const body = { name: 'short-lived', endpoint: '203.0.113.7:443' };
    const { id } = await site.admin.call<{ readonly id: string }>('POST', '/api/l4-upstreams', body);
    const page = await site.openAs('operator', `/upstreams/${id}/edit`);
    await page.getByLabel('Endpoint').fill('203.0.113.9:443');
    await site.admin.call('DELETE', `/api/l4-upstreams/${id}`);
    await page
      .getByRole('alert')
      .getByText(/No L4 upstream has this id/)
      .waitFor();
    await expectValue(page.getByLabel('Endpoint')).toBe('203.0.113.9:443');
  });

  test('figures are English in a browser of another language, as the texts are', async () => {
    const page = await site.openAs('viewer', `/upstreams/${upstream.id}`, { locale: 'de-DE' });
    await site.admin.call('PUT', `/api/l4-upstreams/${upstream.id}`, { health_check_interval_ms: 12_500 });
    await page.getByText('12.5 s').waitFor();
    await page.getByText('Health check', { exact: true }).waitFor();
  });

  test('from a resource one comes to its history, sees what an undo would change, and does it', async () => {
    const page = await site.openAs('operator', `/upstreams/${upstream.id}`);
    const set = (endpoint: string) => site.admin.call('PUT', `/api/l4-upstreams/${upstream.id}`, { endpoint });
    await set('203.0.113.20:443');
    await set('203.0.113.8:443');
    await page.getByText('203.0.113.8:443').waitFor();
    await more(page, 'History');
    await page
      .getByRole('link', { name: /^Entry \d/ })
      .first()
      .click();
    const entry = page.getByRole('dialog');
    await button(page, 'Preview undo').click();
    await entry.getByText(/Nothing has changed yet/).waitFor();
    expect(await endpointOf()).toBe('203.0.113.8:443');
    await button(page, 'Undo').click();
    await entry.getByText(/^Undone by/).waitFor();
    expect(await endpointOf()).toBe('203.0.113.20:443');
    // Its address opens it for others, whatever their list shows first.
    const other = await site.openAs('viewer', await addressOf(page, /[?&]entry=/));
    await other
      .getByRole('dialog')
      .getByText(/^Undone by/)
      .waitFor();
    await expectAbsent(other, button(other, /undo/i));
  });

  test('a viewer sees no button that would be refused, an operator none of administration', async () => {
    const viewer = await site.openAs('viewer', `/credentials/${certificate.id}`);
    await viewer.getByRole('heading', { name: 'web-cert' }).waitFor();
    await expectAbsent(viewer, ...['Edit', 'Rotate', 'Delete'].map((name) => viewer.getByText(name, { exact: true })));
    await goTo(viewer, `/upstreams/${upstream.id}/edit`);
    await viewer.getByLabel('Endpoint').waitFor();
    await expectDisabled(viewer.getByLabel('Endpoint')).toBe(true);
    await viewer.getByText('Only operators can change this.').waitFor();
    await expectAbsent(viewer, button(viewer, 'Save'));
    await viewer.getByRole('navigation').getByText('API tokens').waitFor();
    const operator = await site.openAs('operator', `/credentials/${certificate.id}`);
    await button(operator, 'Rotate')
      .or(operator.getByRole('link', { name: 'Rotate' }))
      .waitFor();
    for (const page of [viewer, operator]) {
      const menu = page.getByRole('navigation');
      await expectAbsent(page, ...['Users', 'Webhooks'].map((name) => menu.getByText(name, { exact: true })));
    }
  });

  test('a delete that would be refused names what stands in the way, and its dialog has an address', async () => {
    const page = await site.openAs('operator', `/credentials/${certificate.id}?dialog=delete`);
    const dialog = page.getByRole('dialog');
    await dialog.getByText('front').waitFor();
    await expectAbsent(page, dialog.getByRole('button', { name: 'Delete' }));
    await expectAccessible(page);
    await dialog.getByRole('button', { name: 'Cancel' }).last().click();
    await dialog.waitFor({ state: 'hidden' });
    await expectSearch(page).toBe('');
  });

  test('a fleet file that is dropped on the page is shown as a plan first, and applied as planned', async () => {
    const page = await site.openAs('operator', '/fleet-file');
    const drop = (document: string): Promise<void> =>
      dropFile(page.getByText(/^One document says/), 'edge.yaml', document);
    await drop('svc: 1\nset: edge\nupstreams:\n  app: {endpoint: nowhere}\n');
    await button(page, 'Preview changes').click();
    await page.getByText(/4:19 upstreams\.app\.endpoint: .*\(request [\w-]+\)/).waitFor();
    await drop(
      'svc: 1\nset: edge\nnodes: {edge-2: {address: 192.0.2.2}}\nupstreams:\n  app: {endpoint: "203.0.113.9:443"}\n',
    );
    await page.getByText('Issue PSKs for new nodes, and show them once').click();
    await button(page, 'Preview changes').click();
    const plan = page.getByRole('region', { name: 'Plan' });
    await plan.getByText('203.0.113.9:443').waitFor();
    const upstreams = async (): Promise<readonly Resource[]> =>
      (await site.admin.call<{ items: Resource[] }>('GET', '/api/l4-upstreams')).items;
    expect((await upstreams()).map(({ name }) => name)).toEqual(['web']);
    await plan.getByRole('button', { name: 'Apply' }).click();
    await page.getByText('Document applied.').waitFor();
    expect((await upstreams()).map(({ name }) => name)).toEqual(['app', 'web']);
    const psk = await valueOf(page.getByRole('textbox', { name: 'PSK of edge-2' }), /^svcpsk1_/);
    await page.reload();
    await page.getByRole('heading', { name: 'Apply a document' }).waitFor();
    await expectNowhere(page, psk);
    // An edit by hand shows, without a reload, as a difference of the set.
    const app = (await upstreams()).find(({ name }) => name === 'app');
    await site.admin.call('PUT', `/api/l4-upstreams/${app?.id}`, { endpoint: '203.0.113.10:443' });
    await page.getByText('1 resource differs').waitFor();
    await page.getByRole('link', { name: 'edge', exact: true }).click();
    await page.getByRole('row', { name: 'endpoint 203.0.113.9:443 203.0.113.10:443' }).waitFor();
  });

  test.each([
    ['a plan', 'svc: 1\nset: early\nnodes: {early: {}}\n'],
    ['a mistake', 'svc: 1\nset: early\nearly: {}\n'],
  ])('%s of what a fleet file said before is not shown', async (_what, early) => {
    const page = await site.openAs('operator', '/fleet-file');
    const document = page.getByRole('textbox', { name: 'Document (YAML or JSON)' });
    let come = (): void => undefined;
    const mayCome = new Promise<void>((resolve) => (come = resolve));
    await page.route('**/api/fleet/plan', (route) => mayCome.then(() => route.continue()));
    await document.fill(early);
    await button(page, 'Preview changes').click();
    await document.fill('svc: 1\nset: late\nnodes: {late: {}}\n');
    const planned = page.waitForResponse('**/api/fleet/plan');
    come();
    await (await planned).finished();
    await expectDisabled(button(page, 'Preview changes')).toBe(false);
    await expectAbsent(page, page.getByRole('region', { name: 'Plan' }));
    await expectAbsent(page, page.locator('[aria-invalid=true]'));
    await button(page, 'Preview changes').click();
    await page.getByRole('region', { name: 'Plan' }).getByText('late').first().waitFor();
  });

  test('what somebody else applies as a fleet file is on the page without a reload', async () => {
    const page = await site.openAs('viewer', '/upstreams');
    await page.getByRole('link', { name: 'web', exact: true }).waitFor();
    await page.getByText('Live', { exact: true }).waitFor();
    const document = 'svc: 1\nset: elsewhere\nupstreams:\n  from a file: {endpoint: "203.0.113.9:443"}\n';
    await site.admin.call('POST', '/api/fleet/apply', { document });
    await page.getByRole('link', { name: 'from a file' }).waitFor();
  });

  test('the API tokens of somebody whose password is reset leave the list without a reload', async () => {
    const leaver = { username: 'leaver', password: 'the password of somebody who leaves' };
    const { id } = await site.admin.call<Resource>('POST', '/api/auth/users', { ...leaver, role: 'operator' });
    const { token } = await site.admin.call<{ token: string }>('POST', '/api/auth/login', leaver);
    const authorization = `Bearer ${token}`;
    await site.admin.call('POST', '/api/auth/tokens', { name: 'cron job', role: 'operator' }, { authorization });
    const page = await site.openAs('admin', '/tokens');
    await page.getByRole('link', { name: 'cron job' }).waitFor();
    await page.getByText('Live', { exact: true }).waitFor();
    await site.admin.call('PUT', `/api/auth/users/${id}/password`, { new_password: 'a password nobody knows' });
    await page.getByRole('link', { name: 'cron job' }).waitFor({ state: 'detached' });
  });

  test('a file that was edited can be chosen again', async () => {
    const page = await site.openAs('operator', '/fleet-file');
    const files = page.locator('input[type=file]');
    await files.setInputFiles({ name: 'f.yaml', mimeType: 'text/yaml', buffer: Buffer.from('svc: 1\n') });
    await expectValue(page.getByRole('textbox', { name: 'Document (YAML or JSON)' })).toBe('svc: 1\n');
    // A browser does not tell of a file that is chosen already.
    await expectValue(files).toBe('');
  });

  test('a dialog whose answer comes late leaves the one that was opened since', async () => {
    const { id } = await site.admin.call<Resource>('POST', '/api/nodes', { name: 'slow' });
    const page = await site.openAs('operator', `/nodes/${id}?dialog=compile`);
    let come = (): void => undefined;
    const mayCome = new Promise<void>((resolve) => (come = resolve));
    await page.route(`**/api/nodes/${id}/config`, (route) => mayCome.then(() => route.continue()));
    await button(page, 'Send').click();
    await page.keyboard.press('Escape');
    await more(page, 'Delete');
    const question = page.getByRole('dialog', { name: 'Delete slow?' });
    await question.waitFor();
    come();
    await page.getByText(/is sent when the agent connects/).waitFor();
    await expectSearch(page).toBe('?dialog=delete');
  });

  test('what is not known is shown neither as none nor as well', async () => {
    const page = await site.openAs('viewer', '/topology?group_by=region&group=nowhere');
    await page.getByText('No node is in this group').waitFor();
    await expectAbsent(page, page.getByText('Nothing is wrong here'));
    await page.route('**/api/dashboard/stats', (route) => route.abort());
    await page.goto('/console/nodes');
    await expectText(page.getByRole('group', { name: 'By state' })).toMatch(/offline\s–/);
    const members = [{ node_id: 'some-node', addresses: ['192.0.2.7/24'], routes: [] }];
    const network = { id: 'net', name: 'net', enabled: true, mtu: 1380, members, tunnels: [], credential_id: '' };
    const at = '2030-01-31T12:00:00.000Z';
    await page.route('**/api/l3-networks/net', (route) =>
      route.fulfill({ json: { data: { ...network, created_at: at, updated_at: at } } }),
    );
    await page.route('**/api/l3-networks/net/nodes', (route) => route.abort());
    await page.goto('/console/l3-networks/net');
    await page.getByRole('table', { name: 'Members' }).getByText('192.0.2.7/24').waitFor();
    await expectAbsent(page, page.getByText('never connected'));
  });

  test('a webhook is made, and its secret is shown once', async () => {
    const page = await site.openAs('admin', '/webhooks/new');
    await page.getByRole('textbox', { name: 'Name' }).fill('pager');
    await page.getByLabel('URL').fill('ftp://hooks.example/x');
    await button(page, 'Add webhook').click();
    await page.getByText(/^Url: .*\(request [\w-]+\)/).waitFor();
    await page.getByLabel('URL').fill('https://hooks.example/x');
    await button(page, 'Add webhook').click();
    const secret = await valueOf(page.getByRole('textbox', { name: 'Secret' }), /^whsec_/);
    await button(page, 'I have saved it').click();
    await button(page, 'Ping').waitFor();
    await expectNowhere(page, secret);
    await page.goBack();
    await page.getByRole('heading', { name: 'Add webhook' }).waitFor();
    await expectNowhere(page, secret);
  });

  test('a webhook whose first answer was lost says why its secret is not shown', async () => {
    const page = await site.openAs('admin', '/webhooks/new');
    let lost = false;
    await page.route('**/api/webhooks', async (route) => {
      if (lost || route.request().method() !== 'POST') return route.continue();
      lost = true;
      await route.fetch();
      return route.abort();
    });
    await page.getByRole('textbox', { name: 'Name' }).fill('lost');
    await page.getByLabel('URL').fill('https://hooks.example/z');
    const failed = page.waitForEvent('requestfailed');
    await button(page, 'Add webhook').click();
    await failed;
    await button(page, 'Add webhook').click();
    await page.getByText('This secret was shown before').waitFor();
  });

  test('a webhook that becomes one for programs shows the secret that it gets', async () => {
    const chat = { name: 'chat', url: 'https://hooks.example/y', format: 'slack', group_secs: 0 };
    const { id } = await site.admin.call<Resource>('POST', '/api/webhooks', chat);
    const page = await site.openAs('admin', `/webhooks/${id}/edit`);
    await page.getByRole('combobox', { name: 'Format' }).click();
    await page.getByRole('option', { name: /programs/ }).click();
    await button(page, 'Save').click();
    await valueOf(page.getByRole('textbox', { name: 'Secret' }), /^whsec_/);
  });
});
