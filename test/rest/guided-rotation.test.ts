/** PSK candidates and the rotation of the identity, over REST and with agents (`docs/contract/rollouts.md#guided-rotation`). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SessionCloseReason } from '../../src/gen/svc/control/v1/session.js';
import { createShiftedClock, type ShiftedClock } from '../support/agent-fixture.js';
import { eventually } from '../support/eventually.js';
import { addressOf, joinOf } from '../support/machines.js';
import { createRawAgent, helloOf, isRefused, type RawAgent } from '../support/raw-agent.js';
import { startRest, type JsonData, type RestFixture } from '../support/rest-fixture.js';
import { storesInMemory } from '../support/stores-in-memory.js';

const identity = '/api/service/identity';
const day = 86_400_000;

let clock: ShiftedClock;
let shared: ReturnType<typeof storesInMemory>;
let both: readonly [RestFixture, RestFixture];
const agents: RawAgent[] = [];
beforeAll(async () => {
  clock = createShiftedClock();
  shared = storesInMemory();
  const options = { shared, tokenTtlSeconds: 400 * 86_400 };
  both = [await startRest(options, clock), await startRest(options, clock)];
});
afterAll(async () => {
  for (const agent of agents) agent.disconnect();
  for (const one of both) await one.close();
});

/** Resolves when both instances show what this one has answered. */
async function caughtUp(of: RestFixture): Promise<void> {
  const position = String(await of.position());
  for (const one of both) await one.data('GET', '/api/auth/me', { headers: { 'x-min-position': position } });
}
const create = async (name: string, body: object = {}): Promise<JsonData> => {
  const node = await both[0].data('POST', '/api/nodes', { body: { name, ...body } });
  await caughtUp(both[0]);
  return node;
};
const issue = async (id: string, query = '', of = both[0]): Promise<JsonData> => {
  const answer = await of.data('POST', `/api/nodes/${id}/psk${query}`, { role: 'operator' });
  await caughtUp(of);
  return answer;
};
const candidate = (id: string, of = both[0]): Promise<JsonData> => issue(id, '?mode=candidate', of);
const get = (id: string): Promise<JsonData> => both[0].data('GET', `/api/nodes/${id}`, { role: 'viewer' });
const agentOf = (id: string, psk: string, of = both[0]): RawAgent => {
  const agent = createRawAgent({ ...addressOf(of.agents), clock }, id, psk);
  agents.push(agent);
  return agent;
};
const opens = async (id: string, psk: string, of = both[0]): Promise<boolean> =>
  !isRefused(await agentOf(id, psk, of).open());
/** Connects, and waits until the session is the node's live one. */
async function connected(id: string, psk: string, of = both[0]) {
  const stream = await agentOf(id, psk, of).connect();
  await eventually(async () => (await of.data('GET', `/api/nodes/${id}`)).status).toBe('online');
  return stream;
}
const entries = async (query: string): Promise<JsonData[]> => (await both[0].data('GET', `/api/audit?${query}`)).items;
const eventTypes = async (id: string): Promise<string[]> =>
  (await both[0].log()).filter(({ data }) => data['node_id'] === id).map(({ type }) => type);

