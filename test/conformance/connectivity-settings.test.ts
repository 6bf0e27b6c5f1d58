/**
 * Connectivity settings: `docs/contract/rest.md#connectivity-settings`; their bounds: `docs/contract/configuration.md`.
 */
import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createNode, hasExactly, settingsFields } from './support/resources.js';
import type { NodeData, Settings } from './support/resources.js';
import { refused } from './support/rest.js';
import { sharedService } from './support/running.js';

const shared = sharedService();
const path = '/api/settings/connectivity';
const put = (json: object) => shared.api.send<Settings>('PUT', path, { json });
const get = () => shared.api.ok<Settings>('GET', path);

describe('connectivity settings', () => {
  it('have the defaults at first', async () => {
    const settings = await get();
    hasExactly(settings, settingsFields);
    expect(settings).toMatchObject({
      multiplex: false,
      multiplex_port: null,
      heartbeat_interval_secs: 10,
      metrics_interval_secs: 60,
      offline_after_secs: null,
      nodes: [],
    });
    expect(settings.version).toEqual(expect.any(Number));
    const star = await shared.api.send('PUT', path, {
      json: { metrics_interval_secs: 70 },
      headers: { 'if-match': '*' },
    });
    refused(star, 412);
  });

  it('accept any subset, refuse unknown fields, version and nulls', async () => {
    const changed = await put({ heartbeat_interval_secs: 20 });
    expect(changed.data).toMatchObject({ heartbeat_interval_secs: 20, metrics_interval_secs: 60 });
    refused(await put({ version: 1 }), 400, 'version');
    refused(await put({ colour: 1 }), 400, 'colour');
    for (const field of ['heartbeat_interval_secs', 'metrics_interval_secs', 'multiplex', 'nodes']) {
      refused(await put({ [field]: null }), 400, field);
    }
    expect(await put({ heartbeat_interval_secs: 20 })).toMatchObject({ status: 200, data: changed.data });
    expect(await put({})).toMatchObject({ status: 200, data: changed.data });
  });

  it('refuse values outside their bounds', async () => {
    for (const [field, low, high] of [
      ['heartbeat_interval_secs', 1, 3_600],
      ['metrics_interval_secs', 5, 86_400],
      ['multiplex_port', 1, 65_535],
    ] as const) {
      refused(await put({ [field]: low - 1 }), 400, field);
      refused(await put({ [field]: high + 1 }), 400, field);
      refused(await put({ [field]: low + 0.5 }), 400, field);
      expect((await put({ [field]: high })).status).toBe(200);
      expect((await put({ [field]: low })).status).toBe(200);
    }
    await put({ heartbeat_interval_secs: 10, multiplex_port: null });
  });

  it('refuse an offline_after below twice the heartbeat, whichever of the two changes', async () => {
    refused(await put({ offline_after_secs: 19 }), 400, 'offline_after_secs');
    expect((await put({ offline_after_secs: 20 })).data.offline_after_secs).toBe(20);
    refused(await put({ heartbeat_interval_secs: 11 }), 400);
    expect((await put({ heartbeat_interval_secs: 15, offline_after_secs: 30 })).status).toBe(200);
    expect((await put({ offline_after_secs: null })).data.offline_after_secs).toBeNull();
  });

  it('refuse multiplex without any port', async () => {
    const { api } = shared;
    const node = await createNode(api);
    refused(await put({ multiplex: true }), 400, 'multiplex_port');
    refused(await put({ nodes: [{ node_id: node.id, multiplex: true }] }), 400, 'multiplex_port');
    expect((await put({ multiplex: true, multiplex_port: 9_443 })).status).toBe(200);
    refused(await put({ multiplex_port: null }), 400);
    const inherited = await put({ nodes: [{ node_id: node.id, multiplex: true }] });
    expect(inherited.data.nodes).toEqual([{ node_id: node.id, multiplex: true, multiplex_port: null }]);
    expect(await api.ok<NodeData>('GET', `/api/nodes/${node.id}`)).toMatchObject({
      multiplex: true,
      multiplex_port: 9_443,
    });
    await put({ nodes: [{ node_id: node.id, multiplex: null }] });
    await put({ multiplex: false, multiplex_port: null });
  });

  it('set the override of one node without touching others, and remove it with null', async () => {
    const { api } = shared;
    const [a, b] = [await createNode(api), await createNode(api)];
    const one = await put({ nodes: [{ node_id: a.id, multiplex: true, multiplex_port: 9_001 }] });
    expect(one.data.nodes).toEqual([{ node_id: a.id, multiplex: true, multiplex_port: 9_001 }]);
    const two = await put({ nodes: [{ node_id: b.id, multiplex: false }] });
    expect(two.data.nodes).toHaveLength(2);
    for (const entry of two.data.nodes) hasExactly(entry, ['node_id', 'multiplex', 'multiplex_port']);
    expect(await put({ nodes: [{ node_id: b.id, multiplex: false }] })).toMatchObject({ data: two.data });
    expect(await api.ok<NodeData>('GET', `/api/nodes/${a.id}`)).toMatchObject({
      multiplex: true,
      multiplex_port: 9_001,
    });
    expect(await api.ok<NodeData>('GET', `/api/nodes/${b.id}`)).toMatchObject({ multiplex: false });
    await put({ nodes: [{ node_id: a.id, multiplex: null }] });
    expect(await api.ok<NodeData>('GET', `/api/nodes/${a.id}`)).toMatchObject({
      multiplex: false,
      multiplex_port: null,
    });
    const back = await put({ nodes: (await get()).nodes });
    expect(back.data).toEqual(await get());
    await api.ok('DELETE', `/api/nodes/${b.id}`);
    expect((await get()).nodes).toEqual([]);
  });

  it('refuse overrides of unknown nodes, of a node twice, and with missing or unknown fields', async () => {
    const { api } = shared;
    const node = await createNode(api);
    const entry = { node_id: node.id, multiplex: false };
    refused(await put({ nodes: [{ node_id: randomUUID(), multiplex: false }] }), 400, 'nodes[0].node_id');
    refused(await put({ nodes: [entry, { node_id: 'x', multiplex: false }] }), 400, 'nodes[1].node_id');
    refused(await put({ nodes: [entry, entry] }), 400, 'nodes[1]');
    refused(await put({ nodes: [{ node_id: node.id }] }), 400, 'nodes[0].multiplex');
    refused(await put({ nodes: [{ ...entry, heartbeat_interval_secs: 5 }] }), 400, 'nodes[0]');
  });
});
