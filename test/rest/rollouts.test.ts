/**
 * Rollouts over REST (`docs/contract/rollouts.md`): policies, commands with `rollout` and `dry_run`, the steps of people, what
 * lists, nodes and the dashboard show. Nobody judges here: `test/domain/rollouts.test.ts` has the steps of the service.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.js';
import { startRest, type JsonData, type RestFixture } from '../support/rest-fixture.js';

let rest: RestFixture;
/** Ids of four nodes: n-1 and n-2 are a chain, n-3 and n-10 stand alone. */
let nodes: readonly string[];
let chain: string;
let multiplexPort = 7000;
const settings = '/api/settings/connectivity';

beforeAll(async () => {
  rest = await startRest();
  const made: string[] = [];
  for (const name of ['n-1', 'n-2', 'n-3', 'n-10']) {
    const { id } = await rest.data('POST', '/api/nodes', { body: { name, address: 'gate.example' } });
    const agent = await rest.connect(id);
    await rest.data('POST', `/api/nodes/${id}/config`);
    await agent.apply(await agent.receive());
    made.push(id);
  }
  nodes = made;
  const hops = nodes.slice(0, 2).map((node_id) => ({ node_id, listen_port: 80, outer: 'tcp', security: 'raw' }));
  const body = { name: 'front', payload: 'tcp', hops, target: { endpoint: 'a.example:80' } };
  chain = `/api/l4-chains/${(await rest.data('POST', '/api/l4-chains', { body })).id}`;
  await rest.data('POST', '/api/rollout-policies', { body: { name: 'one', waves: [{ nodes: 1 }] } });
});
afterAll(() => rest.close());

/** A change that touches every node. */
const everyNode = (): object => ({ multiplex: true, multiplex_port: (multiplexPort += 1) });
const roll = (query = '?rollout=one'): Promise<JsonData> =>
  rest.data('PUT', `${settings}${query}`, { body: everyNode() });
const step = (id: string, verb: string): Promise<JsonData> => rest.data('POST', `/api/rollouts/${id}/${verb}`);
const refusal = async (method: string, url: string, body?: object): Promise<readonly [number, string]> => {
  const answer = await rest.call(method, url, body === undefined ? {} : { body });
  return [answer.statusCode, answer.json().error];
};

describe('a change that nodes confirm', () => {
  test('is asked for with its seconds, within bounds, and says nothing of a rollout', async () => {
    const asked = await rest.data('PUT', `${settings}?confirm=node&confirm_secs=60`, { body: everyNode() });
    expect(asked).not.toHaveProperty('rollout_id');
    for (const [query, field] of [
      ['confirm=node', 'confirm'],
      ['confirm_secs=60', 'confirm'],
      ['confirm=node&confirm_secs=59', 'confirm_secs'],
      ['confirm=node&confirm_secs=3601', 'confirm_secs'],
      ['confirm=agent&confirm_secs=60', 'confirm'],
    ] as const) {
      expect(await refusal('PUT', `${settings}?${query}`, everyNode())).toMatchObject([
        400,
        expect.stringContaining(`${field}: expected`),
      ]);
    }
  });
});

