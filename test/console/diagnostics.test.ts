/** Diagnostics on the page of a node, with a real agent (`docs/contract/agent-protocol.md`, "Diagnostics"). */
import { afterAll, beforeAll, describe, test } from 'vitest';
import { startAgentProcess } from '../../scripts/stack/agent.js';
import { freePorts, type RunningProgram } from '../../scripts/stack/process.js';
import { openBrowser } from './support/browser.js';
import { expectAccessible } from './support/faults.js';
import { openSite, type Site } from './support/site.js';
import { expectAbsent } from './support/waiting.js';

const browser = await openBrowser();

interface NewNode {
  readonly id: string;
  readonly control_psk: string;
}

describe.skipIf(browser === undefined)('diagnostics', () => {
  let site: Site;
  let node: NewNode;
  let agent: RunningProgram;
  beforeAll(async () => {
    site = await openSite(browser!);
    await site.admin.call('PUT', '/api/settings/connectivity', { heartbeat_interval_secs: 1 });
    node = await site.admin.call<NewNode>('POST', '/api/nodes', { name: 'edge-1' });
    const [listen_port = 0, dead = 0] = await freePorts(2);
    const hop = { node_id: node.id, listen_addr: '127.0.0.1', listen_port, outer: 'tcp', security: 'raw' };
    const body = { name: 'front', payload: 'tcp', hops: [hop], target: { endpoint: `127.0.0.1:${dead}` } };
    const { id } = await site.admin.call<{ readonly id: string }>('POST', '/api/l4-chains', body);
    const { controlEndpoint } = site.service;
    agent = startAgentProcess({ nodeId: node.id, controlEndpoint, controlPsk: node.control_psk });
    await site.admin.call('POST', `/api/l4-chains/${id}/deploy?wait=applied`, {});
  });
  afterAll(async () => {
    await agent.stop();
    await site.close();
  });

  test('a run is asked for, followed until the agent answers, and shows first what it did not reach', async () => {
    const page = await site.openAs('operator', `/nodes/${node.id}`);
    const panel = page.getByRole('region', { name: 'Diagnostics' });
    await panel.getByText(/^Never run/).waitFor();
    await panel.getByRole('button', { name: 'Run diagnostics' }).click();
    await panel
      .getByRole('status')
      .getByText(/Waiting for the agent|The agent checks itself/)
      .waitFor();
    await panel.getByText('1 needs attention').waitFor();
    await panel
      .getByRole('row')
      .nth(1)
      .getByText(/ECONNREFUSED/)
      .waitFor();
    await panel.getByText(/^Log of the agent/).click();
    await panel.getByText('configuration applied').waitFor();
    await expectAccessible(page);
    const viewer = await site.openAs('viewer', `/nodes/${node.id}`);
    await viewer.getByRole('heading', { name: 'edge-1' }).waitFor();
    await expectAbsent(viewer, viewer.getByRole('region', { name: 'Diagnostics' }));
  });
});
