/** Applying a document of the fleet over REST (`docs/contract/automation.md#the-fleet-as-a-file`, apply). */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startRest, type Call, type JsonData, type RestFixture } from '../support/rest-fixture.js';

let rest: RestFixture;
beforeAll(async () => {
  rest = await startRest();
});
afterAll(() => rest.close());

type Flags = { readonly [flag: string]: unknown };
const send = (path: 'plan' | 'apply', document: string, flags: Flags = {}, headers: Call['headers'] = {}) =>
  rest.call('POST', `/api/fleet/${path}`, { body: { document, ...flags }, headers });
const plan = async (document: string, flags: Flags = {}): Promise<JsonData> =>
  (await send('plan', document, flags)).json().data;
const apply = async (document: string, flags: Flags = {}, headers: Call['headers'] = {}): Promise<JsonData> => {
  const answer = await send('apply', document, flags, headers);
  expect([answer.statusCode, answer.json().error]).toEqual([200, null]);
  return answer.json().data;
};
const refused = async (document: string, flags: Flags = {}, headers: Call['headers'] = {}): Promise<JsonData> => {
  const answer = await send('apply', document, flags, headers);
  return [answer.statusCode, answer.json().error];
};
const exported = async (set: string): Promise<string> =>
  (await rest.data('GET', `/api/fleet/export?set=${set}`)).documents[0]?.document;
const named = async (path: string, name: string): Promise<JsonData> =>
  (await rest.data('GET', `/api/${path}?page_size=500`)).items.find((one: JsonData) => one.name === name);
const lines = (steps: JsonData): readonly string[] =>
  steps.map(({ action, resource }: JsonData) => `${action} ${resource.type} ${resource.name}`);

const chain = (port: number, more = ''): string =>
  `{payload: tcp, hops: [{node: edge-1, listen_port: ${port}, outer: tcp, security: raw}], target: {upstream: web}${more}}`;
const site = (chains: string, more = ''): string => `svc: 1
set: edge
nodes:
  edge-1: {address: 192.0.2.10}
upstreams:
  web: {endpoint: "203.0.113.5:443"}
credentials:
  key: {key_type: x25519}
chains: {${chains}}
${more}`;
const first = site(
  `front: ${chain(443, ', deploy: true')}, back: ${chain(444, ', deploy: true')}`,
  'policies: [{node: edge-1, transport: tcp, listen_addr: 0.0.0.0, listen_port: 443, priority_order: [tls]}]\n',
);

