/** Chains in the console (`docs/contract/console.md#pages`, Chains, chain), over real agents. */
import { createServer, type AddressInfo, type Server } from 'node:net';
import { once } from 'node:events';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startAgentProcess } from '../../scripts/stack/agent.js';
import { freePorts, type RunningProgram } from '../../scripts/stack/process.js';
import { openBrowser } from './support/browser.js';
import { expectAccessible } from './support/faults.js';
import { openSite, type Site } from './support/site.js';
import {
  expectAbsent,
  expectAttribute,
  expectDisabled,
  expectFocus,
  expectTexts,
  expectValue,
} from './support/waiting.js';

const browser = await openBrowser();

describe.skipIf(browser === undefined)('chains', () => {
  let site: Site;
  const agents: RunningProgram[] = [];
  const nodes: { readonly id: string; readonly name: string }[] = [];
  let ports: readonly number[];
  /** Holds a port that no agent can listen on. */
  let occupier: Server;

  beforeAll(async () => {
    site = await openSite(browser!);
    const { admin, service } = site;
    await admin.call('PUT', '/api/settings/connectivity', { heartbeat_interval_secs: 1 });
    for (const name of ['entry', 'exit']) {
      const node = await admin.call<{ id: string; control_psk: string }>('POST', '/api/nodes', {
        name,
        address: '127.0.0.1',
      });
      nodes.push({ id: node.id, name });
      const { id: nodeId, control_psk: controlPsk } = node;
      agents.push(startAgentProcess({ nodeId, controlPsk, controlEndpoint: service.controlEndpoint }));
    }
    await admin.call('POST', '/api/l4-upstreams', { name: 'shop', endpoint: '127.0.0.1:9' });
    ports = await freePorts(9);
    occupier = createServer().listen(0, '0.0.0.0');
    await once(occupier, 'listening');
  });
  afterAll(async () => {
    await Promise.all(agents.map((agent) => agent.stop()));
    await site.close();
    occupier.close();
  });

  const hop = (index: number, port = ports[index]) => ({
    node_id: nodes[index]!.id,
    listen_port: port,
    outer: 'tcp',
    security: 'raw',
  });
  const chain = async (name: string, hops: readonly object[], endpoint = '192.0.2.1:80'): Promise<string> => {
    const body = { name, payload: 'tcp', hops, target: { endpoint } };
    return (await site.admin.call<{ id: string }>('POST', '/api/l4-chains', body)).id;
  };
  const deploy = (id: string) => site.admin.call('POST', `/api/l4-chains/${id}/deploy?wait=applied`);
  /** Required ones have a star. */
  const field = (page: Page, label: string, place = 0) => page.getByLabel(new RegExp(`^${label}( \\*)?$`)).nth(place);
  const choose = async (page: Page, label: string, place: number, option: string): Promise<void> => {
    await field(page, label, place).click();
    await page.getByRole('option', { name: option, exact: true }).click();
  };

  test('an operator builds a chain hop by hop, reads a refusal beside its field, deploys it and sees each node apply it', async () => {
    const page = await site.openAs('operator', '/chains/new');
    await field(page, 'Name').fill('front');
    await choose(page, 'Node', 0, 'entry');
    await choose(page, 'Transport', 0, 'TLS over TCP');
    await field(page, 'Port').fill(String(ports[0]));
    await page.getByRole('button', { name: 'Add hop' }).click();
    await field(page, 'Node', 1).click();
    // A node is at most once in a chain.
    await expectTexts(page.getByRole('option')).toEqual(['exit']);
    await page.getByRole('option', { name: 'exit' }).click();
    await field(page, 'Port', 1).fill(String(ports[1]));
    await choose(page, 'Upstream', 0, 'shop');
    await page.getByRole('button', { name: 'Add chain' }).click();
    await page.getByText('Credential is required').waitFor();
    await expectAttribute(field(page, 'Credential'), 'aria-invalid').toBe('true');
    await expectFocus(page).toBe('hops.0.credential_id');
    await expectAccessible(page);
    await field(page, 'Name').fill('shared');
    await choose(page, 'Transport', 0, 'plain TCP');
    await field(page, 'Port').fill('70000');
    await page.getByRole('button', { name: 'Add chain' }).click();
    await page.getByText(/listen_port: .*\(request [\w-]+\)/).waitFor();
    await expectFocus(page).toBe('hops.0.listen_port');
    await field(page, 'Name').fill('front');
    await field(page, 'Port').fill(String(ports[0]));
    await page.getByRole('button', { name: 'Add chain' }).click();
    await page.getByText('never deployed', { exact: true }).waitFor();
    const plan = page.getByRole('region', { name: 'Not deployed yet' });
    await plan.getByRole('row').filter({ hasText: 'exit' }).getByText('+1').waitFor();
    await plan.getByRole('button', { name: 'Deploy' }).click();
    await page.getByText('applied on every node').waitFor();
    await page.getByText('running').nth(1).waitFor();
    await expectAccessible(page);
  });

  test('a chain is built without leaving its form, its draft survives leaving and a reload, and it is deployed at once', async () => {
    const page = await site.openAs('operator', '/chains/new');
    const path = page.getByRole('region', { name: 'The path so far' });
    await path.getByText('choose a node').waitFor();
    await page.getByRole('button', { name: 'Add chain' }).click();
    // All at once, with the focus on the first.
    for (const label of ['Name', 'Node', 'Port', 'Upstream']) await page.getByText(`${label} is required`).waitFor();
    await expectFocus(page).toBe('name');
    await field(page, 'Name').fill('made at once');
    await choose(page, 'Node', 0, 'entry');
    await path.getByText('entry').waitFor();
    // A free port is filled in.
    await expectValue(field(page, 'Port')).toMatch(/^\d+$/);
    await field(page, 'Port').fill(String(ports[4]));
    await choose(page, 'Transport', 0, 'TLS over TCP');
    await page.getByRole('button', { name: 'Make a certificate' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('button', { name: 'Add and choose' }).click();
    await dialog.getByText('Host name is required').waitFor();
    await expectAccessible(page);
    await dialog.getByRole('textbox', { name: 'Name', exact: true }).fill('made inside');
    await dialog.getByRole('textbox', { name: 'Host name' }).fill('front.example');
    await page.keyboard.press('Enter');
    await dialog.waitFor({ state: 'detached' });
    await expectValue(field(page, 'Credential')).toBe('made inside');

    await page.getByRole('navigation').getByRole('link', { name: 'Nodes' }).click();
    await page.getByRole('heading', { name: 'Nodes' }).waitFor();
    await page.goto('/console/chains/new');
    await page.getByText('This is what you typed before').waitFor();
    await expectValue(field(page, 'Name')).toBe('made at once');
    await expectValue(field(page, 'Credential')).toBe('made inside');
    await choose(page, 'Upstream', 0, 'shop');
    await page.getByRole('button', { name: 'Add and deploy' }).click();
    await page.getByRole('heading', { name: 'made at once' }).waitFor();
    await page.getByText('applied on every node').waitFor();
    // Nothing is left of the draft.
    await page.goto('/console/chains/new');
    await path.getByText('choose a node').waitFor();
    await expectValue(field(page, 'Name')).toBe('');
    await expectAbsent(page, page.getByText('This is what you typed before'));
    // The only credential that fits needs no choice.
    await choose(page, 'Transport', 0, 'TLS over TCP');
    await expectValue(field(page, 'Credential')).toBe('made inside');
  });

  test('what an agent rejects is shown with the way to its field, where the agent’s words stand', async () => {
    const { port } = occupier.address() as AddressInfo;
    const id = await chain('taken', [hop(0, port)]);
    await deploy(id);
    const page = await site.openAs('operator', `/chains/${id}`);
    const row = page
      .getByRole('region', { name: 'Deployments' })
      .getByRole('listitem')
      .filter({ hasText: 'entry' })
      .last();
    await row.getByText('rejected').waitFor();
    await row.getByRole('link', { name: 'hops[0].listen_port' }).click();
    await page.getByText(/^The agent rejected it: /).waitFor();
    await expectFocus(page).toBe('hops.0.listen_port');
    await site.admin.call('DELETE', `/api/l4-chains/${id}`);
  });

  test('two people edit one chain: the slower one reads who was faster and what both have, and loses nothing', async () => {
    const id = await chain('shared', [hop(0, ports[2])]);
    const page = await site.openAs('operator', `/chains/${id}/edit`);
    await field(page, 'Description').fill('for customers');
    const other = await site.openAs('admin', `/chains/${id}/edit`);
    await field(other, 'Port').fill(String(ports[3]));
    await field(other, 'Endpoint').fill('192.0.2.7:80');
    await other.getByRole('button', { name: 'Save', exact: true }).click();

    const overtaken = page.getByRole('alert').filter({ hasText: 'Someone else changed this' });
    await overtaken.getByText(/Changed by admin/).waitFor();
    await overtaken.getByRole('row').filter({ hasText: 'listen_port' }).getByText(String(ports[3])).waitFor();
    await expectDisabled(page.getByRole('button', { name: 'Save', exact: true })).toBe(true);
    await overtaken.getByRole('button', { name: /Keep mine/ }).click();
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByRole('heading', { name: 'shared', exact: true }).waitFor();
    expect(await site.admin.call('GET', `/api/l4-chains/${id}`)).toMatchObject({
      description: 'for customers',
      hops: [{ listen_port: ports[3] }],
      target: { endpoint: '192.0.2.7:80' },
    });
  });

  test('what is edited and not deployed stands beside its hop of the deployed path, until it is deployed', async () => {
    const id = await chain('edited', [hop(0, ports[6])], '192.0.2.1:83');
    await deploy(id);
    const page = await site.openAs('operator', `/chains/${id}`);
    const stops = page.getByRole('region', { name: 'Path' }).locator('[data-change]');
    await expectTexts(stops.filter({ hasText: 'entry' })).toEqual([expect.stringContaining(String(ports[6]))]);
    const hops = [hop(0, ports[7]), hop(1, ports[8])];
    await site.admin.call('PUT', `/api/l4-chains/${id}`, { hops, target: { endpoint: '192.0.2.1:84' } });
    await page.getByText('What runs now. What the next deploy changes stands beside it.').waitFor();
    await expectTexts(stops).toEqual([
      expect.stringContaining(`port: ${ports[6]} → ${ports[7]}`),
      expect.stringMatching(/exit.*added by the next deploy/s),
      expect.stringContaining('endpoint: 192.0.2.1:83 → 192.0.2.1:84'),
    ]);
    await expectAccessible(page);
    await page.getByRole('button', { name: 'Deploy' }).click();
    await expectTexts(stops).toEqual([expect.stringContaining('entry'), expect.stringContaining('exit')]);
    await expectAbsent(page, page.getByText('What the next deploy changes'));
  });

  test('one goes back to an earlier deployment, after reading what it changes, and a viewer cannot', async () => {
    const id = await chain('back', [hop(0, ports[4])], '192.0.2.1:81');
    await deploy(id);
    await site.admin.call('PUT', `/api/l4-chains/${id}`, { target: { endpoint: '192.0.2.1:82' } });
    await deploy(id);
    const viewer = await site.openAs('viewer', `/chains/${id}`);
    const page = await site.openAs('operator', `/chains/${id}`);
    await page.getByRole('button', { name: 'Go back' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('row').filter({ hasText: 'target.endpoint' }).getByText('192.0.2.1:81').waitFor();
    await page.waitForURL(/dialog=back-/);
    await dialog.getByRole('button', { name: 'Go back' }).click();
    await dialog.waitFor({ state: 'hidden' });
    await page.getByText('applied on every node').waitFor();
    const { items } = await site.admin.call<{ items: readonly { definition: object }[] }>(
      'GET',
      `/api/l4-chains/${id}/deployments?definition=true`,
    );
    expect(items.map(({ definition }) => definition)).toMatchObject(
      ['81', '82', '81'].map((port) => ({ target: { endpoint: `192.0.2.1:${port}` } })),
    );
    // The viewer's page has followed, and offers nothing.
    await viewer.getByRole('region', { name: 'Deployments' }).getByRole('listitem').nth(2).waitFor();
    await expectAbsent(viewer, viewer.getByRole('main').getByRole('button', { name: /Go back|Deploy|Edit|Delete/ }));
  });
});
