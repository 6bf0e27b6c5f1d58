/**
 * The overview of a fleet that is not well, with a real agent (`docs/contract/console.md#pages`): "all is well" is tried against
 * ways in which it isn't. The page and the API name each of them, and it is gone from both once it is mended.
 *
 * Not here: an agent that tells nothing. Its chains become unknown only after a minute (`unknownForMs`) of the service's
 * clock, which these tests cannot set: `test/rest/matters.test.ts` does.
 */
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server } from 'node:net';
import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startAgentProcess } from '../../scripts/stack/agent.js';
import { freePorts, type RunningProgram } from '../../scripts/stack/process.js';
import { openReality } from '../../src/agent/reality/handshake.js';
import { systemClock } from '../../src/kernel/clock.js';
import { startTlsTarget, targetName, type TlsTarget } from '../support/reality-fixture.js';
import { issue } from '../support/x509.js';
import { goTo } from '../../bench/console/pages.js';
import { openBrowser } from './support/browser.js';
import { faultsOf } from './support/faults.js';
import { openSite, type Site } from './support/site.js';

const browser = await openBrowser();

interface Matter {
  readonly severity: string;
  readonly kind: string;
  readonly cause: string | null;
  readonly sentence: string;
}

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
  let imitated: TlsTarget | undefined;

  const listen = async (port: number): Promise<Server> => {
    const server = createServer((socket) => socket.on('error', () => undefined).pipe(socket)).listen(port, '127.0.0.1');
    await once(server, 'listening');
    return server;
  };
  const call = <T>(method: string, path: string, body?: object): Promise<T> => site.admin.call<T>(method, path, body);
  /** Severity, kind, cause and sentence of each. */
  const matters = async (): Promise<readonly (readonly (string | null)[])[]> => {
    const stats = await call<{ matters: readonly Matter[] }>('GET', '/api/dashboard/stats');
    return stats.matters.map(({ severity, kind, cause, sentence }) => [severity, kind, cause, sentence]);
  };
  const faults = async (): ReturnType<typeof matters> => (await matters()).filter(([severity]) => severity !== 'soon');
  /** The overview says so, and neither it nor the API names a fault any longer. */
  const allWell = async (): Promise<void> => {
    await state.getByText('All is well').waitFor(patience);
    await expect.poll(faults, patience).toEqual([]);
  };
  /** The overview and the API say this and nothing else, and no longer that all is well. */
  const says = async (sentence: string, kind: string, cause: string | null): Promise<void> => {
    await state.getByText(sentence).waitFor(patience);
    await state.getByText('All is well').waitFor({ state: 'detached' });
    await expect.poll(faults, patience).toEqual([['down', kind, cause, sentence]]);
  };
  /** Whatever was said is gone from the page, and all is well. */
  const mended = async (sentence: string): Promise<void> => {
    await allWell();
    await state.getByText(sentence).waitFor({ state: 'detached' });
  };
  const deploy = async (name: string, hop: object): Promise<void> => {
    const hops = [{ node_id: nodeId, listen_addr: '127.0.0.1', outer: 'tcp', ...hop }];
    const body = { name, payload: 'tcp', hops, target: { upstream_id: upstreamId } };
    const { id } = await call<{ id: string }>('POST', '/api/l4-chains', body);
    await call('POST', `/api/l4-chains/${id}/deploy?wait=applied`);
  };

  beforeAll(async () => {
    site = await openSite(browser!);
    ports = await freePorts(5);
    target = await listen(0);
    targetPort = (target.address() as AddressInfo).port;
    // An agent that is away is missed as soon as the settings allow.
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
    await imitated?.close();
    await site.close();
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
    const sentence = 'Chain "front" is down because upstream "web" is unhealthy';
    await says(sentence, 'chain_down', 'upstream_unhealthy');
    await state.getByRole('link', { name: 'front' }).click();
    await page.getByText('upstream "web" is unhealthy, as "edge-1" reports').waitFor();
    await goTo(page, `/upstreams/${upstreamId}`);
    await page.getByRole('banner').or(page.getByRole('main')).getByText('unhealthy').first().waitFor();
    target = await listen(targetPort);
    await goTo(page, '/');
    await mended(sentence);
  }, 120_000);

  test('whose node is offline says so, and greys what it said last', async () => {
    await agent.stop();
    const sentence = 'Chain "front" is down because node "edge-1" is offline';
    await says(sentence, 'chain_down', 'node_offline');
    await page.goto(`/console/chains/${chainId}`);
    await page.getByText(/last known: running/).waitFor();
    await page.getByText('last known: healthy').waitFor();
    await page.goto(`/console/upstreams/${upstreamId}`);
    await page.getByText('last known: healthy').waitFor();
    // What is wrong is legible, and a link in its sentence looks like one, also in dark mode.
    await page.emulateMedia({ colorScheme: 'dark' });
    const shown: string[] = [];
    for (const address of [
      '/',
      '/chains',
      `/chains/${chainId}`,
      '/nodes',
      `/nodes/${nodeId}`,
      '/incidents',
      '/topology',
      '/audit',
    ]) {
      await goTo(page, address);
      const faults = await faultsOf(page, ['color-contrast', 'link-in-text-block']);
      shown.push(...faults.map((fault) => `${address}: ${fault}`));
    }
    await page.emulateMedia({ colorScheme: 'light' });
    await goTo(page, '/');
    agent = startAgent();
    await mended(sentence);
    expect(shown).toEqual([]);
  }, 120_000);

  test('whose REALITY target is dead says which chain is down by it, until a client meets a target that lives', async () => {
    const [, , port, targetOfHop] = ports;
    const keys = await call<{ id: string; public_key: string }>('POST', '/api/credentials', {
      name: 'keys',
      key_type: 'x25519',
    });
    const { id: credential_id } = await call<{ id: string }>('POST', '/api/credentials', {
      name: 'imitated',
      key_type: 'reality',
      x25519_credential_id: keys.id,
      server_names: [targetName],
      short_ids: ['0a'],
      target_host: '127.0.0.1',
      target_port: targetOfHop,
    });
    await deploy('hidden', { listen_port: port, security: 'reality', credential_id });
    const sentence = `Chain "hidden" is down because node "edge-1" cannot use the REALITY target of tcp 127.0.0.1:${port}`;
    await says(sentence, 'chain_down', 'target_unusable');
    imitated = await startTlsTarget({}, targetOfHop);
    // The agent would look again within a minute; a client that it serves tells it at once.
    const client = connect({ host: '127.0.0.1', port: port!, allowHalfOpen: true }).on('error', () => undefined);
    await once(client, 'connect');
    const access = { publicKey: Buffer.from(keys.public_key, 'base64url'), shortId: '0a', serverName: targetName };
    expect(await openReality(client, access, systemClock, 15_000)).toMatchObject({ ok: true });
    client.destroy();
    await mended(sentence);
  }, 120_000);

  test('with a certificate in use that has ended says so, until there is one that has not', async () => {
    const certificate = async (notAfter?: Date) => {
      const { cert, key } = await issue({ names: ['web.example'], ...(notAfter === undefined ? {} : { notAfter }) });
      return { certificate_pem: cert, private_key_pem: key };
    };
    // The service refuses a certificate that has ended, so this one ends after the deploy of its chain.
    const { id: credential_id } = await call<{ id: string }>('POST', '/api/credentials', {
      name: 'web.example',
      key_type: 'tls_cert',
      ...(await certificate(new Date(Date.now() + 20_000))),
    });
    await deploy('secure', { listen_port: ports[4], security: 'tls', credential_id });
    const sentence = 'Certificate "web.example" has ended and is in use';
    await says(sentence, 'certificate_ended', null);
    await call('PUT', `/api/credentials/${credential_id}`, await certificate());
    await mended(sentence);
  }, 120_000);

  test('with a chain that was edited and not deployed is well, and its page shows what runs', async () => {
    const hops = [{ node_id: nodeId, listen_addr: '127.0.0.1', listen_port: ports[1], outer: 'tcp', security: 'raw' }];
    await call('PUT', `/api/l4-chains/${chainId}`, { hops });
    await state.getByText('Chain "front" was edited and not deployed since').waitFor(patience);
    await allWell();
    await goTo(page, `/chains/${chainId}`);
    const path = page.getByRole('region', { name: 'Path' });
    await path.getByText(`127.0.0.1:${ports[0]}`).waitFor();
    await path.getByText('running').waitFor();
    // What the next deploy changes stands beside it.
    await path.getByText(String(ports[1])).first().waitFor();
  }, 120_000);
});