describe('a candidate', () => {
  test('is a second PSK, which is shown once and replaces the first when an agent proves it', async () => {
    const { id, control_psk: old, psk_fingerprint: before } = await create('guided');
    const oldStream = await connected(id, old);
    const { control_psk: next, psk_candidate: shown, ...rest } = await candidate(id);
    expect(rest).toEqual({ node_id: id });
    expect(next).toMatch(/^svcpsk1_/);
    expect(Date.parse(shown.expires_at) - Date.parse(shown.issued_at)).toBeCloseTo(7 * day, -4);
    expect(await get(id)).toMatchObject({ psk_candidate: shown, psk_fingerprint: before, status: 'online' });
    expect(await opens(id, old)).toBe(true);

    await connected(id, next, both[1]);
    await eventually(() => get(id)).toMatchObject({ psk_candidate: null, psk_fingerprint: shown.fingerprint });
    expect((await get(id)).psk_issued_at > shown.issued_at).toBe(true);
    await oldStream.status;
    expect(oldStream.closeHeard()?.reason).toBe(SessionCloseReason.REVOKED);
    expect([await opens(id, old), await opens(id, old, both[1])]).toEqual([false, false]);
    expect([await opens(id, next), await opens(id, next, both[1])]).toEqual([true, true]);

    const [proven, issued] = await entries(`resource_id=${id}`);
    expect(proven).toMatchObject({
      action: 'node.psk',
      actor: { type: 'agent', id },
      changes: [{ path: 'psk_fingerprint', before, after: shown.fingerprint }],
      revertible: false,
    });
    expect(issued).toMatchObject({ action: 'node.psk_candidate', actor: { name: 'operator' }, revertible: false });
    expect(issued.changes).toContainEqual({ path: 'control_psk', before: null, after: '***' });
    expect(await entries(`resource_id=${id}&action=node.psk_candidate`)).toHaveLength(1);
  });

  test('is replaced by another one, and a session that was opened under it proves nothing', async () => {
    const { id, control_psk: old } = await create('replaced');
    const first = await candidate(id);
    const agent = agentOf(id, first.control_psk);
    const opened = await agent.session();
    const second = await issue(id, '?mode=candidate&valid_days=30', both[1]);
    expect((await get(id)).psk_candidate).toEqual(second.psk_candidate);
    expect(await opens(id, first.control_psk)).toBe(false);
    const stream = agent.attach(opened);
    stream.say(helloOf());
    await stream.status;
    expect(stream.closeHeard()?.reason).toBe(SessionCloseReason.REVOKED);
    expect([await opens(id, old), await opens(id, second.control_psk)]).toEqual([true, true]);
    expect(await eventTypes(id)).not.toContain('NodePskCandidateProven');
  });

  test('is proven once, although two instances see it proven at the same time', async () => {
    const { id } = await create('twice');
    const { control_psk: next, psk_candidate: shown } = await candidate(id);
    const streams = await Promise.all(both.map((of) => agentOf(id, next, of).connect()));
    await eventually(async () => (await get(id)).psk_fingerprint).toBe(shown.fingerprint);
    await caughtUp(both[0]);
    expect((await eventTypes(id)).filter((type) => type === 'NodePskCandidateProven')).toHaveLength(1);
    // The PSK is good: one session took the node over from the other, and neither was revoked.
    await Promise.race(streams.map(({ status }) => status));
    expect(streams.map((one) => one.closeHeard()?.reason)).not.toContain(SessionCloseReason.REVOKED);
  });

  test('is taken back, and ends with a PSK that is issued plainly', async () => {
    const { id, control_psk: old } = await create('taken back');
    const drop = () => both[0].call('DELETE', `/api/nodes/${id}/psk/candidate`, { role: 'operator' });
    expect((await drop()).statusCode).toBe(404);
    const taken = await candidate(id);
    expect((await drop()).json()).toEqual({ success: true, data: {}, error: null });
    expect([(await drop()).statusCode, (await get(id)).psk_candidate]).toEqual([404, null]);
    await caughtUp(both[0]);
    for (const of of both) expect(await opens(id, taken.control_psk, of)).toBe(false);

    const dropped = await candidate(id);
    const plain = await issue(id);
    expect((await get(id)).psk_candidate).toBeNull();
    for (const psk of [old, dropped.control_psk]) expect(await opens(id, psk)).toBe(false);
    expect(await opens(id, plain.control_psk)).toBe(true);
  });

  test('expires when nobody has used it', async () => {
    const time = createShiftedClock();
    const alone = await startRest({ tokenTtlSeconds: 400 * 86_400 }, time);
    const { id, control_psk: old } = await alone.data('POST', '/api/nodes', { body: { name: 'expires' } });
    const short = await alone.data('POST', `/api/nodes/${id}/psk?mode=candidate&valid_days=1`);
    const answers = (psk: string) => {
      const agent = createRawAgent({ ...addressOf(alone.agents), clock: time }, id, psk);
      agents.push(agent);
      return agent.open();
    };
    expect(isRefused(await answers(short.control_psk))).toBe(false);
    time.advance(day);
    expect(isRefused(await answers(short.control_psk))).toBe(true);
    expect(isRefused(await answers(old))).toBe(false);
    expect((await alone.data('GET', `/api/nodes/${id}`)).psk_candidate).toBeNull();
    await alone.close();
  });

  test('needs a PSK beside it, and days from 1 to 30', async () => {
    const { id } = await create('without', { issue_psk: false });
    const post = async (query: string, role: 'operator' | 'viewer' = 'operator') => {
      const answer = await both[0].call('POST', `/api/nodes/${id}/psk${query}`, { role });
      return [answer.statusCode, answer.json().error ?? ''];
    };
    expect(await post('?mode=candidate')).toEqual([409, expect.stringContaining('"without" has no PSK')]);
    for (const query of [
      '?mode=other',
      '?mode=candidate&valid_days=0',
      '?mode=candidate&valid_days=31',
      '?valid_days=3',
    ]) {
      expect([query, (await post(query))[0]]).toEqual([query, 400]);
    }
    expect((await post('?mode=candidate', 'viewer'))[0]).toBe(403);
  });

  test('that is asked for again with the same key is not another one', async () => {
    const { id } = await create('again');
    const call = { headers: { 'idempotency-key': 'candidate' } };
    const [first, again] = [
      await both[0].data('POST', `/api/nodes/${id}/psk?mode=candidate`, call),
      await both[0].data('POST', `/api/nodes/${id}/psk?mode=candidate`, call),
    ];
    expect(again).toEqual({ ...first, control_psk: null });
    expect((await get(id)).version).toBe(3);
  });
});

