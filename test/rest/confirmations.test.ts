/** Changes that a person is to confirm, over REST. Who reverts them in time is in `test/rollouts/unconfirmed.test.ts`. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createManualClock } from '../support/manual-clock.js';
import { startRest, type JsonData, type RestFixture } from '../support/rest-fixture.js';

let rest: RestFixture;
let upstream: string;
let number = 0;
const manual = 'confirm=manual&confirm_secs=600';

beforeAll(async () => {
  // The end of a change moves when the service stands still for a while, as on a busy machine.
  rest = await startRest({}, createManualClock());
});
afterAll(() => rest.close());

/** An upstream whose change waits, and the entry of that change. */
async function waiting(query = manual): Promise<JsonData> {
  number += 1;
  const body = { name: `up-${number}`, endpoint: 'a.example:1' };
  upstream = `/api/l4-upstreams/${(await rest.data('POST', '/api/l4-upstreams', { body })).id}`;
  await rest.data('PUT', `${upstream}?${query}`, { body: { endpoint: 'b.example:1' } });
  const { items } = await rest.data('GET', '/api/audit?action=l4_upstream.update');
  return items[0];
}
const edit = (): Promise<readonly [number, string]> => refusal('PUT', upstream, { endpoint: 'c.example:1' });
async function refusal(method: string, url: string, body?: object): Promise<readonly [number, string]> {
  const answer = await rest.call(method, url, body === undefined ? {} : { body });
  return [answer.statusCode, answer.json().error];
}

describe('a change that a person is to confirm', () => {
  test('shows until when, keeps others away, and is done with once it is confirmed', async () => {
    const entry = await waiting();
    expect(Date.parse(entry.confirm.until) - Date.parse(entry.at)).toBe(600_000);
    expect(entry.confirm).toMatchObject({ confirmed_at: null, confirmed_by: null, error: null });
    expect(await edit()).toEqual([409, expect.stringContaining(`confirm or revert the entry ${entry.id} first`)]);
    expect((await refusal('DELETE', upstream))[0]).toBe(409);

    const confirmed = await rest.data('POST', `/api/audit/${entry.id}/confirm`);
    expect(confirmed).toMatchObject({
      id: entry.id,
      confirm: { confirmed_at: expect.any(String), confirmed_by: { type: 'user', name: 'admin' }, error: null },
    });
    expect(await rest.data('GET', `/api/audit/${entry.id}`)).toEqual(confirmed);
    expect((await edit())[0]).toBe(200);
    expect(await refusal('POST', `/api/audit/${entry.id}/confirm`)).toEqual([
      409,
      expect.stringContaining('waits for no confirmation: confirmed'),
    ]);
    const { items } = await rest.data('GET', '/api/audit?action=confirmation.confirm');
    expect(items[0]).toMatchObject({ actor: { name: 'admin' }, revertible: false });
  });

  test('can be reverted by hand, which ends it', async () => {
    const entry = await waiting();
    await rest.data('POST', `/api/audit/${entry.id}/revert`);
    const reverted = await rest.data('GET', `/api/audit/${entry.id}`);
    expect(reverted).toMatchObject({ reverted_by: expect.any(String), confirm: { confirmed_at: null, error: null } });
    expect((await edit())[0]).toBe(200);
  });

  test('is an obstacle of the plan of a document that changes it too', async () => {
    const entry = await waiting();
    const document = `svc: 1\nupstreams: {up-${number}: {endpoint: "c.example:1"}}\n`;
    const planned = await rest.data('POST', '/api/fleet/plan', { body: { document, adopt: true } });
    expect(planned.obstacles).toEqual([expect.stringContaining(`confirm or revert the entry ${entry.id} first`)]);
    expect(await refusal('POST', '/api/fleet/apply', { document, adopt: true })).toEqual([
      409,
      `conflict: ${planned.obstacles[0]}`,
    ]);
  });

  test('leaves other resources alone, and has no place in other entries', async () => {
    const entry = await waiting();
    const body = { name: `other-${number}`, endpoint: 'a.example:1' };
    await rest.data('POST', '/api/l4-upstreams', { body });
    const { items } = await rest.data('GET', '/api/audit?action=l4_upstream.create');
    expect(items[0].confirm).toBeNull();
    expect((await rest.data('GET', '/api/dashboard/stats')).recent_audit).toContainEqual(entry);
    expect(await refusal('POST', `/api/audit/${items[0].id}/confirm`)).toEqual([
      409,
      expect.stringContaining('nobody was asked'),
    ]);
  });

  test.each([
    ['confirm=manual', 400],
    ['confirm_secs=60', 400],
    ['confirm=manual&confirm_secs=29', 400],
    ['confirm=manual&confirm_secs=86401', 400],
  ])('is refused with %s', async (query, status) => {
    await waiting('rollout=none');
    expect((await refusal('PUT', `${upstream}?${query}`, { endpoint: 'd.example:1' }))[0]).toBe(status);
  });

  test('must be revertible, and one command', async () => {
    const body = { name: 'key', key_type: 'x25519' };
    const { id } = await rest.data('POST', '/api/credentials', { body });
    expect(await refusal('PUT', `/api/credentials/${id}?${manual}`, { private_key: null })).toEqual([
      409,
      expect.stringContaining('cannot be reverted'),
    ]);
    // Too many for one command.
    const nodes = Object.fromEntries(Array.from({ length: 600 }, (_, index) => [`n${index}`, {}]));
    const document = JSON.stringify({ svc: 1, nodes });
    const [status, error] = await refusal('POST', `/api/fleet/apply?${manual}`, { document });
    expect([status, error]).toEqual([409, expect.stringContaining('more than one command')]);
  });
});
