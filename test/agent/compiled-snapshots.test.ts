/**
 * The agent's data plane on snapshots that the service compiles from what REST was given: chains with TLS hops, routes
 * and policies carry traffic, a certificate is replaced without a cut, and what an agent cannot run is named by REST's
 * own fields.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Gateway } from '../../src/agent/gateway.js';
import { createRuntime } from '../../src/agent/runtime.js';
import { relayLimits } from '../../src/agent/relays/limits.js';
import { ConfigApplyStatus, type ConfigApplyReport } from '../../src/gen/svc/control/v1/config.js';
import { systemClock } from '../../src/kernel/clock.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { decoded } from '../support/delivery-fixture.js';
import { freePort } from '../support/snapshots.js';
import { startRest, type ConnectedAgent, type JsonData, type RestFixture } from '../support/rest-fixture.js';
import { pinShown, tlsClient } from '../support/tls-client.js';

let rest: RestFixture;
let backend: string;
const closers: (() => Promise<void>)[] = [];

beforeAll(async () => {
  rest = await startRest();
  const server = createServer((incoming, response) =>
    response.end(`${incoming.headers.host ?? ''} ${incoming.url ?? ''}`),
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  backend = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  closers.push(async () => {
    server.close();
    server.closeAllConnections();
  });
});
afterAll(async () => {
  for (const close of closers) await close();
  await rest.close();
});

interface Running {
  readonly id: string;
  readonly gateway: Gateway;
  /** Takes the next push and applies it. */
  next(): Promise<ConfigApplyReport>;
}

const running: { close(): Promise<void> }[] = [];
const times = { ...relayLimits };
afterEach(async () => {
  Object.assign(relayLimits, times);
  for (const one of running.splice(0)) await one.close();
});

let number = 0;
/** A node with an agent that applies pushes when the test says so. */
async function node(rejectUnsupported = true): Promise<Running> {
  number += 1;
  const body = { name: `node ${number}`, address: '127.0.0.1' };
  const { id } = await rest.data('POST', '/api/nodes', { body });
  const agent: ConnectedAgent = await rest.connect(id);
  const gateway = createRuntime({ rejectUnsupported, logger: silentLogger, clock: systemClock });
  running.push({
    async close() {
      await gateway.close();
      await agent.disconnect();
      for (const chain of (await rest.data('GET', '/api/l4-chains')).items)
        await rest.data('DELETE', `/api/l4-chains/${chain.id}`);
      for (const route of (await rest.data('GET', '/api/routes')).items)
        await rest.data('DELETE', `/api/routes/${route.id}`);
    },
  });
  return {
    id,
    gateway,
    async next() {
      const push = await agent.receive();
      const report = await gateway.apply(decoded(push));
      if (report === undefined) throw new Error('the snapshot was ignored');
      await (report.status === ConfigApplyStatus.APPLIED ? agent.apply(push) : agent.reject(push));
      return report;
    },
  };
}

const applied = async (...nodes: readonly Running[]): Promise<void> => {
  for (const one of nodes) expect((await one.next()).errors).toEqual([]);
};
const hop = (of: Running, listen_port: number, more: object = {}): object => ({
  node_id: of.id,
  listen_addr: '127.0.0.1',
  listen_port,
  outer: 'tcp',
  security: 'raw',
  ...more,
});
async function deploy(name: string, hops: readonly object[], more: object = {}): Promise<string> {
  const body = { name, payload: 'tcp', hops, target: { endpoint: backend }, ...more };
  const { id } = await rest.data('POST', '/api/l4-chains', { body });
  await rest.data('POST', `/api/l4-chains/${id}/deploy`);
  return id;
}
const certificate = (name: string, ...names: readonly string[]): Promise<JsonData> =>
  rest.data('POST', '/api/credentials', {
    body: { name, key_type: 'tls_cert', self_signed: { common_name: names[0], subject_alt_names: names } },
  });

/** The body of the answer, or `closed`. */
function get(port: number, host = 'x.example', path = '/'): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port });
    let text = '';
    socket.on('data', (chunk) => (text += chunk.toString()));
    socket.on('error', () => undefined);
    socket.on('close', () => resolve(text === '' ? 'closed' : (text.split('\r\n\r\n')[1] ?? text)));
    socket.write(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
  });
}