describe('a rollout policy', () => {
  test('is answered whole, with defaults', async () => {
    const body = { name: 'careful', waves: [{ labels: { canary: 'yes' } }, { nodes: '10%' }], max_lost: '5%' };
    const policy = await rest.data('POST', '/api/rollout-policies', { body });
    const presumed = { bake_secs: 60, apply_timeout_secs: 120, max_failed: 0, on_failure: 'halt', confirm_secs: null };
    expect(policy).toMatchObject({ ...body, ...presumed, version: 1 });
    await rest.data('DELETE', `/api/rollout-policies/${policy.id}`);
  });

  test.each([
    [{ waves: [] }, 'waves: '],
    [{ waves: [{ nodes: 0 }] }, 'waves[0]'],
    [{ waves: [{ nodes: '0%' }] }, 'waves[0]'],
    [{ waves: [{ nodes: '101%' }] }, 'waves[0]'],
    [{ waves: [{ nodes: '1.5%' }] }, 'waves[0]'],
    [{ waves: [{ labels: {} }] }, 'waves[0]'],
    [{ waves: [{ nodes: 1, labels: { a: 'b' } }] }, 'waves[0]'],
    [{ waves: Array.from({ length: 17 }, () => ({ nodes: 1 })) }, 'waves: '],
    [{ max_failed: '101%' }, 'max_failed: '],
    [{ max_lost: -1 }, 'max_lost: '],
    [{ bake_secs: 86_401 }, 'bake_secs: '],
    [{ apply_timeout_secs: 4 }, 'apply_timeout_secs: '],
    [{ confirm_secs: 59 }, 'confirm_secs: '],
    [{ confirm_secs: 60, bake_secs: 119 }, 'bake_secs: '],
    [{ name: 'None' }, 'name: '],
  ])('with %j is refused by the field', async (fields, field) => {
    const body = { name: 'other', waves: [{ nodes: '100%' }], ...fields };
    const [status, error] = await refusal('POST', '/api/rollout-policies', body);
    expect([status, error.slice(0, 'invalid_request: '.length + field.length)]).toEqual([
      400,
      `invalid_request: ${field}`,
    ]);
  });

  test('that settings name is shown by its name there, and stays', async () => {
    const body = { name: 'named', waves: [{ nodes: 1 }] };
    const { id } = await rest.data('POST', '/api/rollout-policies', { body });
    const named = { rollout_policy: null, upgrade_rollout_policy: 'Named' };
    expect(await rest.data('PUT', settings, { body: named })).toMatchObject({
      ...named,
      upgrade_rollout_policy: 'named',
    });
    await rest.data('PUT', `/api/rollout-policies/${id}`, { body: { name: 'renamed' } });
    expect(await rest.data('GET', settings)).toMatchObject({ upgrade_rollout_policy: 'renamed' });
    expect(await refusal('DELETE', `/api/rollout-policies/${id}`)).toMatchObject([
      409,
      expect.stringContaining('renamed'),
    ]);
    expect(await refusal('PUT', settings, { rollout_policy: 'no such' })).toMatchObject([
      400,
      expect.stringContaining('rollout_policy: '),
    ]);
    // No document describes them.
    const { documents } = await rest.data('GET', '/api/fleet/export');
    expect(JSON.stringify(documents)).not.toContain('rollout');
    await rest.data('PUT', settings, { body: { upgrade_rollout_policy: null } });
    await rest.data('DELETE', `/api/rollout-policies/${id}`);
  });
});

