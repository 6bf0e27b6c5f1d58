/** The plots of what a node carried over time (`docs/contract/console.md#pages`), also where there is only one point. */
import { afterAll, beforeAll, describe, test } from 'vitest';
import { startAgentProcess } from '../../scripts/stack/agent.js';
import { eventually, type RunningProgram } from '../../scripts/stack/process.js';
import { openBrowser } from './support/browser.js';
import { openSite, type Site } from './support/site.js';
import { expectPixels } from './support/waiting.js';

const browser = await openBrowser();

describe.skipIf(browser === undefined)('the plots of a node', () => {
  let site: Site;
  let agent: RunningProgram;
  let nodeId: string;
  beforeAll(async () => {
    site = await openSite(browser!);
    const { admin, service } = site;
    await admin.call('PUT', '/api/settings/connectivity', { heartbeat_interval_secs: 1 });
    const node = await admin.call<{ id: string; control_psk: string }>('POST', '/api/nodes', { name: 'edge' });
    nodeId = node.id;
    agent = startAgentProcess({ nodeId, controlEndpoint: service.controlEndpoint, controlPsk: node.control_psk });
    await eventually('the node has been online for a while', async () => {
      const { points } = await admin.call<{ points: readonly { online: number }[] }>(
        'GET',
        `/api/nodes/${nodeId}/history`,
      );
      return points.some(({ online }) => online > 0) || undefined;
    });
  });
  afterAll(async () => {
    await agent.stop();
    await site.close();
  });

  // The colours of what each plot draws last, where lines lie on one another.
  const colours = {
    light: { Traffic: '#868e96', 'Sessions per 5 minutes': '#c92a2a', 'Time online': '#3b5bdb' },
    dark: { Traffic: '#868e96', 'Sessions per 5 minutes': '#ff8787', 'Time online': '#91a7ff' },
  } as const;

  test('show what was reported, in light and in dark', async () => {
    const page = await site.openAs('viewer', `/nodes/${nodeId}?span=day`);
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      for (const [title, colour] of Object.entries(colours[colorScheme])) {
        await expectPixels(page.getByRole('img', { name: title }).locator('canvas'), colour).toBeGreaterThan(0);
      }
    }
  });
});
