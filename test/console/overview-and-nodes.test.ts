/** Journeys over the overview and the nodes, with real agents (`docs/contract/console.md#pages`, `#rules`). */
import { readFileSync } from 'node:fs';
import { once } from 'node:events';
import { connect, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { containerLine, systemdLines } from '../../console/src/nodes/machine-files.js';
import { goTo } from '../../bench/console/pages.js';
import { startAgentProcess } from '../../scripts/stack/agent.js';
import { freePorts, type RunningProgram } from '../../scripts/stack/process.js';
import { projectRoot } from '../support/project-root.js';
import { openBrowser } from './support/browser.js';
import { expectAccessible } from './support/faults.js';
import { more } from './support/hands.js';
import { openSite, type Site } from './support/site.js';
import { expectAbsent, expectFocus, expectNowhere, expectText, valueOf } from './support/waiting.js';

const browser = await openBrowser();

interface Resource {
  readonly id: string;
}

test('what a machine needs is what the document on agents explains', () => {
  const lines = readFileSync(join(projectRoot, 'docs/how-to/add-an-agent.md'), 'utf8').split('\n');
  const page = lines.map((line) => line.trim()).join('\n');
  for (const text of [systemdLines, containerLine]) {
    expect(page).toContain(text.replaceAll(/^ +/gm, '').trim());
  }
});

describe.skipIf(browser === undefined)('overview and nodes', () => {
  let site: Site;
  let echo: Server;
  let listenPort: number;
  let takenPort: number;
  let chain: Resource;
  let node: Resource;
  const agents: RunningProgram[] = [];

  beforeAll(async () => {
    site = await openSite(browser!);
    [listenPort = 0, takenPort = 0] = await freePorts(2);
    echo = createServer((socket) => socket.pipe(socket)).listen(0, '127.0.0.1');
    await once(echo, 'listening');
  });
  afterAll(async () => {
    for (const agent of agents) await agent.stop();
    echo.close();
    await site.close();
  });

  const field = (page: Page, label: string, expected: RegExp): Promise<string> =>
    valueOf(page.getByLabel(label, { exact: true }), expected);
  const hop = (port: number): object => ({
    node_id: node.id,
    listen_addr: '127.0.0.1',
    listen_port: port,
    outer: 'tcp',
    security: 'raw',
  });
  const shownPsk = async (page: Page): Promise<string> => {
    const file = await field(page, 'Environment file, which only root may read', /^SVC_CONTROL_PSK=/m);
    return /svcpsk1_\S+/.exec(file)![0];
  };

  test('the keyboard alone adds a node; its agent, started with what the page shows, comes online there and carries traffic', async () => {
    const page = await site.openAs('operator', '/');
    await page.getByRole('link', { name: 'Add a node' }).click();
    await page.getByRole('heading', { name: 'Add node' }).waitFor();
    const { keyboard } = page;
    // What is required is checked here, and stands beside its field.
    await page.getByLabel('Name').waitFor();
    await expectFocus(page).toBe('name');
    await keyboard.press('Enter');
    await page.getByText('Name is required').waitFor();
    await expectFocus(page).toBe('name');
    await keyboard.type('edge-1');
    await keyboard.press('Tab');
    await keyboard.type('127.0.0.1');
    await keyboard.press('Tab');
    await keyboard.type('region:eu');
    await keyboard.press('Enter');
    await keyboard.press('Tab');
    await keyboard.type('The first one');
    await keyboard.press('Tab');
    await keyboard.press('Enter');

    await page.getByText('Waiting for its agent').waitFor();
    await expectAccessible(page);
    const environment = Object.fromEntries(
      (await field(page, 'Environment file, which only root may read', /SVC_AGENT_ID=/))
        .trim()
        .split('\n')
        .map((line) => line.split('=', 2)),
    ) as { SVC_AGENT_ID: string; SVC_CONTROL_ENDPOINT: string };
    expect(environment.SVC_CONTROL_ENDPOINT).toBe(site.service.controlEndpoint);
    node = { id: environment.SVC_AGENT_ID };
    const psk = await shownPsk(page);
    agents.push(
      startAgentProcess({
        nodeId: node.id,
        controlEndpoint: environment.SVC_CONTROL_ENDPOINT,
        controlPsk: psk,
      }),
    );
    await page.getByText('Its agent is online').waitFor();
    await page.getByRole('button', { name: 'I have saved the PSK' }).click();
    await page.getByRole('heading', { name: 'edge-1' }).waitFor();
    await page.getByText('region: eu').waitFor();
    await expectNowhere(page, psk);

    const { port } = echo.address() as { port: number };
    chain = await site.admin.call<Resource>('POST', '/api/l4-chains', {
      name: 'front',
      payload: 'tcp',
      hops: [hop(listenPort)],
      target: { endpoint: `127.0.0.1:${port}` },
    });
    await site.admin.call('POST', `/api/l4-chains/${chain.id}/deploy?wait=applied`);
    const row = page.getByRole('row').filter({ hasText: `127.0.0.1:${listenPort}` });
    await row.getByText('running').waitFor();
    const client = connect(listenPort, '127.0.0.1').end('through the chain');
    const [answer] = (await once(client, 'data')) as [Buffer];
    expect(answer.toString()).toBe('through the chain');
    await expectAccessible(page);
  });

  test('a rejected deploy is found from the overview in two clicks, with the field that is to blame', async () => {
    const taken = createServer().listen(takenPort, '127.0.0.1');
    await once(taken, 'listening');
    const page = await site.openAs('operator', '/');
    await page.getByText('All is well').waitFor();
    await site.admin.call('PUT', `/api/l4-chains/${chain.id}`, { hops: [hop(takenPort)] });
    await site.admin.call('POST', `/api/l4-chains/${chain.id}/deploy`);
    // Without a reload.
    const attention = page.getByRole('region', { name: 'State of the fleet' });
    await attention
      .getByText('Chain "front" is down because node "edge-1" has rejected its newest configuration')
      .waitFor();
    await expectAccessible(page);
    await attention.getByRole('link', { name: 'front' }).click();
    await page.getByRole('link', { name: 'edge-1' }).first().click();
    await page.getByText(/rejected generation/).waitFor();
    await expectAccessible(page);

    await page.getByRole('link', { name: 'Show' }).click();
    const difference = page.getByRole('region', { name: /^From generation/ });
    await expectText(difference).toContain(String(takenPort));
    await expectAccessible(page);
    await page.goBack();
    await page.getByText(/rejected generation/).waitFor();
    await page.getByRole('link', { name: 'hops[0].listen_port' }).click();
    await expectFocus(page).toBe('hops.0.listen_port');
    taken.close();
  });

  test('a viewer sees no button that would be refused, and all of the rest', async () => {
    const page = await site.openAs('viewer', `/nodes/${node.id}`);
    await page.getByText(/rejected generation/).waitFor();
    await page.getByRole('button', { name: 'More actions' }).click();
    await page.getByRole('menuitem', { name: 'History' }).waitFor();
    const refused = ['Commands', 'Issue PSK', 'Delete'].flatMap((name) => [
      page.getByRole('button', { name }),
      page.getByRole('menuitem', { name }),
    ]);
    await expectAbsent(page, ...refused, page.getByRole('link', { name: 'Edit' }));
    await goTo(page, '/nodes?label=region:eu&status=online');
    await page.getByRole('row').filter({ hasText: 'edge-1' }).waitFor();
    await expectAbsent(page, page.getByRole('link', { name: 'Add node' }));
    await expectAccessible(page);
  });

  test('what stands in the way of a delete is named before it is tried; a new PSK is asked for, shown once, and ends the session', async () => {
    const page = await site.openAs('operator', `/nodes/${node.id}?dialog=delete`);
    const dialog = page.getByRole('dialog');
    await dialog.getByText('front').waitFor();
    await expectAbsent(page, dialog.getByRole('button', { name: 'Delete' }));
    await dialog.getByRole('button', { name: 'Cancel' }).last().click();
    const { psk_fingerprint: before } = await site.admin.call<{ psk_fingerprint: string }>(
      'GET',
      `/api/nodes/${node.id}`,
    );
    await more(page, 'Issue PSK');
    await page.getByRole('dialog').getByRole('button', { name: 'Issue PSK' }).click();
    await page.getByText('Waiting for its agent').waitFor();
    const psk = await shownPsk(page);
    await page.reload();
    await page.getByText('Its agent is not connected').waitFor();
    await expectNowhere(page, psk);
    const after = await site.admin.call<{ psk_fingerprint: string }>('GET', `/api/nodes/${node.id}`);
    expect(after.psk_fingerprint).not.toBe(before);
  });
});
