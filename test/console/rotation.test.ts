/** Guided rotation in the console: the PSK of a node, and the identity of the service (`docs/contract/rollouts.md#guided-rotation`). */
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { goTo } from '../../bench/console/pages.js';
import { startAgentProcess } from '../../scripts/stack/agent.js';
import { eventually, type RunningProgram } from '../../scripts/stack/process.js';
import { openBrowser } from './support/browser.js';
import { expectAccessible } from './support/faults.js';
import { more } from './support/hands.js';
import { openSite, type Site } from './support/site.js';
import { expectAbsent, expectCount, expectNowhere, valueOf } from './support/waiting.js';

const browser = await openBrowser();

interface Node {
  readonly id: string;
  readonly psk_fingerprint: string;
}

describe.skipIf(browser === undefined)('guided rotation', () => {
  let site: Site;
  let node: Node;
  const agents: RunningProgram[] = [];
  beforeAll(async () => {
    site = await openSite(browser!);
    const made = await site.admin.call<Node & { control_psk: string }>('POST', '/api/nodes', { name: 'edge-1' });
    node = made;
    startWith(made.control_psk);
    await eventually('its agent is online', async () => {
      const { status } = await site.admin.call<{ status: string }>('GET', `/api/nodes/${made.id}`);
      return status === 'online' || undefined;
    });
  });
  afterAll(async () => {
    await Promise.all(agents.map((agent) => agent.stop()));
    await site.close();
  });

  /** Stands in for reading a PSK into the identity file, which the agent's own tests cover. */
  function startWith(controlPsk: string): void {
    const { controlEndpoint } = site.service;
    agents.push(startAgentProcess({ nodeId: node.id, controlEndpoint, controlPsk }));
  }
  const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });
  const confirm = (page: Page, name: string) => page.getByRole('dialog').getByRole('button', { name, exact: true });
  const secretOf = (page: Page) => valueOf(page.getByRole('textbox', { name: 'Second PSK', exact: true }), /^svcpsk1_/);

  test('a second PSK is made, shown once, taken back, made again, and ends the first when an agent has it', async () => {
    const page = await site.openAs('operator', `/nodes/${node.id}`);
    await more(page, 'Rotate PSK');
    await page.getByText('connected with the current PSK').waitFor();
    await page.getByLabel('Days until it expires unused').fill('3');
    await button(page, 'Make second PSK').click();
    const lost = await secretOf(page);
    await valueOf(page.getByRole('textbox', { name: 'Commands' }), /^gateway-agent identity --psk-file psk /);
    await page.getByText('Waiting for a session with the second PSK').waitFor();
    await expectAccessible(page);
    await button(page, 'I have saved it').click();
    await expectAbsent(page, page.getByText(lost));

    await button(page, 'Take back').click();
    await confirm(page, 'Take back').click();
    await page.getByText('The second PSK is gone').waitFor();
    await button(page, 'Make second PSK').click();
    const psk = await secretOf(page);
    expect(psk).not.toBe(lost);
    const watching = await site.openAs('viewer', `/nodes/${node.id}/psk`);
    await watching.getByText('unused until now; valid until').waitFor();
    await expectCount(watching.getByRole('button', { name: /second PSK|Take back/ })).toBe(0);

    startWith(psk);
    await page.getByText('Done: its agent uses the new PSK').waitFor();
    await expectAbsent(watching, watching.getByText('unused until now'));
    const { psk_fingerprint: now } = await site.admin.call<Node>('GET', `/api/nodes/${node.id}`);
    expect(now).not.toBe(node.psk_fingerprint);
    await page.getByText(now).waitFor();
  });

  test('a second PSK that somebody else has replaced is shown no longer', async () => {
    const page = await site.openAs('operator', `/nodes/${node.id}/psk`);
    await button(page, 'Make second PSK').click();
    const replaced = await secretOf(page);
    await site.admin.call('POST', `/api/nodes/${node.id}/psk?mode=candidate`, {});
    const { psk_candidate: candidate } = await site.admin.call<{ psk_candidate: { fingerprint: string } }>(
      'GET',
      `/api/nodes/${node.id}`,
    );
    await page.getByText(candidate.fingerprint).waitFor();
    await expectAbsent(page, page.getByRole('textbox', { name: 'Second PSK', exact: true }));
    await expectNowhere(page, replaced);
    await site.admin.call('DELETE', `/api/nodes/${node.id}/psk/candidate`);
  });

  test('the identity has two keys until every node is over; the page counts them, and what is not over is named', async () => {
    const operator = await site.openAs('operator', '/settings');
    await operator.getByRole('link', { name: 'Show or rotate' }).click();
    await operator.getByText('Only admins rotate it.').waitFor();

    const page = await site.openAs('admin', '/settings/identity');
    await button(page, 'Make second key').click();
    await confirm(page, 'Make second key').click();
    await page.getByText('0 of 1 nodes are over, 1 connected with the old key').waitFor();
    await expectAccessible(page);
    await button(page, 'End old key').click();
    await confirm(page, 'End old key').click();
    await page
      .getByRole('dialog')
      .getByText(/edge-1/)
      .waitFor();
    await confirm(page, 'Cancel').last().click();
    await button(page, 'Show nodes that are not over').click();
    await page.getByRole('row').filter({ hasText: 'edge-1' }).getByRole('link', { name: 'Rotate PSK' }).click();
    await button(page, 'Make second PSK').click();
    startWith(await secretOf(page));
    await page.getByText('Done: its agent uses the new PSK').waitFor();

    await operator.getByText('1 of 1 nodes are over').waitFor();
    await goTo(page, '/settings/identity');
    await button(page, 'End old key').click();
    await confirm(page, 'End old key').click();
    await page.getByText('The old identity key has ended.').waitFor();
    await button(page, 'Make second key').waitFor();
  });
});