describe('a command', () => {
  test('says nothing of rollouts unless it is asked, or settings name a policy', async () => {
    const quiet = await rest.data('PUT', `/api/nodes/${nodes[0]}`, { body: { description: 'one' } });
    expect(quiet).not.toHaveProperty('rollout_id');
    expect(quiet).not.toHaveProperty('warnings');
    const asked = await rest.data('PUT', `/api/nodes/${nodes[0]}?rollout=one`, { body: { description: 'two' } });
    expect(asked).toMatchObject({ description: 'two', rollout_id: null, warnings: [] });
    await rest.data('PUT', settings, { body: { rollout_policy: 'one' } });
    const upstream = await rest.data('POST', '/api/l4-upstreams', { body: { name: 'up', endpoint: 'a.example:1' } });
    expect(upstream).toMatchObject({ name: 'up', rollout_id: null, warnings: [] });
    expect(await rest.data('DELETE', `/api/l4-upstreams/${upstream.id}`)).toEqual({ rollout_id: null, warnings: [] });
    await rest.data('PUT', settings, { body: { rollout_policy: null } });
    expect(await refusal('PUT', `${settings}?rollout=other`, everyNode())).toMatchObject([
      400,
      expect.stringContaining('rollout: expected the name of a rollout policy'),
    ]);
  });

  test('of one unit is applied as ever', async () => {
    const deployed = await rest.data('POST', `${chain}/deploy?rollout=one`);
    expect(deployed).toMatchObject({ rollout_id: null, warnings: ['one unit of 2 nodes, no waves'] });
    expect(deployed.chain.status).toBe('deployed');
  });

  test('in a dry run answers with its waves, and writes nothing', async () => {
    const before = (await rest.log()).length;
    const [one, two, three, ten] = nodes;
    const planned = { waves: [{ units: [[one]] }, { units: [[two], [three], [ten]] }], warnings: [] };
    expect(await rest.data('PUT', `${settings}?rollout=one&dry_run=true`, { body: everyNode() })).toEqual(planned);
    const create = await rest.call('POST', '/api/nodes?rollout=one&dry_run=true', { body: { name: 'n-20' } });
    expect([create.statusCode, create.json().data]).toEqual([
      200,
      { waves: [{ units: [[expect.any(String)]] }], warnings: [] },
    ]);
    const nothing = { waves: [], warnings: [] };
    expect(await rest.data('PUT', `${settings}?dry_run=true`, { body: everyNode() })).toEqual(nothing);
    expect(await rest.data('POST', `${chain}/deploy?dry_run=true`)).toEqual(nothing);
    const twoUnits = { waves: [{ units: [[one, two]] }], warnings: ['one unit of 2 nodes, no waves'] };
    expect(await rest.data('PUT', `${chain}?dry_run=true&rollout=one`, { body: { name: 'other' } })).toEqual(twoUnits);
    expect(await rest.data('DELETE', `${chain}?dry_run=true&rollout=one`)).toMatchObject({
      waves: [{ units: [[one, two]] }],
    });
    const document = 'svc: 1\nsettings: {multiplex: true, multiplex_port: 7999}';
    expect(await rest.data('POST', '/api/fleet/apply?dry_run=true&rollout=one', { body: { document } })).toEqual(
      planned,
    );
    // What would refuse the command refuses this too.
    expect(await refusal('DELETE', `/api/nodes/${one}?dry_run=true`)).toMatchObject([409, expect.any(String)]);
    expect(await rest.log()).toHaveLength(before);
  });

  test('of an apply in several commands is a 409', async () => {
    const { id } = await rest.data('POST', '/api/credentials', { body: { name: 'key', key_type: 'x25519' } });
    await rest.data('POST', '/api/fleet/apply', {
      body: { document: 'svc: 1\nset: keys\ncredentials: {key: {key_type: x25519}}', adopt: true },
    });
    const key = Buffer.alloc(32, 9).toString('base64url');
    const document = `svc: 1\nset: keys\ncredentials: {key: {key_type: x25519, private_key: ${key}}}\nupstreams: {rotated: {endpoint: "a.example:1"}}`;
    expect(await refusal('POST', '/api/fleet/apply?rollout=one', { document })).toMatchObject([
      409,
      expect.stringContaining('more than one command'),
    ]);
    const { apply_id } = await rest.data('POST', '/api/fleet/apply?rollout=none', { body: { document } });
    const revert = `/api/fleet/applies/${apply_id}/revert`;
    const dry = await rest.data('POST', `${revert}?rollout=one&dry_run=true`);
    expect(dry).toMatchObject({ commands: [expect.anything()], waves: [], warnings: [] });
    expect(await rest.data('POST', `${revert}?rollout=one`)).toMatchObject({ rollout_id: null, warnings: [] });
    await rest.data('DELETE', `/api/credentials/${id}`);
  });
});