describe('the identity of the service', () => {
  const pinnedBy = (psk: string): string =>
    Buffer.from(psk.replace('svcpsk1_', ''), 'base64url').subarray(32).toString('base64url');
  const post = async (verb: string, body?: object, of = both[0]): Promise<{ status: number; error: string }> => {
    const answer = await of.call('POST', `${identity}/${verb}`, body === undefined ? {} : { body });
    await caughtUp(of);
    return { status: answer.statusCode, error: answer.json().error ?? '' };
  };
  const shown = (of = both[0]): Promise<JsonData> => of.data('GET', identity, { role: 'viewer' });

  test('is rotated under connected agents, retired when all are over, and read by every instance', async () => {
    const { items: former } = await both[0].data('GET', '/api/nodes?page_size=500');
    await Promise.all(former.map(({ id }: JsonData) => both[0].data('DELETE', `/api/nodes/${id}`)));
    const before = await shown();
    expect(before).toEqual({
      current: { public_key: expect.any(String), since: expect.any(String) },
      next: null,
      nodes: { current: 0, next: 0 },
    });
    expect(await post('retire')).toMatchObject({ status: 409, error: expect.stringContaining('one identity') });
    const made = Array.from({ length: 22 }, (_, index) => create(`n-${index + 1}`));
    const [a, b, ...others] = (await Promise.all(made)) as [JsonData, JsonData, ...JsonData[]];
    expect(pinnedBy(a.control_psk)).toBe(before.current.public_key);
    const streamA = await connected(a.id, a.control_psk);
    const token = await both[0].data('POST', '/api/join-tokens', { body: { name: 'old' } });

    expect(await post('rotate', undefined, both[1])).toMatchObject({ status: 200 });
    expect(await post('rotate')).toMatchObject({ status: 409, error: expect.stringContaining('second identity') });
    // The node is online before its session is a fact.
    await eventually(shown).toMatchObject({ current: before.current, nodes: { current: 1, next: 0 } });
    const during = await shown();
    expect(during.next.public_key).not.toBe(before.current.public_key);
    await eventually(() => shown(both[1])).toEqual(during);

    // Sessions under either succeed, on both.
    expect([await opens(b.id, b.control_psk), await opens(b.id, b.control_psk, both[1])]).toEqual([true, true]);
    const nextA = await candidate(a.id);
    expect(pinnedBy(nextA.control_psk)).toBe(during.next.public_key);
    // A candidate that nobody has proven does not count.
    const refused = await post('retire');
    expect(refused).toMatchObject({ status: 409, error: expect.stringContaining('22 nodes have') });
    expect(refused.error).toContain(`"n-1", "n-2", "n-3"`);
    expect(refused.error).toContain(`"n-20" and 2 more`);
    expect(refused.error).not.toContain('n-21');

    await connected(a.id, nextA.control_psk, both[1]);
    await streamA.status;
    expect(streamA.closeHeard()?.reason).toBe(SessionCloseReason.REVOKED);
    await Promise.all(others.map(({ id }) => issue(id)));
    await eventually(async () => (await shown()).nodes).toEqual({ current: 0, next: 1 });
    expect(await post('retire')).toMatchObject({ status: 409, error: expect.stringContaining('1 node has a PSK') });
    const streamB = await connected(b.id, b.control_psk, both[1]);
    await eventually(async () => (await shown(both[0])).nodes).toEqual({ current: 1, next: 1 });
    expect(await post('retire', { force: true })).toMatchObject({ status: 200 });
    await streamB.status;
    expect(streamB.closeHeard()?.reason).toBe(SessionCloseReason.REVOKED);
    for (const of of both) {
      expect(await opens(b.id, b.control_psk, of)).toBe(false);
      expect(await opens(a.id, nextA.control_psk, of)).toBe(true);
      expect(await joinOf(of.agents, clock, token.token)).toMatchObject({ kind: 'unknown' });
      await eventually(() => shown(of)).toEqual({ current: during.next, next: null, nodes: { current: 1, next: 0 } });
    }
    expect((await both[0].data('GET', `/api/join-tokens/${token.id}`)).expired).toBe(true);

    const [retired, rotated] = await entries('resource_type=service&resource_id=identity');
    expect(rotated).toMatchObject({
      action: 'service.rotate',
      resource: { type: 'service', id: 'identity' },
      revertible: false,
    });
    expect(retired).toMatchObject({
      action: 'service.retire',
      changes: [
        { path: 'current.public_key', before: before.current.public_key, after: during.next.public_key },
        { path: 'force', before: null, after: true },
      ],
    });
    expect(await entries(`resource_id=${token.id}&action=service.retire`)).toHaveLength(1);

    // A third instance, which starts now, reads the same keys from the log.
    const third = await startRest({ shared, tokenTtlSeconds: 400 * 86_400 }, clock);
    expect(await shown(third)).toEqual(await shown());
    expect([await opens(a.id, nextA.control_psk, third), await opens(b.id, b.control_psk, third)]).toEqual([
      true,
      false,
    ]);
    await third.close();

    // And again.
    expect(await post('rotate')).toMatchObject({ status: 200 });
    expect(pinnedBy((await issue(b.id)).control_psk)).toBe((await shown()).next.public_key);
  });

  test('is rotated and retired by admins alone', async () => {
    for (const verb of ['rotate', 'retire']) {
      expect((await both[0].call('POST', `${identity}/${verb}`, { role: 'operator' })).statusCode).toBe(403);
    }
    expect((await both[0].call('POST', `${identity}/retire`, { body: { forced: true } })).statusCode).toBe(400);
  });
});
