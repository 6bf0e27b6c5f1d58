/** Applies that were carried out: what became of them, their reverts, drift and sets (`docs/contract/automation.md#the-fleet-as-a-file`). */
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { streams } from '../../src/kernel/event.js';
import { startRest, type Call, type JsonData, type RestFixture } from '../support/rest-fixture.js';

let rest: RestFixture;
beforeAll(async () => {
  rest = await startRest();
});
afterAll(() => rest.close());

const apply = (document: string, flags: object = {}, call: Call = {}): Promise<JsonData> =>
  rest.data('POST', '/api/fleet/apply', { ...call, body: { document, prune: true, ...flags } });
const refused = async (path: string): Promise<JsonData> => {
  const answer = await rest.call('POST', path);
  return [answer.statusCode, answer.json().error];
};
const revert = (id: string, query = ''): Promise<JsonData> =>
  rest.data('POST', `/api/fleet/applies/${id}/revert${query}`);
const exported = async (set: string): Promise<string> =>
  (await rest.data('GET', `/api/fleet/export?set=${set}`)).documents[0]?.document;
const named = async (path: string, name: string): Promise<JsonData> =>
  (await rest.data('GET', `/api/${path}?page_size=500`)).items.find((one: JsonData) => one.name === name);
const put = (path: string, body: object): Promise<JsonData> => rest.data('PUT', `/api/${path}`, { body });
const drift = async (set: string): Promise<JsonData> => (await rest.data('GET', `/api/fleet/sets/${set}/drift`)).items;
const setNamed = async (name: string): Promise<JsonData> =>
  (await rest.data('GET', '/api/fleet/sets')).items.find(({ set }: JsonData) => set === name);
const lastEntry = async (): Promise<JsonData> => (await rest.data('GET', '/api/audit?page_size=1')).items[0];

const chain = (port: number, upstream: string): string =>
  `{payload: tcp, hops: [{node: edge-1, listen_port: ${port}, outer: tcp, security: raw}], target: {upstream: ${upstream}}, deploy: true}`;
const site = (set: string, parts: { upstreams: string; chains: string; more?: string }): string => `svc: 1
set: ${set}
nodes: {edge-1: {address: 192.0.2.10}${parts.more ?? ''}}
upstreams: {${parts.upstreams}}
chains: {${parts.chains}}
`;
const before = site('edge', {
  upstreams:
    'web: {endpoint: "203.0.113.1:443"}, api: {endpoint: "203.0.113.2:443"}, old: {endpoint: "203.0.113.3:443"}',
  chains: `front: ${chain(443, 'web')}, back: ${chain(444, 'api')}, gone: ${chain(445, 'old')}`,
});
/** Names swapped, listeners traded, one chain in place of another, an upstream replaced, a node added. */
const after = site('edge', {
  upstreams:
    'web: {was: api, endpoint: "203.0.113.2:443"}, api: {was: web, endpoint: "203.0.113.1:443"}, new: {endpoint: "203.0.113.4:443"}',
  chains: `front: ${chain(444, 'web')}, back: ${chain(443, 'api')}, instead: ${chain(445, 'new')}`,
  more: ', edge-2: {}',
}).replaceAll(/was: \w+, /g, '');

