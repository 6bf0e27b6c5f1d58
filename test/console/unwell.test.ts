/**
 * The overview of a fleet that is not well, with a real agent (`docs/contract/console.md#pages`): "all is well" is tried against
 * ways in which it isn't, and each of them is gone from the page once it is mended.
 */
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo, Server } from 'node:net';
import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { startAgentProcess } from '../../scripts/stack/agent.js';
import { freePorts } from '../../scripts/stack/process.js';
import type { RunningProgram } from '../../scripts/stack/process.js';
import { openBrowser } from './support/browser.js';
import { openSite } from './support/site.js';
import type { Site } from './support/site.js';

const browser = await openBrowser();
/** Agents tell every ten seconds, upstreams are checked and statuses compared in between. */
const patience = { timeout: 45_000 };

describe.skipIf(browser === undefined)('a fleet that is not well', () => {
  let site: Site;
  let page: Page;
  let state: Locator;
  let agent: RunningProgram;
  let target: Server;
  let targetPort: number;
  let nodeId: string;
  let chainId: string;
  let upstreamId: string;
  let startAgent: () => RunningProgram;
  let ports: readonly number[];

  const listen = async (port: number): Promise<Server> => {
    const server = createServer((socket) => socket.on('error', () => undefined).pipe(socket)).listen(port, '127.0.0.1');
    await once(server, 'listening');
    return server;
  };
  const call = <T>(method: string, path: string, body?: object): Promise<T> => site.admin.call<T>(method, path, body);
  const allWell = (): Promise<void> => state.getByText('All is well').waitFor(patience);
  /** The overview says so, and no longer that all is well. */
  const says = async (sentence: string): Promise<void> => {
    await state.getByText(sentence).waitFor(patience);
    await state.getByText('All is well').waitFor({ state: 'detached' });
  };

  beforeAll(async () => {
    site = await openSite(browser!);
    ports = await freePorts(2);
    target = await listen(0);
    targetPort = (target.address() as AddressInfo).port;
    // An agent that is away is missed after as short a while as there is.
    await call('PUT', '/api/settings/connectivity', {
      heartbeat_interval_secs: 1,
      metrics_interval_secs: 5,
      offline_after_secs: 5,
    });
    page = await site.openAs('operator', '/');
    state = page.getByRole('region', { name: 'State of the fleet' });
  }, 60_000);
  afterAll(async () => {
    await agent?.stop();
    target.close();
    await site.close();
    await browser!.close();
  });

  test('that is empty shows the way to the first byte, and never that all is well', async () => {
    await state.getByText('No chain is deployed yet').waitFor();
    const steps = page.getByRole('region', { name: 'From nothing to the first byte' });
    await steps.getByRole('link', { name: 'Add a node' }).waitFor();
    const node = await call<{ id: string; control_psk: string }>('POST', '/api/nodes', {
      name: 'edge-1',
      address: '127.0.0.1',
    });
    nodeId = node.id;
    const environment = { nodeId, controlEndpoint: site.service.controlEndpoint, controlPsk: node.control_psk };
    startAgent = () => startAgentProcess(environment);
    agent = startAgent();
    upstreamId = (
      await call<{ id: string }>('POST', '/api/l4-upstreams', {
        name: 'web',
        endpoint: `127.0.0.1:${targetPort}`,
        health_check_interval_ms: 500,
      })
    ).id;
    const hops = [{ node_id: nodeId, listen_addr: '127.0.0.1', listen_port: ports[0], outer: 'tcp', security: 'raw' }];
    chainId = (
      await call<{ id: string }>('POST', '/api/l4-chains', {
        name: 'front',
        payload: 'tcp',
        hops,
        target: { upstream_id: upstreamId },
      })
    ).id;
    await state.getByText('No chain is deployed yet').waitFor();
    await call('POST', `/api/l4-chains/${chainId}/deploy?wait=applied`);
    await allWell();
  }, 120_000);

  test('whose upstream is dead says which chain is down by it, and so does the page of the upstream', async () => {
    target.close();
    await says('Chain "front" is down because upstream "web" is unhealthy');
    await state.getByRole('link', { name: 'front' }).click();
    await page.getByText('upstream "web" is unhealthy, as "edge-1" reports').waitFor();
    await page.goto(`/console/upstreams/${upstreamId}`);
    await page.getByRole('banner').or(page.getByRole('main')).getByText('unhealthy').first().waitFor();
    target = await listen(targetPort);
    await page.goto('/console/');
    await allWell();
  }, 120_000);

  test('whose node is offline says so, and greys what it said last', async () => {
    await agent.stop();
    await says('Chain "front" is down because node "edge-1" is offline');
    await page.goto(`/console/chains/${chainId}`);
    await page.getByText(/listening, last known/).waitFor();
    await page.goto('/console/');
    agent = startAgent();
    await allWell();
  }, 120_000);

  test('with a chain that was edited and not deployed is well, and its page shows what runs', async () => {
    const hops = [{ node_id: nodeId, listen_addr: '127.0.0.1', listen_port: ports[1], outer: 'tcp', security: 'raw' }];
    await call('PUT', `/api/l4-chains/${chainId}`, { hops });
    await state.getByText('Chain "front" was edited and not deployed since').waitFor(patience);
    await allWell();
    await page.goto(`/console/chains/${chainId}`);
    const path = page.getByRole('region', { name: 'Path' });
    await path.getByText(`127.0.0.1:${ports[0]}`).waitFor();
    await path.getByText('listening').waitFor();
    // The page says what the draft changes below, and nowhere that it listens.
    await path.getByText(String(ports[1])).waitFor({ state: 'detached' });
  }, 120_000);
});
