/** The audit list of `docs/contract/rest.md#audit`. */
import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.js';
import { applied, attach, configRequest, enrol, hello } from './support/agent.js';
import {
  auditFields,
  createChain,
  createNode,
  createUpstream,
  hasExactly,
  port,
  rawHop,
  uuid,
} from './support/resources.js';
import type { AuditEntry, ListOf, NodeData } from './support/resources.js';
import { refused } from './support/rest.js';
import { adminPassword, sharedService } from './support/running.js';

const shared = sharedService();
const list = async (query: string): Promise<ListOf<AuditEntry>> => shared.api.ok('GET', `/api/audit?${query}`);
const newest = async (query: string): Promise<AuditEntry> => (await list(query)).items[0]!;

describe('an audit entry', () => {
  it('has every field; that of a create has one change per field, with before null', async () => {
    const { api } = shared;
    const requestId = `audited-${randomUUID()}`;
    const answer = await api.send<{ id: string; name: string }>('POST', '/api/l4-upstreams', {
      json: { name: 'Audited', endpoint: '192.0.2.1:1' },
      headers: { 'x-request-id': requestId },
    });
    const entry = await newest(`resource_id=${answer.data.id}`);
    hasExactly(entry, auditFields);
    expect(entry).toMatchObject({
      actor: { type: 'user', name: 'admin', id: expect.stringMatching(uuid) as unknown },
      action: 'l4_upstream.create',
      resource: { type: 'l4_upstream', id: answer.data.id, name: 'Audited' },
      request_id: requestId,
      reverts: null,
      reverted_by: null,
    });
    expect(entry.id).toMatch(uuid);
    expect(entry.position).toMatch(/^svc-fleet@\d+$/);
    expect(entry.revertible === (entry.not_revertible_because === null)).toBe(true);
    for (const change of entry.changes) {
      hasExactly(change, ['path', 'before', 'after']);
      expect(change.before).toBeNull();
    }
    const changes = new Map(entry.changes.map(({ path, after }) => [path, after]));
    expect(changes.get('name')).toBe('Audited');
    expect(changes.get('endpoint')).toBe('192.0.2.1:1');
    expect(changes.get('health_check_interval_ms')).toBe(10_000);
  });

  it('has dotted paths for an update, reversed changes for a delete, and the name at that time', async () => {
    const { api } = shared;
    const node = await createNode(api, { labels: { a: '1', keep: 'k' } });
    const before = node.name;
    await api.ok('PUT', `/api/nodes/${node.id}`, { name: `${before} renamed`, labels: { a: '2', keep: 'k', b: '3' } });
    const update = await newest(`resource_id=${node.id}&action=node.update`);
    expect(update.changes.toSorted((x, y) => (x.path < y.path ? -1 : 1))).toEqual([
      { path: 'labels.a', before: '1', after: '2' },
      { path: 'labels.b', before: null, after: '3' },
      { path: 'name', before, after: `${before} renamed` },
    ]);
    await api.ok('DELETE', `/api/nodes/${node.id}`);
    const gone = await newest(`resource_id=${node.id}&action=node.delete`);
    expect(gone.resource.name).toBe(`${before} renamed`);
    expect(gone.changes.every(({ after }) => after === null)).toBe(true);
    expect(gone.changes).toContainEqual({ path: 'name', before: `${before} renamed`, after: null });
    const created = await newest(`resource_id=${node.id}&action=node.create`);
    expect(created.resource.name).toBe(before);
    expect(created.changes).toContainEqual({ path: 'labels.a', before: null, after: '1' });
  });

  it('of a chain names the field of a changed hop, or hops if the list changed', async () => {
    const { api } = shared;
    const [a, b] = [await createNode(api), await createNode(api)];
    const [one, two] = [port(), port()];
    const chain = await createChain(api, { hops: [rawHop(a.id, one)] });
    await api.ok('PUT', `/api/l4-chains/${chain.id}`, { hops: [rawHop(a.id, two)] });
    const field = await newest(`resource_id=${chain.id}`);
    expect(field.changes).toEqual([{ path: 'hops[0].listen_port', before: one, after: two }]);
    await api.ok('PUT', `/api/l4-chains/${chain.id}`, {
      hops: [rawHop(a.id, two), rawHop(b.id, two, { dial_addr: 'x.y' })],
    });
    const whole = await newest(`resource_id=${chain.id}`);
    expect(whole.changes.map(({ path }) => path)).toEqual(['hops']);
    await api.ok('POST', `/api/l4-chains/${chain.id}/deploy`);
    expect(await newest(`resource_id=${chain.id}`)).toMatchObject({ action: 'l4_chain.deploy' });
  });

  it('of a PSK reset, a refresh and settings has its own action, and shows no secret', async () => {
    const { api } = shared;
    const node = await createNode(api);
    const { control_psk: psk } = await api.ok<{ control_psk: string }>('POST', `/api/nodes/${node.id}/psk`);
    expect(await newest(`resource_id=${node.id}`)).toMatchObject({ action: 'node.psk', revertible: false });
    await api.ok('POST', `/api/nodes/${node.id}/config`);
    const refresh = await newest(`resource_id=${node.id}`);
    expect(refresh).toMatchObject({ action: 'node.refresh', revertible: false });
    expect(refresh.not_revertible_because).toEqual(expect.any(String));
    await api.ok('PUT', '/api/settings/connectivity', { heartbeat_interval_secs: 12 });
    expect(await newest('resource_type=connectivity')).toMatchObject({
      action: 'connectivity.update',
      resource: { type: 'connectivity', id: 'connectivity', name: 'connectivity' },
      changes: [{ path: 'heartbeat_interval_secs', before: 10, after: 12 }],
    });
    const all = await api.send('GET', '/api/audit?page_size=500');
    for (const secret of [psk, psk.slice(8, 40), node.control_psk.slice(8, 40)]) expect(all.text).not.toContain(secret);
  });

  it('does not exist for the facts of an agent, or for a PUT that changes nothing', async () => {
    const { api } = shared;
    const node = await createNode(api, { labels: { site: 'a' } });
    const { link, control } = await attach(
      shared.service.controlEndpoint,
      enrol(node.id, node.control_psk),
      hello({ agentVersion: 'audited/1', publicIpv4: '198.51.100.7' }),
    );
    try {
      control.say(configRequest());
      const snapshot = await control.snapshot();
      control.say(applied(snapshot));
      const shown = async (): Promise<NodeData> => api.ok('GET', `/api/nodes/${node.id}`);
      // All that it has said is written, its address in the fleet's own stream.
      await eventually(shown).toMatchObject({
        agent_version: 'audited/1',
        public_ipv4: '198.51.100.7',
        applied_generation: Number(snapshot.generation),
      });
      await api.ok('PUT', `/api/nodes/${node.id}`, { name: node.name, labels: { site: 'a' } });
      // A change behind it shows that there is nothing more to come.
      await api.ok('PUT', `/api/nodes/${node.id}`, { description: 'changed' });
      const { items } = await list(`resource_id=${node.id}&page_size=500`);
      expect(items.map(({ action, changes }) => [action, changes.map(({ path }) => path)])).toEqual([
        ['node.update', ['description']],
        // The address that others dial it by is part of the fleet: its change is an entry, as of any other.
        ['node.update', ['public_ipv4']],
        ['node.create', expect.anything()],
      ]);
      expect(items.map(({ actor }) => actor.type)).toEqual(['user', 'agent', 'user']);
    } finally {
      link.close();
    }
  });

  it('does not exist for a refused command', async () => {
    const { api } = shared;
    // Only entries of nodes: the entry of the sign-in at the start of this file may still be on its way.
    const before = (await list('resource_type=node')).total;
    refused(await api.send('POST', '/api/nodes', { json: {} }), 400);
    refused(await api.send('DELETE', `/api/nodes/${randomUUID()}`), 404);
    expect((await list('resource_type=node')).total).toBe(before);
  });

  it('of a sign-in names the account, of a refused one never what was typed', async () => {
    const { api } = shared;
    const login = (json: object) => api.send('POST', '/api/auth/login', { json, token: null });
    expect((await login({ username: 'Admin', password: adminPassword })).status).toBe(200);
    refused(await login({ username: 'admin', password: 'typed-by-mistake' }), 401);
    refused(await login({ username: 'my-secret-name', password: 'typed-by-mistake' }), 401);
    await eventually(async () => (await list('action=session.sign_in_refused')).total).toBeGreaterThanOrEqual(2);
    const [unknownName, wrongPassword] = (await list('action=session.sign_in_refused')).items;
    expect(unknownName!.actor).toEqual({ type: 'user', id: null, name: null });
    expect(unknownName!.resource).toMatchObject({ type: 'session', id: null });
    expect(wrongPassword!.actor).toMatchObject({ type: 'user', name: 'admin' });
    expect(wrongPassword!).toMatchObject({
      revertible: false,
      position: expect.stringMatching(/^svc-signins@\d+$/) as unknown,
    });
    const signedIn = await newest('action=session.sign_in');
    expect(signedIn.actor.name).toBe('admin');
    expect(signedIn.resource).toMatchObject({ type: 'session', id: signedIn.actor.id });
    const all = await api.send('GET', '/api/audit?page_size=500');
    expect(all.text).not.toContain('my-secret-name');
    expect(all.text).not.toContain('typed-by-mistake');
  });
});