describe('an apply', () => {
  it('does what its plan says, as one command with one entry and one generation for each node', async () => {
    const { steps, etag } = await plan(first, { issue_psks: undefined });
    const before = (await rest.log()).length;
    // The tag as the plan has it; it is in quotes below.
    const applied = await apply(first, { issue_psks: true }, { 'if-match': etag });
    expect(lines(applied.steps)).toEqual(lines(steps));
    expect(applied).toMatchObject({
      incomplete: null,
      commands: [
        {
          action: 'fleet.apply',
          resource: { type: 'fleet', id: applied.apply_id, name: 'edge' },
          revertible: true,
        },
      ],
      control_psks: [{ node: 'edge-1', control_psk: expect.stringMatching(/^svcpsk1_/) }],
    });
    expect(new Set(applied.deployments.map(({ id }: JsonData) => id)).size).toBe(2);
    const written = (await rest.log()).slice(before);
    expect(new Set(written.map(({ metadata }) => metadata.command.id)).size).toBe(1);
    const node = await named('nodes', 'edge-1');
    expect(node.generation).toBe(1 + (written.at(-1)?.revision ?? 0));
    for (const path of ['nodes', 'l4-upstreams', 'credentials', 'l4-chains']) {
      for (const { managed_by } of (await rest.data('GET', `/api/${path}`)).items) expect(managed_by).toBe('edge');
    }
    expect(await plan(first)).toMatchObject({ steps: [], obstacles: [] });
    expect(await plan(await exported('edge'), { prune: true })).toMatchObject({ steps: [], obstacles: [] });
    const about = await rest.data('GET', `/api/audit?resource_id=${node.id}`);
    expect(about.items.map(({ action }: JsonData) => action)).toEqual(['fleet.apply']);
    expect((await rest.data('GET', '/api/audit?q=edge-1&resource_type=node')).items).toEqual(about.items);
    expect(about.items[0].changes).toContainEqual({
      path: 'address',
      before: null,
      after: '192.0.2.10',
      resource: { type: 'node', id: node.id, name: 'edge-1' },
    });
    const deployments = await rest.data('GET', `/api/l4-chains/${(await named('l4-chains', 'front')).id}/deployments`);
    expect(deployments.items.map(({ id }: JsonData) => id)).toEqual([applied.deployments[0].id]);
  });

  it('judges the result: chains trade their listeners, and one takes that of another that goes away', async () => {
    const traded = site(`front: ${chain(444, ', deploy: true')}, back: ${chain(443, ', deploy: true')}`);
    expect(lines((await apply(traded)).steps)).toEqual([
      'update l4_chain front',
      'update l4_chain back',
      'deploy l4_chain front',
      'deploy l4_chain back',
    ]);
    const alone = site(`other: ${chain(443, ', deploy: true')}, front: ${chain(444, ', deploy: true')}`);
    expect((await plan(alone)).obstacles).toEqual([expect.stringContaining('"back"')]);
    expect((await refused(alone))[0]).toBe(409);
    const twice = site(`one: ${chain(445)}, two: ${chain(445)}`);
    const { obstacles, etag } = await plan(twice);
    expect(obstacles).toEqual([
      expect.stringMatching(/^the l4_chain "two": .* collides with l4_chain "one" on 0\.0\.0\.0/),
    ]);
    expect(await refused(twice, {}, { 'if-match': etag })).toEqual([409, `conflict: ${obstacles[0]}`]);
    const { steps } = await apply(alone, { prune: true });
    expect(lines(steps)).toEqual(['create l4_chain other', 'deploy l4_chain other', 'delete l4_chain back']);
    await apply(first, { prune: true });
  });

  it('of more than one command holds may put one chain in the place of another, beside many others that change', async () => {
    const port = (n: number): number => 10_000 + n;
    const many = (description: string, last: string): string => `svc: 1
set: split
nodes: {${Array.from({ length: 12 }, (_, n) => `split-${n}: {}`).join()}}
chains:
${Array.from({ length: 300 }, (_, n) => `  ${n === 299 ? last : `split-${n}`}: {payload: tcp, description: ${description.repeat(300)}, hops: [{node: split-${n % 12}, listen_port: ${port(n)}, outer: tcp, security: raw}], target: {endpoint: "192.0.2.1:80"}, deploy: true}\n`).join('')}`;
    await apply(many('one', 'split-299'));
    const changed = many('two', 'instead');
    const planned = await plan(changed, { prune: true });
    expect(planned.obstacles).toEqual([]);
    expect(planned.commands).toBeGreaterThan(1);
    const { commands, incomplete, steps_total } = await apply(changed, { prune: true });
    expect([commands.length, incomplete, steps_total]).toEqual([planned.commands, null, 299 + 3]);
    expect(await named('l4-chains', 'split-299')).toBeUndefined();
    expect(await plan(changed, { prune: true })).toMatchObject({ steps: [], obstacles: [] });
  });

  it('renames what was called otherwise, keeping its id and key', async () => {
    const { id, public_key } = await named('credentials', 'key');
    const renamed = first.replace('key: {key_type: x25519}', 'new-key: {key_type: x25519, was: key}');
    expect(lines((await apply(renamed, { prune: true })).steps)).toEqual(['rename credential new-key']);
    expect(await named('credentials', 'new-key')).toMatchObject({ id, public_key });
    expect((await apply(renamed, { prune: true })).steps).toEqual([]);
    await apply(first.replace('key: {key_type: x25519}', 'key: {key_type: x25519, was: new-key}'), { prune: true });
  });

  it('refuses another plan, an owned resource, too many deletes and what others use, and writes nothing', async () => {
    const { etag } = await plan(first);
    const front = await named('l4-chains', 'front');
    await rest.data('PUT', `/api/l4-chains/${front.id}`, { body: { description: 'by hand' } });
    const revision = (await rest.log()).length;
    expect(await refused(first, {}, { 'if-match': `"${etag}"` })).toEqual([412, expect.any(String)]);
    expect(await refused('svc: 1\nset: other\nnodes: {edge-1: {}}\n')).toEqual([
      409,
      expect.stringContaining('belongs to the set "edge"'),
    ]);
    expect(await refused('svc: 1\nset: null\nnodes: {edge-1: {}}\n')).toEqual([409, expect.any(String)]);
    const empty = 'svc: 1\nset: edge\nnodes: {}\n';
    expect(await refused(empty, { prune: true })).toEqual([409, expect.stringContaining('l4_chain "front"')]);
    const nothing = 'svc: 1\nset: edge\nchains: {}\n';
    expect(await refused(nothing, { prune: true, max_deletes: 1 })).toEqual([409, expect.stringContaining('2 ')]);
    expect((await rest.log()).length).toBe(revision);
    expect(lines((await apply(first)).steps)).toEqual(['update l4_chain front']);
  });

  it('adopts what no set owns, or another set, when it may; a change of the owner touches no node', async () => {
    const node = await rest.data('POST', '/api/nodes', { body: { name: 'free', issue_psk: false } });
    const document = 'svc: 1\nset: other\nnodes: {free: {}}\n';
    expect(await refused(document)).toEqual([409, expect.stringContaining('belongs to no set')]);
    expect(lines((await apply(document, { adopt: true })).steps)).toEqual(['adopt node free']);
    const taken = document.replace('other', 'third');
    expect(lines((await apply(taken, { adopt_from: ['other'] })).steps)).toEqual(['adopt node free']);
    expect(await rest.data('GET', `/api/nodes/${node.id}`)).toMatchObject({
      managed_by: 'third',
      generation: node.generation,
    });
    const { items } = await rest.data('GET', `/api/audit?resource_id=${node.id}&action=node.create`);
    await rest.data('POST', `/api/audit/${items[0].id}/revert`).then(
      () => expect.unreachable('an apply is later work'),
      (error: unknown) => expect(String(error)).toContain('fleet.apply'),
    );
  });

  it('puts new keys first, in a command of their own, and moves the base of drift once for another document', async () => {
    const key = Buffer.alloc(32, 7).toString('base64url');
    const rotated = first
      .replace('key: {key_type: x25519}', `key: {key_type: x25519, private_key: ${key}}`)
      .replace('203.0.113.5:443', '203.0.113.6:443');
    expect(await plan(rotated)).toMatchObject({ commands: 2 });
    const { commands, steps } = await apply(rotated);
    expect(commands).toHaveLength(2);
    expect(lines(steps)).toEqual(['update credential key', 'update l4_upstream web']);
    expect(JSON.stringify(steps)).not.toContain(key);
    expect((await apply(`${rotated}# the same\n`)).commands).toHaveLength(1);
    expect((await apply(`${rotated}# the same\n`)).commands).toHaveLength(0);
  });

  it('shows the first 20 changes of an entry, each with the name of its resource, and all of them in pages', async () => {
    const upstreams = (port: number): string =>
      Array.from({ length: 120 }, (_, n) => `  many-${n}: {endpoint: "203.0.113.9:${port + n}"}\n`).join('');
    const document = (port: number): string => `svc: 1\nset: many\nupstreams:\n${upstreams(port)}`;
    await apply(document(1000));
    const [updated] = (await apply(document(2000))).commands;
    expect([updated.changes.length, updated.changes_total]).toEqual([20, 120]);
    expect(updated.changes.every(({ resource }: JsonData) => /^many-\d+$/.test(resource.name))).toBe(true);
    const created = (await rest.data('GET', '/api/audit?action=fleet.apply&page=2&page_size=1')).items[0];
    const total = created.changes_total;
    expect([created.changes.length, total > 600]).toEqual([20, true]);
    const page = async (number: number): Promise<JsonData> =>
      rest.data('GET', `/api/audit/${created.id}/changes?page=${number}&page_size=500`);
    const [one, two] = [await page(1), await page(2)];
    expect([one.total, one.items.length + two.items.length]).toEqual([total, total]);
    expect(one.items.slice(0, 20)).toEqual(created.changes);
    expect((await page(3)).items).toEqual([]);
    const other = (await rest.data('GET', '/api/audit?action=node.create&page_size=1')).items[0];
    const { items } = await rest.data('GET', `/api/audit/${other.id}/changes`);
    expect(items).toEqual(other.changes.map((change: JsonData) => ({ ...change, resource: other.resource })));
    expect((await rest.call('GET', `/api/audit/${other.resource.id}/changes`)).statusCode).toBe(404);
  });

  it('shows the first 500 steps of an apply with the deployments among them, and all of both in pages', async () => {
    const named = (name: (n: number) => string): string => Array.from({ length: 180 }, (_, n) => name(n)).join('');
    const document = `svc: 1
set: paged
nodes:
${named((n) => `  paged-${n}: {address: 192.0.2.7}\n`)}chains:
${named((n) => `  paged-${n}: {payload: tcp, hops: [{node: paged-${n}, listen_port: 443, outer: tcp, security: raw}], target: {endpoint: "203.0.113.5:443"}, deploy: true}\n`)}`;
    const applied = await apply(document);
    const page = async (number: number): Promise<JsonData> =>
      rest.data('GET', `/api/fleet/applies/${applied.apply_id}?page=${number}`);
    const [one, two, three] = [await page(1), await page(2), await page(3)];
    expect([applied, one, two, three].map(({ steps, steps_total }) => [steps.length, steps_total])).toEqual([
      [500, 540],
      [500, 540],
      [40, 540],
      [0, 540],
    ]);
    expect(one.steps).toEqual(applied.steps);
    const names = [...one.steps, ...two.steps].map(({ action, resource }: JsonData) => `${action} ${resource.name}`);
    expect(new Set(names).size).toBe(360);
    expect(names.filter((name) => name.startsWith('deploy'))).toEqual(
      Array.from({ length: 180 }, (_, n) => `deploy paged-${n}`),
    );
    const chains = ({ deployments }: JsonData): string[] => deployments.map(({ chain_id: id }: JsonData) => id);
    const deployed = [one, two].map(({ steps }) =>
      steps.flatMap(({ action, resource }: JsonData) => (action === 'deploy' ? [resource.id] : [])),
    );
    expect([one, two, three].map(chains)).toEqual([...deployed, []]);
    for (const { commands } of [two, three]) expect(commands).toEqual(one.commands);
    expect((await rest.call('GET', `/api/fleet/applies/${applied.apply_id}?page=0`)).statusCode).toBe(400);
  });

  it('answers a repeat with the apply as it went, less its PSKs', async () => {
    const document = 'svc: 1\nset: keyed\nnodes: {keyed: {}}\n';
    const flags = { issue_psks: true };
    const once = await apply(document, flags, { 'idempotency-key': 'k' });
    const revision = (await rest.log()).length;
    const again = await apply(document, flags, { 'idempotency-key': 'k' });
    expect(again).toEqual({ ...once, control_psks: [{ node: 'keyed', control_psk: null }] });
    expect((await rest.log()).length).toBe(revision);
  });

  it('lets one of two that race win, and the other plan again', async () => {
    const documents = ['a', 'b'].map((note) =>
      site('', `# ${note}`).replace('192.0.2.10', `192.0.2.${note === 'a' ? 11 : 12}`),
    );
    const etags = await Promise.all(documents.map(async (document) => (await plan(document)).etag));
    const answers = await Promise.all(
      documents.map((document, index) => send('apply', document, {}, { 'if-match': `"${etags[index]}"` })),
    );
    expect(answers.map(({ statusCode }) => statusCode).sort()).toEqual([200, 412]);
  });
});