describe('an apply that was carried out', () => {
  let first: JsonData;
  let second: JsonData;
  let text: string;

  it('is shown as it went, with its set, who and when', async () => {
    first = await apply(before);
    text = await exported('edge');
    second = await apply(after, { issue_psks: true });
    const shown = await rest.data('GET', `/api/fleet/applies/${second.apply_id}`);
    expect(shown).toEqual({
      ...second,
      control_psks: [{ node: 'edge-2', control_psk: null }],
      set: 'edge',
      at: second.commands[0].at,
      actor: second.commands[0].actor,
      reverted_by: null,
    });
    const unknown = await rest.call('GET', `/api/fleet/applies/${first.commands[0].id}`);
    expect(unknown.statusCode).toBe(404);
  });

  it('is taken back as a whole, checked as a result, with its ownership and the base of drift', async () => {
    const revision = (await rest.log()).length;
    const tried = await revert(second.apply_id, '?dry_run=true');
    expect((await rest.log()).length).toBe(revision);
    expect(tried).toMatchObject({
      commands: [{ action: 'fleet.revert', reverts: second.commands[0].id }],
      not_reverted: [],
    });
    const done = await revert(second.apply_id);
    expect(done.commands[0].changes).toEqual(tried.commands[0].changes);
    expect(new Set((await rest.log()).slice(revision).map(({ metadata }) => metadata.command.id)).size).toBe(1);
    expect(await exported('edge')).toBe(text);
    const [entry] = done.commands;
    expect((await rest.data('GET', `/api/fleet/applies/${second.apply_id}`)).reverted_by).toBe(entry.id);
    expect(await setNamed('edge')).toMatchObject({
      resources: { node: 1, l4_upstream: 3, l4_chain: 3 },
      document_sha256: expect.any(String),
      applied_at: first.commands[0].at,
      drift: 0,
    });
    expect(
      (await rest.data('GET', `/api/audit?resource_id=${(await named('l4-chains', 'gone')).id}`)).items[0].id,
    ).toBe(entry.id);
    expect(await refused(`/api/fleet/applies/${second.apply_id}/revert`)).toEqual([
      409,
      expect.stringContaining(entry.id),
    ]);
    // A revert is an entry, and can be reverted.
    await rest.data('POST', `/api/audit/${entry.id}/revert`);
    expect((await setNamed('edge')).applied_at).toBe(second.commands[0].at);
    expect((await rest.data('GET', `/api/fleet/applies/${second.apply_id}`)).reverted_by).toBeNull();
    await rest.data('POST', `/api/audit/${second.commands[0].id}/revert`, { headers: { 'idempotency-key': 'again' } });
    expect(await exported('edge')).toBe(text);
  });

  it('is not taken back over later work, which is named, and nothing is written', async () => {
    const { apply_id } = await apply(after);
    const node = await named('nodes', 'edge-2');
    await put(`nodes/${node.id}`, { description: 'by hand' });
    const entry = await lastEntry();
    const revision = (await rest.log()).length;
    expect(await refused(`/api/fleet/applies/${apply_id}/revert`)).toEqual([409, expect.stringContaining(entry.id)]);
    expect((await rest.log()).length).toBe(revision);
    await rest.data('POST', `/api/audit/${entry.id}/revert`);
    // A PSK that was issued since is no obstacle.
    await rest.data('POST', `/api/nodes/${node.id}/psk`);
    await revert(apply_id);
    expect(await exported('edge')).toBe(text);
  });

  it('keeps its rotations; one that only rotated, or only moved the base, cannot be taken back', async () => {
    const key = (byte: number): string => Buffer.alloc(32, byte).toString('base64url');
    const keyed = (byte: number, endpoint: string): string =>
      `svc: 1\nset: keyed\ncredentials: {k: {key_type: x25519, private_key: ${key(byte)}}}\nupstreams: {u: {endpoint: "${endpoint}:1"}}\n`;
    await apply(keyed(1, '203.0.113.1'));
    const both = await apply(keyed(2, '203.0.113.2'));
    expect(both.commands.map(({ revertible }: JsonData) => revertible)).toEqual([false, true]);
    const { public_key } = await named('credentials', 'k');
    const { commands, not_reverted } = await revert(both.apply_id);
    expect(commands).toHaveLength(1);
    expect(not_reverted.map(({ id }: JsonData) => id)).toEqual([both.commands[0].id]);
    expect(await named('l4-upstreams', 'u')).toMatchObject({ endpoint: '203.0.113.1:1' });
    expect(await named('credentials', 'k')).toMatchObject({ public_key });
    for (const document of [keyed(3, '203.0.113.1'), `${keyed(3, '203.0.113.1')}# the same\n`]) {
      const { apply_id } = await apply(document);
      expect(await refused(`/api/fleet/applies/${apply_id}/revert`)).toEqual([
        409,
        expect.stringContaining('nothing can be taken back'),
      ]);
    }
  });
});