describe('the audit list', () => {
  it('is in the order of the log, newest first', async () => {
    const { items } = await list('page_size=500');
    const fleet = items
      .filter(({ position }) => position.startsWith('svc-fleet'))
      .map(({ position }) => Number(position.split('@')[1]));
    expect(fleet).toEqual(fleet.toSorted((a, b) => b - a));
  });

  it('filters by type, id, actor (id or name), action and time', async () => {
    const { api } = shared;
    const upstream = await createUpstream(api);
    await api.ok('PUT', `/api/l4-upstreams/${upstream.id}`, { enabled: false });
    const ofUpstream = await list(`resource_id=${upstream.id}`);
    expect(ofUpstream.total).toBe(2);
    const [update, create] = ofUpstream.items;
    expect((await list(`resource_type=l4_upstream&resource_id=${upstream.id}`)).total).toBe(2);
    expect((await list(`resource_type=node&resource_id=${upstream.id}`)).total).toBe(0);
    const { id, name } = create!.actor;
    expect((await list(`resource_id=${upstream.id}&actor=${id}`)).total).toBe(2);
    expect((await list(`resource_id=${upstream.id}&actor=${name}`)).total).toBe(2);
    expect((await list(`resource_id=${upstream.id}&actor=ADMIN`)).total).toBe(2);
    expect((await list(`resource_id=${upstream.id}&actor=nobody`)).total).toBe(0);
    expect((await list(`resource_id=${upstream.id}&action=l4_upstream.update`)).items).toEqual([update]);
    const from = encodeURIComponent(create!.at);
    expect((await list(`resource_id=${upstream.id}&from=${from}`)).total).toBe(2);
    expect((await list(`resource_id=${upstream.id}&to=2000-01-01T00:00:00Z`)).total).toBe(0);
    expect((await list(`resource_id=${upstream.id}&from=2999-01-01T00:00:00.000Z`)).total).toBe(0);
    expect((await list(`resource_id=${upstream.id}&page=2&page_size=1`)).items).toEqual([create]);
    expect((await list(`resource_id=${upstream.id}&page=9`)).items).toEqual([]);
    refused(await api.send('GET', '/api/audit?action=nonsense'), 400, 'action');
    refused(await api.send('GET', '/api/audit?resource_type=nonsense'), 400, 'resource_type');
  });
});
