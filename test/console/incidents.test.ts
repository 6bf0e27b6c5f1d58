/** Incidents in the console: one that begins and ends while it is looked at (`docs/contract/notices.md`). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { goTo } from '../../bench/console/pages.js';
import { startAgentProcess } from '../../scripts/stack/agent.js';
import { freePorts, type RunningProgram } from '../../scripts/stack/process.js';
import { openBrowser } from './support/browser.js';
import { expectAccessible } from './support/faults.js';
import { openSite, type Site } from './support/site.js';
import { addressOf, expectCount, expectTexts } from './support/waiting.js';

const browser = await openBrowser();

interface NewNode {
  readonly id: string;
  readonly control_psk: string;
}

describe.skipIf(browser === undefined)('incidents', () => {
  let site: Site;
  let node: NewNode;
  let agent: RunningProgram;
  const start = (): void => {
    const { controlEndpoint } = site.service;
    agent = startAgentProcess({ nodeId: node.id, controlEndpoint, controlPsk: node.control_psk });
  };
  beforeAll(async () => {
    site = await openSite(browser!);
    const often = { heartbeat_interval_secs: 1, offline_after_secs: 3 };
    await site.admin.call('PUT', '/api/settings/connectivity', often);
    node = await site.admin.call<NewNode>('POST', '/api/nodes', { name: 'edge-1' });
    const [listen_port] = await freePorts(1);
    const hop = { node_id: node.id, listen_addr: '127.0.0.1', listen_port, outer: 'tcp', security: 'raw' };
    const target = { endpoint: '127.0.0.1:9' };
    const body = { name: 'front', payload: 'tcp', hops: [hop], target };
    const { id } = await site.admin.call<{ readonly id: string }>('POST', '/api/l4-chains', body);
    start();
    await site.admin.call('POST', `/api/l4-chains/${id}/deploy?wait=applied`, {});
  });
  afterAll(async () => {
    await agent.stop();
    await site.close();
  });

  test('those that last are not fewer than they are', async () => {
    const page = await site.openAs('viewer', '/audit');
    await page.route(/\/api\/incidents\?.*open=true/, async (route) => {
      const resource = { type: 'node', id: node.id, name: 'edge-1' };
      const began_at = '2030-01-31T12:00:00.000Z';
      const one = {
        id: node.id,
        resource,
        status: 'offline',
        began_at,
        ended_at: null,
        reason: null,
        duration_secs: 1,
      };
      const data = { items: [one], total: 214, page: 1, page_size: 50 };
      await route.fulfill({ json: { success: true, data, error: null } });
    });
    await goTo(page, '/incidents');
    await page.getByRole('region', { name: 'Now' }).getByText('and 213 more').waitFor();
  });

  test('one appears on top as it begins, says why and what was changed before, and ends while it is shown', async () => {
    const page = await site.openAs('viewer', '/incidents?resource_type=node');
    await page.getByText('Nothing is wrong now.').waitFor();
    await agent.stop('SIGKILL');
    const now = page.getByRole('region', { name: 'Now' });
    await now.getByRole('link', { name: 'edge-1' }).waitFor();
    await now.getByText(/so far$/).waitFor();
    await expectAccessible(page);
    await now.getByRole('link', { name: 'edge-1' }).click();
    await page.getByRole('heading', { name: 'Node edge-1: offline' }).waitFor();
    await page.getByRole('status').getByText('still').waitFor();
    const before = page.getByRole('region', { name: 'Changed in the hour before' });
    await expectTexts(before.getByRole('row').filter({ hasText: 'deployed' })).toEqual([
      expect.stringContaining('admin deployed chain front'),
    ]);
    await expectCount(before.getByRole('row').filter({ hasText: 'signed in' })).toBe(0);
    await expectAccessible(page);
    const address = await addressOf(page, /\/incidents\/[\w-]+\?resource_id=/);

    start();
    await page.getByRole('status').getByText('ended').waitFor();
    await goTo(page, address);
    await page.getByRole('link', { name: 'Other incidents of it' }).click();
    await page.getByText('Nothing is wrong now.').waitFor();
    await goTo(page, address.replace(/\?.*/, ''));
    await page.getByRole('heading', { name: 'Node edge-1: offline' }).waitFor();
    await goTo(page, address.replace(/incidents\/[\w-]+/, 'incidents/0198c1a2-0000-7000-8000-000000000000'));
    await page.getByText(/There is no such incident any more/).waitFor();
  });
});