describe('compiled snapshots', () => {
  it('make a chain with a TLS hop carry traffic, also while its certificate is replaced, whoever is pushed first', async () => {
    const [edge, relay] = [await node(), await node()];
    const [entry, inner] = [await freePort(), await freePort()];
    const credential = await certificate('inner', 'relay.internal');
    await deploy('inside', [hop(edge, entry), hop(relay, inner, { security: 'tls', credential_id: credential.id })]);
    await applied(relay, edge);
    expect(await get(entry)).toBe('x.example /');

    const rotate = (): Promise<JsonData> =>
      rest.data('PUT', `/api/credentials/${credential.id}`, {
        body: { self_signed: { common_name: 'relay.internal' } },
      });
    await rotate();
    // The dialling side first: it trusts both keys.
    await applied(edge);
    expect(await get(entry)).toBe('x.example /');
    await applied(relay);
    expect(await get(entry)).toBe('x.example /');

    Object.assign(relayLimits, { newPinMs: 60_000 });
    const renewed = await rotate();
    // The listening side first: a dialler that meets the new key waits for its pin.
    await applied(relay);
    expect(pinShown(await tlsClient(inner, 'relay.internal'))).toBe(renewed.certificate.spki_sha256);
    const early = get(entry);
    await applied(edge);
    expect(await early).toBe('x.example /');
    expect(edge.gateway.report().connections).toMatchObject({ failed: 0n, handshakeFailures: 0n });
  });

  it('put a TLS chain, a chain by name, and a route on one port, and take them away again', async () => {
    const [edge, relay] = [await node(), await node()];
    const [port, other] = [await freePort(), await freePort()];
    const shop = await certificate('shop', 'shop.example', '*.shop.example');
    const first = await deploy('shop', [hop(edge, port, { security: 'tls', credential_id: shop.id })]);
    await applied(edge);
    await deploy('by name', [hop(edge, port, { server_names: ['named.example'] })]);
    await applied(edge);
    const hops = [edge, relay].map(({ id }, index) => ({
      node_id: id,
      listen_addr: '127.0.0.1',
      listen_port: index === 0 ? port : other,
    }));
    await rest.data('POST', '/api/routes', {
      body: { name: 'web', host: 'web.example', path_prefix: '/a', hops, backend },
    });
    await applied(edge, relay);
    expect(pinShown(await tlsClient(port, 'x.shop.example'))).toBe(shop.certificate.spki_sha256);
    expect(await get(port, 'web.example', '/a/b')).toBe('web.example /a/b');
    expect(await get(port, 'web.example', '/ab')).toBe('404 Not Found\n');
    const rows = edge.gateway.runtimeListeners();
    expect(rows.map(({ listenPort, state }) => [listenPort, state])).toEqual([[port, 'running']]);
    expect(
      rows[0]?.routes.map(({ service, matchKind, matchValue }) => `${service} ${matchKind} ${matchValue}`).sort(),
    ).toEqual([
      'by name sni named.example',
      'shop sni *.shop.example',
      'shop sni shop.example',
      'web default web.example/a',
    ]);
    await rest.data('DELETE', `/api/l4-chains/${first}`);
    await applied(edge);
    await expect(tlsClient(port, 'shop.example')).rejects.toThrow();
    expect(await get(port, 'web.example', '/a')).toBe('web.example /a');
  });

  async function realityCredential(name: string, x25519_credential_id: string): Promise<string> {
    const { id } = await rest.data('POST', '/api/credentials', {
      body: {
        name,
        key_type: 'reality',
        x25519_credential_id,
        server_names: ['front.example'],
        short_ids: ['0a'],
        target_host: 'front.example',
        target_port: 443,
      },
    });
    return id;
  }

  it('with a listener kind that the agent cannot run are rejected at fields that REST knows, or leave it out', async () => {
    const keys = await rest.data('POST', '/api/credentials', { body: { name: 'k', key_type: 'x25519' } });
    const credential_id = await realityCredential('r', keys.id);
    const kinds = [
      ['tcp', { outer: 'quic', security: 'reality', credential_id }, 'outer'],
      ['udp', { outer: 'fake_tcp', security: 'noise', credential_id: keys.id }, 'outer'],
      ['udp', { outer: 'fake_tcp', security: 'raw' }, 'outer'],
    ] as const;
    for (const [payload, of, field] of kinds) {
      const [strict, mild] = [await node(), await node(false)];
      const name = JSON.stringify(of);
      const hops = [hop(mild, await freePort(), of), hop(strict, await freePort(), of)];
      const id = await deploy(name, hops, { payload });
      const report = await strict.next();
      expect(report.status).toBe(ConfigApplyStatus.REJECTED);
      expect(report.errors.map((error) => [error.resourceType, error.resourceId, error.path])).toEqual([
        ['l4_chain', id, `hops[1].${field}`],
      ]);
      const shown = await rest.data('GET', `/api/l4-chains/${id}`);
      expect(shown.hops[1], name).toHaveProperty(field);
      await applied(mild);
      expect(mild.gateway.runtimeListeners().map(({ state }) => state)).toEqual(['unsupported']);
    }
  });

  it('with a hop that is dialled in a way that the agent cannot are rejected at the field of that hop', async () => {
    const keys = await rest.data('POST', '/api/credentials', { body: { name: 'dialled', key_type: 'x25519' } });
    const credential_id = await realityCredential('dialled by reality', keys.id);
    const kinds = [
      ['tcp', 'tcp', { outer: 'quic', security: 'reality', credential_id }, 'outer'],
      ['udp', 'udp', { outer: 'fake_tcp', security: 'noise', credential_id: keys.id }, 'outer'],
      ['udp', 'udp', { outer: 'fake_tcp', security: 'raw' }, 'outer'],
    ] as const;
    for (const [payload, outer, of, field] of kinds) {
      const [dials, listens] = [await node(), await node(false)];
      const hops = [hop(dials, await freePort(), { outer }), hop(listens, await freePort(), of)];
      const id = await deploy(`dialled ${JSON.stringify(of)}`, hops, { payload });
      const report = await dials.next();
      expect(report.errors.map((error) => [error.resourceId, error.path])).toEqual([[id, `hops[1].${field}`]]);
    }
  });

  it('with an L3 tunnel, or with multiplexing, are rejected on both ends at fields that REST knows, and what runs stays', async () => {
    const [edge, relay] = [await node(), await node()];
    const port = await freePort();
    await deploy('plain', [hop(edge, port)]);
    await applied(edge);
    const keys = await rest.data('POST', '/api/credentials', { body: { name: 'tunnel', key_type: 'x25519' } });
    const network = await rest.data('POST', '/api/l3-networks', {
      body: {
        name: 'office',
        credential_id: await realityCredential('of the tunnel', keys.id),
        server_name: 'front.example',
        members: [edge, relay].map(({ id }, index) => ({
          node_id: id,
          addresses: [`10.0.0.${index + 1}/24`],
          routes: [],
        })),
        tunnels: [
          {
            listener_node_id: relay.id,
            listen_addr: '127.0.0.1',
            listen_port: await freePort(),
            connector_node_id: edge.id,
          },
        ],
      },
    });
    for (const one of [edge, relay]) {
      const report = await one.next();
      expect(report.status).toBe(ConfigApplyStatus.REJECTED);
      expect(report.errors.map((error) => [error.resourceType, error.resourceId, error.path])).toEqual([
        ['l3_network', network.id, 'tunnels'],
      ]);
    }
    expect(await get(port)).toBe('x.example /');
    await rest.data('DELETE', `/api/l3-networks/${network.id}`);
    await applied(edge, relay);

    const multiplexed = { nodes: [{ node_id: edge.id, multiplex: true, multiplex_port: await freePort() }] };
    await rest.data('PUT', '/api/settings/connectivity', { body: multiplexed });
    const report = await edge.next();
    expect(report.errors.map((error) => [error.resourceType, error.resourceId, error.path])).toEqual([
      ['connectivity', 'connectivity', 'multiplex'],
    ]);
    expect(await get(port)).toBe('x.example /');
  });
});
