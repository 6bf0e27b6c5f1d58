/** Names over REST and in a document (`docs/contract/domain.md#names`); which ones are allowed is in `test/domain/names.test.ts`. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { decideFleet } from '../../src/domain/fleet/decide.js';
import { draftFleet, emptyFleet } from '../../src/domain/fleet/fleet.js';
import { applyCommand } from '../../src/domain/fleet/apply.js';
import { hypothetical } from '../../src/domain/fleet/hypothetical.js';
import type { FleetEvent } from '../../src/domain/fleet/resources.js';
import { collectionsOf, createMaker, type Maker } from '../support/one-of-each.js';
import { startRest, type RestFixture } from '../support/rest-fixture.js';

let rest: RestFixture;
let maker: Maker;
beforeAll(async () => {
  rest = await startRest();
  maker = await createMaker(rest);
});
afterAll(() => rest.close());

const bad = ['  ', 'edge ', 'a\nb', 'a\u202eb', '\u200b'];

describe('of every resource', () => {
  const named = (): readonly string[] =>
    collectionsOf(maker.operations).filter((path) => 'name' in maker.newBody(path));

  test('a name that nobody can read is a 400 that names the field, new or in an update, and writes nothing', async () => {
    expect(named().length).toBeGreaterThan(6);
    const updated = new Set<string>();
    for (const path of named()) {
      const { id } = await maker.create(path);
      const before = await rest.position();
      for (const name of bad) {
        const made = await rest.call('POST', path, { body: { ...maker.newBody(path), name } });
        expect([path, name, made.statusCode, made.json().error]).toEqual([
          path,
          name,
          400,
          expect.stringMatching(/^invalid_request: name: expected/),
        ]);
        const put = await rest.call('PUT', `${path}/${id}`, { body: { name } });
        // Some cannot be renamed.
        if (put.statusCode === 405 || /not a field of this request/.test(put.json().error)) continue;
        updated.add(path);
        expect([path, name, put.statusCode, put.json().error]).toEqual([
          path,
          name,
          400,
          expect.stringMatching(/^invalid_request: name: expected/),
        ]);
      }
      expect(await rest.position()).toBe(before);
    }
    expect(updated.size).toBeGreaterThan(4);
  });

  test('a name is kept in NFC', async () => {
    for (const path of named()) {
      const { name } = await maker.create(path, { name: 'Su\u0308d' });
      expect([path, name]).toEqual([path, 'S\u00fcd']);
    }
  });

  test('the characters of a name are counted in NFC', async () => {
    const { id, name } = await maker.create('/api/nodes', { name: 'e\u0301'.repeat(128) });
    expect(name).toBe('\u00e9'.repeat(128));
    expect((await rest.call('PUT', `/api/nodes/${id}`, { body: { name } })).statusCode).toBe(200);
    for (const tooLong of [{ name: '\ufb1d'.repeat(65) }, { labels: { ['\ufb1d'.repeat(32)]: '' } }]) {
      expect((await rest.call('POST', '/api/nodes', { body: { name: 'short', ...tooLong } })).statusCode).toBe(400);
    }
  });
});

test('a filter by a label, and the name of a set, find what is kept in NFC', async () => {
  const decomposed = 'cafe\u0301';
  const { id } = await maker.create('/api/nodes', { labels: { [decomposed]: decomposed } });
  const query = encodeURIComponent(`${decomposed}:${decomposed}`);
  expect((await rest.data('GET', `/api/nodes?label=${query}`)).items).toMatchObject([{ id }]);

  const document = (set: string) => JSON.stringify({ svc: 1, set, nodes: { coffee: {} } });
  await rest.data('POST', '/api/fleet/apply', { body: { document: document(decomposed) } });
  const set = encodeURIComponent(decomposed);
  expect((await rest.data('GET', `/api/fleet/export?set=${set}`)).documents).toHaveLength(1);
  const taken = { document: document('other'), adopt_from: [decomposed] };
  expect((await rest.data('POST', '/api/fleet/plan', { body: taken })).obstacles).toEqual([]);
  expect(await rest.data('GET', `/api/fleet/sets/${set}/drift`)).toEqual({ items: [] });
  expect((await rest.call('POST', `/api/fleet/sets/${set}/release`)).statusCode).toBe(200);
});

test('keys and values of labels, sets, and names in a document follow the same rule', async () => {
  for (const labels of [{ 'a\u202e': 'b' }, { a: ' b' }, { 'a\nb': '' }]) {
    const answer = await rest.call('POST', '/api/nodes', { body: { name: 'labelled', labels } });
    expect([labels, answer.statusCode]).toEqual([labels, 400]);
  }
  const { labels } = await maker.create('/api/nodes', { labels: { 'e\u0301': 'u\u0308', empty: '' } });
  expect(labels).toEqual({ '\u00e9': '\u00fc', empty: '' });
  const documents = ['.', '..', 'a ', '\u200b'].map((set) => ({ svc: 1, set })) as object[];
  for (const document of [...documents, { svc: 1, nodes: { 'a\u202eb': {} } }]) {
    const answer = await rest.call('POST', '/api/fleet/plan', { body: { document: JSON.stringify(document) } });
    expect([document, answer.statusCode]).toEqual([document, 400]);
  }
});

test('a name from before the rule may stay, and may come back by a revert', () => {
  const fleet = draftFleet(emptyFleet()).state;
  const id = '11111111-1111-4111-8111-111111111111';
  const fields = { name: 'edge ', description: null, address: null, labels: {} };
  const happens = (events: readonly FleetEvent[]): void => void applyCommand(fleet, hypothetical(fleet, events));
  happens([{ type: 'NodeCreated', data: { node_id: id, ...fields } }]);
  const ifMatch = undefined;
  const put = (name: string) => decideFleet(fleet, { type: 'UpdateNode', id, ifMatch, name, description: 'said' });
  expect(put('edge ')).toMatchObject({ ok: true });
  expect(put('other ')).toMatchObject({ ok: false, error: { code: 'invalid_request' } });
  const deleted = decideFleet(fleet, { type: 'DeleteNode', id, ifMatch });
  if (!deleted.ok) throw new Error('a node without referrers can be deleted');
  happens(deleted.value);
  const { node_id: _, ...former } = (deleted.value[0] as { data: { node_id: string } }).data;
  expect(decideFleet(fleet, { type: 'RestoreNode', id, ...former, psk: null } as never)).toMatchObject({ ok: true });
});