describe('a rollout', () => {
  test('holds the nodes of later waves, and is listed, paused, resumed and completed', async () => {
    const { rollout_id: id } = await roll();
    const [one, two, three, ten] = nodes;
    const rollout = await rest.data('GET', `/api/rollouts/${id}`);
    expect(rollout).toMatchObject({
      action: 'connectivity.update',
      resource: { type: 'connectivity' },
      policy: { name: 'one', waves: [{ nodes: 1 }] },
      state: 'running',
      wave: 1,
      waves: [
        { converged_at: null, counts: { held: 0 } },
        { released_at: null, counts: { held: 3 } },
      ],
      failed: 0,
      lost: 0,
      ended_at: null,
      nodes_total: 4,
    });
    const secondsLeft = (Date.parse(rollout.due_at) - Date.parse(rollout.waves[0].released_at)) / 1_000;
    expect(secondsLeft).toBe(rollout.policy.apply_timeout_secs);
    const placed = (rows: readonly JsonData[]) =>
      rows.map(({ node_id, wave, unit, state }) => [node_id, wave, unit, state]);
    expect(placed(rollout.nodes)).toEqual([
      [one, 1, 1, 'pushed'],
      [two, 2, 2, 'held'],
      [three, 2, 3, 'held'],
      [ten, 2, 4, 'held'],
    ]);
    const answer = await rest.call('GET', `/api/rollouts/${id}`);
    expect(answer.headers['etag']).toBe(`"${answer.json().data.version}"`);
    const second = await rest.data('GET', `/api/rollouts/${id}?wave=2&page=2&page_size=2`);
    expect([placed(second.nodes), second.nodes_total]).toEqual([[[ten, 2, 4, 'held']], 3]);
    expect((await rest.data('GET', `/api/rollouts/${id}?wave=3`)).nodes).toEqual([]);
    const { entry_id } = rollout;
    expect(await rest.data('GET', `/api/audit/${entry_id}`)).toMatchObject({
      action: 'connectivity.update',
      revertible: true,
    });
    expect((await rest.data('GET', `/api/nodes/${two}`)).held_by).toBe(id);
    expect((await rest.data('GET', `/api/nodes/${one}`)).held_by).toBeNull();
    expect((await rest.data('GET', '/api/dashboard/stats')).nodes).toMatchObject({ total: 4, held: 3 });

    expect(await refusal('PUT', `/api/nodes/${two}?rollout=one`, { address: 'moved.example' })).toMatchObject([
      409,
      expect.stringContaining(id),
    ]);
    const passing = await rest.data('PUT', `/api/nodes/${two}?rollout=none`, { body: { address: 'moved.example' } });
    expect(passing).toMatchObject({ rollout_id: null, warnings: [] });
    expect((await rest.data('POST', `${chain}/deploy?rollout=none`)).deployment.nodes[1]).toMatchObject({
      node_id: two,
      state: 'held',
    });

    expect(await step(id, 'pause')).toMatchObject({ id, state: 'paused', due_at: null });
    expect(await refusal('POST', `/api/rollouts/${id}/pause`)).toMatchObject([409, expect.stringContaining('paused')]);
    expect(await refusal('POST', `/api/rollouts/${id}/advance`)).toMatchObject([409, expect.any(String)]);
    expect((await rest.data('GET', '/api/rollouts?state=paused')).items.map((found: JsonData) => found.id)).toEqual([
      id,
    ]);
    expect(await step(id, 'resume')).toMatchObject({ state: 'running' });
    expect(await step(id, 'complete')).toMatchObject({ state: 'completed', ended_at: expect.any(String) });
    expect((await rest.data('GET', `/api/nodes/${two}`)).held_by).toBeNull();
    expect((await rest.data('GET', '/api/dashboard/stats')).nodes.held).toBe(0);
    for (const verb of ['pause', 'resume', 'advance', 'complete', 'revert']) {
      expect((await refusal('POST', `/api/rollouts/${id}/${verb}`))[0]).toBe(409);
    }
    const { items } = await rest.data('GET', `/api/audit?resource_type=rollout&resource_id=${id}`);
    expect(items.map(({ action }: JsonData) => action)).toEqual([
      'rollout.complete',
      'rollout.resume',
      'rollout.pause',
    ]);
    expect(items[2]).toMatchObject({
      revertible: false,
      changes: [{ path: 'state', before: 'running', after: 'paused' }],
    });
    expect(await refusal('GET', `/api/rollouts/${nodes[0]}`)).toMatchObject([404, expect.any(String)]);
  });

  test('is reverted by its name or with its entry, whose revert needs no word', async () => {
    await rest.data('PUT', settings, { body: { rollout_policy: 'one' } });
    const { rollout_id: first } = await roll('');
    expect(await step(first, 'revert')).toMatchObject({ state: 'reverted' });
    const { rollout_id: second } = await roll('');
    const { entry_id } = await rest.data('GET', `/api/rollouts/${second}`);
    const dry = await rest.data('POST', `/api/audit/${entry_id}/revert?dry_run=true`);
    expect(dry).toMatchObject({ entry_id, waves: [], warnings: [] });
    expect(dry.changes.map(({ path }: JsonData) => path)).toEqual(['multiplex_port']);
    const reverted = await rest.data('POST', `/api/audit/${entry_id}/revert`);
    expect(reverted).toMatchObject({ action: 'connectivity.revert', rollout_id: null, warnings: [] });
    expect(await rest.data('GET', `/api/rollouts/${second}`)).toMatchObject({ state: 'cancelled' });
    // Taking that back can be rolled out like any other change.
    const again = `/api/audit/${reverted.id}/revert`;
    expect((await rest.data('POST', `${again}?dry_run=true`)).waves).toHaveLength(2);
    const { rollout_id: third } = await rest.data('POST', again);
    expect(await step(third, 'complete')).toMatchObject({ action: 'connectivity.revert' });
    await rest.data('PUT', settings, { body: { rollout_policy: null } });
  });

  test('is in a list that is newest first, filtered and walked', async () => {
    const { items, total } = await rest.data('GET', '/api/rollouts');
    expect(total).toBe(4);
    const newestFirst = items.map(({ started_at }: JsonData) => started_at);
    expect(newestFirst).toEqual(newestFirst.toSorted().toReversed());
    const walked: string[] = [];
    for (let after: string | null = 'start'; after !== null;) {
      expect(walked.length).toBeLessThan(total);
      const stretch: JsonData = await rest.data('GET', `/api/rollouts?page_size=3&after=${after}`);
      walked.push(...stretch.items.map(({ id }: JsonData) => id));
      after = stretch.next;
    }
    expect(walked).toEqual(items.map(({ id }: JsonData) => id));
    expect((await rest.data('GET', `/api/rollouts?node_id=${nodes[3]}`)).total).toBe(4);
    expect((await rest.data('GET', `/api/rollouts?node_id=${chain.split('/').at(-1)}`)).total).toBe(0);
    expect((await rest.data('GET', '/api/rollouts?state=cancelled')).total).toBe(1);
    expect((await refusal('GET', '/api/rollouts?state=over'))[0]).toBe(400);
  });

  test('counts a node as released that has its change before its wave, as when its kept bytes are gone', async () => {
    const { rollout_id: id } = await roll();
    const two = `/api/nodes/${nodes[1]}`;
    expect(await rest.data('GET', two)).toMatchObject({ held_by: id });
    const agent = await rest.connect(nodes[1] ?? '');
    const { generation, checksum } = await rest.data('GET', `${two}/config`);
    await agent.apply({ generation, checksum: Buffer.from(checksum, 'hex'), payload: Buffer.alloc(0) });
    await eventually(() => rest.data('GET', two)).toMatchObject({ applied_generation: generation, held_by: null });
    const { counts } = (await rest.data('GET', `/api/rollouts/${id}`)).waves[1];
    expect(counts).toMatchObject({ held: 2, applied: 1 });
    await eventually(async () => (await rest.data('GET', '/api/dashboard/stats')).nodes.held).toBe(2);
    await step(id, 'revert');
  });

  test('is told again to a repeat', async () => {
    const headers = { 'idempotency-key': 'once' };
    const hops = nodes.slice(2).map((node_id) => ({ node_id, listen_port: 90 }));
    const body = { name: 'legacy', host: 'a.example', path_prefix: '/', hops, backend: 'b.example:80' };
    const once = await rest.call('POST', '/api/routes?rollout=one', { body, headers });
    const twice = await rest.call('POST', '/api/routes?rollout=one', { body, headers });
    expect(once.json().data).toMatchObject({ rollout_id: null, warnings: ['one unit of 2 nodes, no waves'] });
    expect(twice.json().data).toMatchObject({ id: once.json().data.id, rollout_id: null });
  });
});
