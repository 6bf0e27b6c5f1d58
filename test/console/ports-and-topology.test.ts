/** The pages of ports and of the topology, with a real agent (`docs/contract/console.md#pages`). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { goTo, visit } from '../../bench/console/pages.js';
import { startAgentProcess } from '../../scripts/stack/agent.js';
import { freePorts, type RunningProgram } from '../../scripts/stack/process.js';
import { openBrowser } from './support/browser.js';
import { expectAccessible } from './support/faults.js';
import { openSite, type Site } from './support/site.js';
import { expectCount, expectLeftToRight, expectSearch, expectTexts } from './support/waiting.js';

const browser = await openBrowser();

interface NewNode {
  readonly id: string;
  readonly control_psk: string;
}

describe.skipIf(browser === undefined)('ports and topology', () => {
  let site: Site;
  let agent: RunningProgram;
  let port: number;
  let edge: NewNode;
  let exit: NewNode;
  let chain: { readonly id: string };
  const hop = ({ id }: NewNode, listen_port: number) => ({
    node_id: id,
    listen_addr: '127.0.0.1',
    listen_port,
    outer: 'tcp',
    security: 'raw',
  });
  beforeAll(async () => {
    site = await openSite(browser!);
    const make = <T>(path: string, body: object): Promise<T> => site.admin.call<T>('POST', path, body);
    const node = (name: string) =>
      make<NewNode>('/api/nodes', { name, address: '127.0.0.1', labels: { region: name.slice(0, 4) } });
    [edge, exit] = await Promise.all([node('edge-1'), node('exit-1')]);
    await make('/api/nodes', { name: 'spare', labels: { region: 'edge' } });
    [port = 0] = await freePorts(1);
    chain = await make('/api/l4-chains', {
      name: 'front',
      payload: 'tcp',
      hops: [hop(edge, port), hop(exit, 9443)],
      target: { endpoint: '192.0.2.1:80' },
    });
    agent = startAgentProcess({
      nodeId: edge.id,
      controlEndpoint: site.service.controlEndpoint,
      controlPsk: edge.control_psk,
    });
    await make(`/api/l4-chains/${chain.id}/deploy?wait=applied`, {});
  });
  afterAll(async () => {
    await agent.stop();
    await site.close();
  });

  test('intended listeners stand beside what the agent reports; what is missing is found by a filter of the address', async () => {
    const page = await site.openAs('viewer', '/ports');
    const row = (text: string) => page.getByRole('row').filter({ hasText: text });
    await row(`tcp 127.0.0.1:${port}`).getByText('running').waitFor();
    await row('tcp 127.0.0.1:9443').getByText('no report yet').waitFor();
    // Its node comes later by name.
    await page.getByRole('row').nth(1).getByText('tcp 127.0.0.1:9443').waitFor();
    await expectAccessible(page);
    await page.getByRole('combobox', { name: 'State' }).click();
    await page.getByRole('option', { name: 'missing' }).click();
    await row(`tcp 127.0.0.1:${port}`).waitFor({ state: 'detached' });
    await expectCount(row('tcp 127.0.0.1:9443')).toBe(1);
    await expectSearch(page).toBe('?running=false');
    await goTo(page, '/ports?listen_port=1');
    await page.getByText('No matches').waitFor();
    // What a page does not know, as a chat adds to a link, is dropped.
    await visit(page, '/ports?utm_source=chat&running=false');
    await expectCount(row('tcp 127.0.0.1:9443')).toBe(1);
    await expectSearch(page).toBe('?running=false');
  });

  test('the page of a node shows a listener that runs, while the chain that it belongs to is edited and not deployed', async () => {
    const page = await site.openAs('viewer', `/nodes/${edge.id}`);
    const row = (text: string) =>
      page.getByRole('region', { name: 'Listeners' }).getByRole('row').filter({ hasText: text });
    await row(`127.0.0.1:${port}`).getByText('running').waitFor();
    await site.admin.call('PUT', `/api/l4-chains/${chain.id}`, { hops: [hop(edge, 9442), hop(exit, 9443)] });
    await row('127.0.0.1:9442').getByText('not deployed').waitFor();
    await row(`127.0.0.1:${port}`).getByText('running').waitFor();
    await row(`127.0.0.1:${port}`).getByRole('link', { name: 'front' }).waitFor();
    await site.admin.call('POST', `/api/l4-chains/${chain.id}/deploy?wait=applied`, {});
    await row(`127.0.0.1:${port}`).waitFor({ state: 'detached' });
  });

  test('the topology leads from who dials to who is dialled; a search dims the rest, a label groups, and a group opens', async () => {
    const page = await site.openAs('viewer', '/topology');
    const card = (name: string) => page.locator('.react-flow__node').filter({ hasText: name });
    await card('edge-1').getByText('online').waitFor();
    await card('exit-1').getByText('never connected').waitFor();
    await expectLeftToRight([card('edge-1'), card('exit-1'), card('spare')]);
    await expectCount(page.locator('.react-flow__edge')).toBe(1);
    const table = page.getByRole('region', { name: 'What is drawn, as a table' });
    await expectCount(table.getByRole('row')).toBe(4);
    await expectAccessible(page);
    await page.getByLabel('Find a node or group').fill('exit');
    await page.getByText('1 found').waitFor();
    await expectCount(page.locator('[data-dimmed]')).toBe(2);
    await expectSearch(page).toBe('?q=exit');

    await goTo(page, '/topology?group_by=region');
    await card('2 nodes, 1 never connected').waitFor();
    // A group is found by a node in it.
    await page.getByLabel('Find a node or group').fill('spare');
    await page.getByText('1 found').waitFor();
    await page.getByLabel('Find a node or group').fill('');
    await table.getByText('Links', { exact: true }).click();
    await expectTexts(table.getByRole('row')).toContainEqual(expect.stringMatching(/^edge\s+exit\s/));
    await goTo(page, '/topology?group_by=region');
    await card('2 nodes, 1 never connected').getByRole('link', { name: 'edge' }).click();
    await expectSearch(page).toBe('?group_by=region&group=edge');
    await card('exit-1').getByText('never connected, of another group').waitFor();
    await expectCount(page.locator('.react-flow__node')).toBe(3);
    await page.getByLabel('Only what is wrong').check();
    await card('edge-1').waitFor({ state: 'detached' });
    await page.getByRole('link', { name: 'All of region' }).click();
    await expectSearch(page).toBe('?group_by=region&only=wrong');
  });

  test('a fleet of more than 40 nodes is grouped, and drawn node by node when asked, each at a size that one reads', async () => {
    const nodes = Array.from({ length: 42 }, (_, index) => `  pop-${index}: {labels: {site: a}}\n`);
    const document = `svc: 1\nset: many\nnodes:\n${nodes.join('')}`;
    await site.admin.call('POST', '/api/fleet/apply', { document });
    const page = await site.openAs('viewer', '/topology');
    const card = (name: string) => page.locator('.react-flow__node').filter({ hasText: name });
    await card('42 nodes, 42 never connected').getByRole('link', { name: 'a', exact: true }).waitFor();
    await goTo(page, '/topology?group_by=*');
    await card('pop-41').waitFor();
    await expectCount(page.locator('.react-flow__node')).toBe(45);
    await expectAccessible(page);
  });
});
