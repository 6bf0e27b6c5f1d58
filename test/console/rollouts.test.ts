/** Rollouts in the console: a change that two agents get one after the other (`docs/contract/rollouts.md`). */
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { goTo } from '../../bench/console/pages.js';
import { startAgentProcess } from '../../scripts/stack/agent.js';
import { freePorts, type RunningProgram } from '../../scripts/stack/process.js';
import { openBrowser } from './support/browser.js';
import { expectAccessible } from './support/faults.js';
import { more } from './support/hands.js';
import { openSite, type Site } from './support/site.js';
import { addressOf, expectAbsent, expectCount, expectSearch, expectTexts } from './support/waiting.js';

const browser = await openBrowser();

interface NewNode {
  readonly id: string;
  readonly control_psk: string;
}

describe.skipIf(browser === undefined)('rollouts', () => {
  let site: Site;
  const agents: RunningProgram[] = [];
  let upstream: string;
  beforeAll(async () => {
    site = await openSite(browser!);
    const make = <T = { readonly id: string }>(path: string, body: object): Promise<T> =>
      site.admin.call<T>('POST', path, body);
    // Short, because nothing is judged for that long after a start.
    const often = { heartbeat_interval_secs: 1, offline_after_secs: 3 };
    await site.admin.call('PUT', '/api/settings/connectivity', often);
    const { controlEndpoint } = site.service;
    ({ id: upstream } = await make('/api/l4-upstreams', { name: 'web', endpoint: '127.0.0.1:9' }));
    for (const [index, listen_port] of (await freePorts(2)).entries()) {
      const node = await make<NewNode>('/api/nodes', { name: `edge-${index + 1}` });
      agents.push(startAgentProcess({ nodeId: node.id, controlEndpoint, controlPsk: node.control_psk }));
      const { id } = await make('/api/l4-chains', {
        name: `front-${index + 1}`,
        payload: 'tcp',
        hops: [{ node_id: node.id, listen_addr: '127.0.0.1', listen_port, outer: 'tcp', security: 'raw' }],
        target: { upstream_id: upstream },
      });
      await make(`/api/l4-chains/${id}/deploy?wait=applied`, {});
    }
  });
  afterAll(async () => {
    await Promise.all(agents.map((agent) => agent.stop()));
    await site.close();
  });

  const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });
  const confirm = (page: Page, name: string) => page.getByRole('dialog').getByRole('button', { name, exact: true });

  test('a policy is made in a form, named by the settings, and then not deleted; its waves are shown live', async () => {
    const page = await site.openAs('operator', '/rollout-policies/new');
    await page.getByLabel('Name').fill('careful');
    await button(page, 'Remove wave 2').click();
    await page.getByLabel('Watch each wave (seconds)').fill('3600');
    await page.getByLabel('Nodes that may fail').fill('101%');
    await button(page, 'Add rollout policy').click();
    await page.getByText(/"p%" with p from 0 to 100/).waitFor();
    await page.getByLabel('Nodes that may fail').fill('50%');
    await expectAccessible(page);
    await button(page, 'Add rollout policy').click();
    await page.getByText('1 node → the rest').waitFor();

    await goTo(page, '/settings/edit');
    await page.getByRole('combobox', { name: 'Rollout policy of changes' }).click();
    await page.getByRole('option', { name: 'careful' }).click();
    await button(page, 'Save').click();
    await page.getByText('Settings saved.').waitFor();
    await page.getByRole('definition').filter({ hasText: 'careful' }).waitFor();
    await goTo(page, '/rollout-policies');
    await page.getByRole('link', { name: 'careful' }).click();
    await more(page, 'Delete');
    await page.getByText('In use. Change or delete these first:').waitFor();
    await expectCount(confirm(page, 'Delete')).toBe(0);
  });

  test('a change goes from wave to wave: counts and time left are live, a step says what it does', async () => {
    const watching = await site.openAs('viewer', '/rollouts');
    await watching.getByText('No rollouts yet').waitFor();
    await site.admin.call('PUT', `/api/l4-upstreams/${upstream}`, { endpoint: '127.0.0.1:10' });
    await watching.getByRole('link', { name: 'Change upstream web' }).click();
    const address = await addressOf(watching, /\/rollouts\/[\w-]+$/);
    await watching.getByRole('status').getByText('under watch').waitFor();
    await watching.getByText(/in \d+ minutes the next wave/).waitFor();
    const rows = watching.getByRole('row');
    await expectTexts(rows.filter({ hasText: 'Wave 1' })).toEqual([expect.stringContaining('1 applied')]);
    await expectTexts(rows.filter({ hasText: 'Wave 2' })).toEqual([expect.stringContaining('1 held back')]);
    await expectAbsent(watching, button(watching, 'Next wave now'));
    // Off the row under the mouse.
    await watching.mouse.move(0, 0);
    await expectAccessible(watching);
    await watching.getByRole('link', { name: 'Wave 2' }).click();
    await expectSearch(watching).toBe('?wave=2');
    await expectTexts(rows.filter({ hasText: 'edge-' })).toEqual([expect.stringMatching(/edge-2.*held back/s)]);
    await watching.getByRole('link', { name: 'edge-2' }).click();
    await watching.getByText(/^Held back by a rollout/).waitFor();
    await watching.getByRole('link', { name: 'Show the rollout' }).click();

    const page = await site.openAs('operator', address);
    await more(page, 'Pause');
    await page.getByText(/1 node stays on the configuration of before/).waitFor();
    await expectSearch(page).toBe('?dialog=pause');
    await confirm(page, 'Pause').click();
    await watching.getByRole('status').getByText('paused').waitFor();
    await expectAbsent(watching, watching.getByText('the next wave'));
    await button(page, 'Resume').click();
    await confirm(page, 'Resume').click();
    await button(page, 'Next wave now').click();
    await page.getByText('1 node of the next wave get').waitFor();
    await confirm(page, 'Next wave now').click();
    await watching.getByText(/it completes/).waitFor();
    await more(page, 'Undo');
    await page.getByText(/2 nodes go back/).waitFor();
    await confirm(page, 'Undo').click();
    await watching.getByRole('status').getByText('undone').waitFor();
    await goTo(watching, '/rollouts?state=running');
    await watching.getByText('No matches').waitFor();
  });

  test('a change of several nodes shows its waves before it is made, and another policy can be chosen for it', async () => {
    const page = await site.openAs('operator', '/fleet-file');
    const document = 'svc: 1\nupstreams:\n  web: {endpoint: "127.0.0.1:11"}\n';
    await page.getByLabel('Document (YAML or JSON)').fill(document);
    await page.getByLabel('Take over resources with these names that no set owns').check();
    await button(page, 'Preview changes').click();
    await page.getByText('wave 1: 1 node → wave 2: 1 node').waitFor();
    await page.getByRole('combobox', { name: 'Rollout' }).click();
    await page.getByRole('option', { name: 'All nodes at once' }).click();
    await page.getByText('All nodes get it at once.').waitFor();
    await button(page, 'Apply').click();
    await page.getByText('Document applied.').waitFor();
    await goTo(page, '/rollouts');
    await expectCount(page.getByRole('row').filter({ hasText: 'fleet file' })).toBe(0);

    // So does taking it back, which then shows its rollout.
    const applies = '/api/audit?resource_type=fleet&page_size=1';
    const { items } = await site.admin.call<{ items: { resource: { id: string } }[] }>('GET', applies);
    // A load, after which the notice of the apply, which has an Undo too, is gone.
    await page.goto(`/console/fleet-file/applies/${items[0]!.resource.id}`);
    await button(page, 'Preview undo').click();
    await page.getByText('wave 1: 1 node → wave 2: 1 node').waitFor();
    await button(page, 'Undo').click();
    await page.waitForURL(/\/rollouts\/[\w-]+$/);
    await page.getByRole('status').getByText('under watch').waitFor();
  });

  test('going back to an earlier deployment asks by which policy', async () => {
    const { items } = await site.admin.call<{ items: NewNode[] }>('GET', '/api/l4-chains?q=front-1');
    const chain = `/api/l4-chains/${items[0]!.id}`;
    await site.admin.call('PUT', chain, { description: 'changed' });
    await site.admin.call('POST', `${chain}/deploy?rollout=none`, {});
    const page = await site.openAs('operator', `/chains/${items[0]!.id}`);
    await button(page, 'Go back').click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('combobox', { name: 'Rollout' }).click();
    await page.getByRole('option', { name: 'All nodes at once' }).click();
    await confirm(page, 'Go back').click();
    await page.getByText('Chain front-1 deployed as it was then').waitFor();
    await goTo(page, '/rollouts');
    await page.getByRole('row').filter({ hasText: 'fleet file' }).waitFor();
    await expectCount(page.getByRole('row').filter({ hasText: 'front-1' })).toBe(0);
  });
});