describe('drift', () => {
  it('is what was changed by hand and still differs, with the entry; deletions and deploys too, nothing else', async () => {
    const document = `${before
      .replace('set: edge', 'set: hand')
      .replaceAll('edge-1', 'hand-1')
      .replaceAll(/\b(web|api|old|front|back|gone)\b/g, 'h-$1')}credentials:
  h-key: {key_type: x25519}
policies: [{node: hand-1, transport: tcp, listen_addr: 0.0.0.0, listen_port: 443, priority_order: [tls, raw]}]
`;
    const { apply_id } = await apply(document);
    expect(await drift('hand')).toEqual([]);
    const [node, web, front, back, key] = await Promise.all([
      named('nodes', 'hand-1'),
      named('l4-upstreams', 'h-web'),
      named('l4-chains', 'h-front'),
      named('l4-chains', 'h-back'),
      named('credentials', 'h-key'),
    ]);
    await rest.data('POST', `/api/nodes/${node.id}/psk`);
    await rest.data('POST', `/api/nodes/${node.id}/config`);
    await put(`credentials/${key.id}`, { private_key: null });
    await put(`nodes/${node.id}`, { description: 'for a moment' });
    await put(`nodes/${node.id}`, { description: null });
    expect(await drift('hand')).toEqual([]);

    const ids: Record<string, string> = {};
    const noted = async (what: string, done: Promise<unknown>): Promise<void> => {
      await done;
      ids[what] = (await lastEntry()).id;
    };
    await noted('label', put(`nodes/${node.id}`, { labels: { site: 'a' } }));
    await noted('first', put(`l4-upstreams/${web.id}`, { endpoint: '203.0.113.9:443' }));
    await noted('endpoint', put(`l4-upstreams/${web.id}`, { endpoint: '203.0.113.8:443' }));
    await noted(
      'hops',
      put(`l4-chains/${front.id}`, { target: { upstream_id: (await named('l4-upstreams', 'h-api')).id } }),
    );
    await noted('deploy', rest.data('POST', `/api/l4-chains/${front.id}/deploy`));
    await noted('delete', rest.data('DELETE', `/api/l4-chains/${back.id}`));
    await noted(
      'policy',
      rest.data(
        'DELETE',
        `/api/nodes/ports/policies?nodeId=${node.id}&transport=tcp&listenAddr=0.0.0.0&listenPort=443`,
      ),
    );
    const found = await drift('hand');
    expect(found.map(({ resource }: JsonData) => `${resource.type} ${resource.name}`)).toEqual([
      'node hand-1',
      'l4_upstream h-web',
      'l4_chain h-back',
      'l4_chain h-front',
      'listener_policy hand-1/tcp/0.0.0.0/443',
    ]);
    const changes = Object.fromEntries(found.map(({ resource, changes: of }: JsonData) => [resource.name, of]));
    expect(changes['hand-1']).toEqual([{ path: 'labels.site', applied: null, now: 'a', entry_id: ids['label'] }]);
    expect(changes['h-web']).toEqual([
      { path: 'endpoint', applied: '203.0.113.1:443', now: '203.0.113.8:443', entry_id: ids['endpoint'] },
    ]);
    expect(changes['h-front']).toEqual([
      { path: 'target', applied: { upstream: 'h-web' }, now: { upstream: 'h-api' }, entry_id: ids['hops'] },
      { path: 'deployed.target', applied: expect.anything(), now: expect.anything(), entry_id: ids['deploy'] },
    ]);
    expect(changes['h-back']).toContainEqual({ path: 'payload', applied: 'tcp', now: null, entry_id: ids['delete'] });
    expect(await setNamed('hand')).toMatchObject({ drift: 5, applied_at: expect.any(String) });
    // The next plan undoes it; its revert brings it back.
    const { apply_id: undoing } = await apply(document);
    expect(await drift('hand')).toEqual([]);
    await revert(undoing);
    expect((await drift('hand')).map(({ resource }: JsonData) => resource.name)).toEqual(
      found.map(({ resource }: JsonData) => resource.name),
    );
    await apply(document);
    expect((await rest.call('POST', `/api/fleet/applies/${apply_id}/revert`)).statusCode).toBe(409);
  });

  it('is shown of credentials that were edited or deleted by hand, also behind the next apply and its revert', async () => {
    const document = `svc: 1
set: keys
credentials:
  c-x: {key_type: x25519}
  c-r: {key_type: reality, x25519: c-x, server_names: [a.example], short_ids: [ab], target_host: a.example, target_port: 443}
  c-t: {key_type: tls_cert, self_signed: {common_name: a.example}}
`;
    await apply(document);
    const [reality, tls] = await Promise.all([named('credentials', 'c-r'), named('credentials', 'c-t')]);
    await put(`credentials/${reality.id}`, { short_ids: ['ab', 'cd'] });
    await rest.data('DELETE', `/api/credentials/${tls.id}`);
    const names = async (): Promise<JsonData> => (await drift('keys')).map(({ resource }: JsonData) => resource.name);
    expect(await names()).toEqual(['c-r', 'c-t']);
    expect(await setNamed('keys')).toMatchObject({ drift: 2 });
    const { apply_id } = await apply(document);
    expect([await names(), (await setNamed('keys')).drift]).toEqual([[], 0]);
    // The new certificate goes too: neither the earlier document nor the fleet before the apply had it.
    await revert(apply_id);
    const found = await drift('keys');
    expect(found.map(({ resource }: JsonData) => [resource.id, resource.name])).toEqual([
      [reality.id, 'c-r'],
      [tls.id, 'c-t'],
    ]);
    expect(found[0].changes).toEqual([
      { path: 'short_ids', applied: ['ab'], now: ['ab', 'cd'], entry_id: expect.any(String) },
    ]);
  });

  it('is not what the document does not name, though a prune would delete it', async () => {
    const node = (name: string): string => `svc: 1\nset: part\nnodes: {${name}: {}}\n`;
    await apply(node('part-1'));
    await rest.data('POST', '/api/fleet/apply', { body: { document: node('part-2') } });
    await put(`nodes/${(await named('nodes', 'part-1')).id}`, { description: 'by hand' });
    await put(`nodes/${(await named('nodes', 'part-2')).id}`, { description: 'by hand' });
    expect((await drift('part')).map(({ resource }: JsonData) => resource.name)).toEqual(['part-2']);
    await apply('svc: 1\nset: part\nupstreams: {}\n');
    await put(`nodes/${(await named('nodes', 'part-2')).id}`, { description: 'again' });
    expect(await drift('part')).toEqual([]);
  });

  it('leaves out a deploy and settings that the document does not name, and moves its base with a document alone', async () => {
    const document = `svc: 1
nodes: {plain-1: {}}
upstreams: {plain: {endpoint: "203.0.113.1:443"}}
chains: {plain: {payload: tcp, hops: [{node: plain-1, listen_port: 1443, outer: tcp, security: raw}], target: {upstream: plain}}}
settings: {metrics_interval_secs: 61}
`;
    await apply(document);
    const { id } = await named('l4-chains', 'plain');
    await rest.data('POST', `/api/l4-chains/${id}/deploy`);
    await put('settings/connectivity', { heartbeat_interval_secs: 11 });
    expect(await drift('default')).toEqual([]);
    expect((await apply(`${document}# another\n`)).commands).toHaveLength(1);
    await put(`l4-chains/${id}`, { payload: 'tcp', description: 'edited' });
    await rest.data('POST', `/api/l4-chains/${id}/deploy`);
    await put('settings/connectivity', { metrics_interval_secs: 62 });
    expect((await drift('default')).map(({ changes }: JsonData) => changes[0].path)).toEqual([
      'metrics_interval_secs',
      'description',
    ]);
    const { apply_id, commands, steps } = await apply(document.replace('svc: 1', 'svc: 1 # third'));
    expect([commands.length, steps.length]).toEqual([1, 2]);
    expect(await drift('default')).toEqual([]);
    await revert(apply_id);
    expect((await drift('default')).length).toBe(2);
  });

  it('shows what was changed by hand while an apply, or the release of its set, was taken back', async () => {
    const node = await rest.data('POST', '/api/nodes', { body: { name: 'adopted' } });
    const document = 'svc: 1\nset: returns\nnodes: {adopted: {labels: {rack: "1"}}}\n';
    const { commands } = await apply(document, { adopt: true });
    const reverted = (id: string): Promise<JsonData> => rest.data('POST', `/api/audit/${id}/revert`);
    await reverted(commands[0].id);
    const away = await lastEntry();
    await put(`nodes/${node.id}`, { description: 'by hand' });
    await reverted(away.id);
    const changes = [{ path: 'description', applied: null, now: 'by hand', entry_id: expect.any(String) }];
    expect(await drift('returns')).toMatchObject([{ resource: { id: node.id }, changes }]);
    await put(`nodes/${node.id}`, { description: null });
    expect(await drift('returns')).toEqual([]);

    await rest.data('POST', '/api/fleet/sets/returns/release');
    const release = await lastEntry();
    await put(`nodes/${node.id}`, { description: 'by hand' });
    await reverted(release.id);
    expect(await drift('returns')).toMatchObject([{ resource: { id: node.id }, changes }]);

    const kept = () => [...rest.gateway.fleet.left.values()].filter(({ set }) => set === 'returns');
    await rest.data('POST', '/api/fleet/sets/returns/release');
    expect(kept()).toHaveLength(1);
    await rest.data('DELETE', `/api/nodes/${node.id}`);
    await apply('svc: 1\nset: other\nnodes: {}\n');
    expect(kept()).toEqual([]);
  });

  it('ends when the set is let go, which changes nothing else and can be reverted', async () => {
    const document = await exported('hand');
    const node = await named('nodes', 'hand-1');
    const { commands } = await rest.data('POST', '/api/fleet/sets/hand/release');
    expect(commands).toMatchObject([{ action: 'fleet.update', resource: { name: 'hand' }, revertible: true }]);
    expect(await named('nodes', 'hand-1')).toMatchObject({ managed_by: null, generation: node.generation });
    expect(await setNamed('hand')).toBeUndefined();
    expect(await exported('hand')).toBeUndefined();
    expect((await rest.call('GET', '/api/fleet/sets/hand/drift')).statusCode).toBe(404);
    expect(await refused('/api/fleet/sets/hand/release')).toEqual([404, 'not_found: no set has this name']);
    await rest.data('POST', `/api/audit/${commands[0].id}/revert`);
    expect(await exported('hand')).toBe(document);
    expect(await setNamed('hand')).toMatchObject({ drift: 0 });
  });
});

describe('the release of a set that one command cannot hold', () => {
  it('says that a part was released when the store goes away meanwhile, and a repeat releases the rest', async () => {
    const many = Array.from({ length: 310 }, (_, index) => `w-${index}: {endpoint: "203.0.113.9:${index + 1}"}`);
    await apply(`svc: 1\nset: wide\nupstreams: {${many.join(', ')}}\n`);
    const left = async (): Promise<number> => (await setNamed('wide'))?.resources.l4_upstream ?? 0;
    const release = () => rest.call('POST', '/api/fleet/sets/wide/release', { headers: { 'idempotency-key': 'wide' } });
    const { eventStore } = rest.stores;
    const append = eventStore.append.bind(eventStore);
    let appended = 0;
    const away = vi.spyOn(eventStore, 'append').mockImplementation(async (stream, ...given) => {
      if (stream === streams.fleet && (appended += 1) > 1) return { kind: 'unavailable', cause: 'away' };
      return append(stream, ...given);
    });
    const failed = await release();
    away.mockRestore();
    expect([failed.statusCode, await left()]).toEqual([503, 10]);
    expect(failed.json().error).toMatch(/^unavailable: a part of the set was released; for the rest: /);
    const repeated = await release();
    expect([repeated.statusCode, repeated.json().data.commands.length, await left()]).toEqual([200, 2, 0]);
    const before = await rest.position();
    expect((await release()).json().data).toEqual(repeated.json().data);
    expect(await rest.position()).toBe(before);
  });
});

describe('an apply that one command cannot hold', () => {
  const text = 'x'.repeat(1_000);
  const labels = Array.from({ length: 32 }, (_, index) => `l${index}: ${text}`).join(', ');
  const large = (address: string): string =>
    `svc: 1\nset: large\nnodes:\n${Array.from({ length: 20 }, (_, index) => `  large-${index}: {address: ${address}, labels: {${labels}}}\n`).join('')}`;
  const nodes = async (): Promise<JsonData> =>
    (await rest.data('GET', '/api/nodes?page_size=500&q=large-')).items.map(({ name }: JsonData) => name);

  it('is cut into commands, says what is left when one is refused, overwrites nothing, and is taken back whole', async () => {
    const document = large('192.0.2.1');
    expect(await rest.data('POST', '/api/fleet/plan', { body: { document } })).toMatchObject({ commands: 2 });
    const { eventStore } = rest.stores;
    const write = eventStore.append.bind(eventStore);
    let fleetAppends = 0;
    eventStore.append = async (stream, ...rest) => {
      if (stream === 'svc-fleet' && (fleetAppends += 1) > 1) return { kind: 'unavailable', cause: 'scripted' };
      return write(stream, ...rest);
    };
    const cut = await apply(document, { issue_psks: true }).finally(() => {
      eventStore.append = write;
    });
    expect(cut).toMatchObject({
      commands: [{ changes_total: expect.any(Number) }],
      incomplete: { error: expect.stringContaining('unavailable'), commands_left: 1 },
    });
    expect(cut.commands[0].changes).toHaveLength(20);
    const made = await nodes();
    expect(made.length).toBeLessThan(20);
    expect(cut.control_psks.map(({ node }: JsonData) => node).sort()).toEqual(made.toSorted());
    const shown = await rest.data('GET', `/api/fleet/applies/${cut.apply_id}`);
    expect(shown.incomplete).toMatchObject({ commands_left: 1 });
    await apply(document);
    expect(await nodes()).toHaveLength(20);

    // Between two commands, somebody edits what the second one would change.
    const last = await named('nodes', 'large-19');
    eventStore.append = async (stream, ...rest_) => {
      eventStore.append = write;
      void rest.gateway.run({ type: 'UpdateNode', id: last.id, ifMatch: undefined, description: 'by hand' });
      return write(stream, ...rest_);
    };
    const raced = await apply(large('192.0.2.2').replaceAll('x', 'y'));
    expect(raced.incomplete).toMatchObject({ error: expect.stringContaining('precondition_failed') });
    const edited = { description: 'by hand', address: '192.0.2.1' };
    expect(await named('nodes', 'large-19')).toMatchObject(edited);

    const whole = await apply(large('192.0.2.3').replaceAll('x', 'z'));
    expect(whole.commands.length).toBeGreaterThan(1);
    const { commands } = await revert(whole.apply_id);
    expect(commands.map(({ reverts }: JsonData) => reverts)).toEqual(
      whole.commands.map(({ id }: JsonData) => id).toReversed(),
    );
    expect(await named('nodes', 'large-19')).toMatchObject(edited);
    expect(await drift('large')).toMatchObject([{ changes: [{ path: 'description', now: 'by hand' }] }]);
    expect((await rest.data('GET', `/api/fleet/applies/${whole.apply_id}`)).reverted_by).toBe(commands.at(-1).id);
  });
});
