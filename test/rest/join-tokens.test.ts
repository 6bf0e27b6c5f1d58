/** Join tokens over REST, and machines that join with them over the agent protocol (`docs/contract/joining.md#join-tokens`). */
import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { Role } from '../../src/domain/accounts/user.js';
import { SessionCloseReason } from '../../src/gen/svc/control/v1/session.js';
import { GrpcStatus } from '../../src/kernel/errors.js';
import { joinAddresses, joinCommand } from '../../src/transport/rest/join-command.js';
import { addressOf, joinOf, partsOf, rawMachine, tokenWith, type Machine } from '../support/machines.js';
import { createShiftedClock, type ShiftedClock } from '../support/agent-fixture.js';
import { eventually } from '../support/eventually.js';
import { createRawAgent, helloOf, isRefused, type Sayable } from '../support/raw-agent.js';
import { startRest, type JsonData, type RestFixture } from '../support/rest-fixture.js';

const path = '/api/join-tokens';
const hour = 3_600_000;

let rest: RestFixture;
let clock: ShiftedClock;
beforeAll(async () => {
  clock = createShiftedClock();
  rest = await startRest({ tokenTtlSeconds: 400 * 86_400, trustedProxies: ['127.0.0.0/8'] }, clock);
});
afterAll(() => rest.close());

let made = 0;
const make = (fields: object = {}, role: Role = 'operator'): Promise<JsonData> =>
  rest.data('POST', path, { role, body: { name: `token ${(made += 1)}`, ...fields } });
const get = (id: string): Promise<JsonData> => rest.data('GET', `${path}/${id}`, { role: 'viewer' });
const remove = (id: string): Promise<JsonData> => rest.data('DELETE', `${path}/${id}`, { role: 'operator' });
const enter = (token: string, machine?: Machine) => joinOf(rest.agents, clock, token, machine);
const nodesNamed = async (q: string): Promise<JsonData[]> =>
  (await rest.data('GET', `/api/nodes?q=${encodeURIComponent(q)}`)).items;
/** Whether a PSK opens a session. */
const opens = async (nodeId: string, psk: string): Promise<boolean> => {
  const agent = createRawAgent({ ...addressOf(rest.agents), clock }, nodeId, psk);
  const opened = !isRefused(await agent.open());
  agent.disconnect();
  return opened;
};

describe('a join token', () => {
  test('is shown once, with the line to paste, and read by viewers', async () => {
    const answer = await rest.call('POST', path, {
      role: 'operator',
      headers: { host: 'Gateway.example:8081', 'x-forwarded-proto': 'https' },
      body: { name: 'rack 7', uses: 20, expires_in_hours: 72, labels: { region: 'eu' }, name_prefix: 'edge-' },
    });
    const { token, command, ...created } = answer.json().data;
    expect([answer.statusCode, answer.headers['location'], answer.headers['cache-control']]).toEqual([
      201,
      `${path}/${created.id}`,
      'no-store',
    ]);
    expect(created).toMatchObject({
      name: 'rack 7',
      uses: 20,
      used: 0,
      expired: false,
      labels: { region: 'eu' },
      name_prefix: 'edge-',
      nodes: [],
      created_by: { name: 'operator' },
      version: 1,
    });
    const lives = Date.parse(created.expires_at) - Date.parse(created.created_at);
    expect(Math.round(lives / hour)).toBe(72);
    expect(token).toMatch(/^svcjoin1_[\w-]{107}$/);
    expect(partsOf(token).nodeId).toBe(`join:${created.id}`);
    const port = addressOf(rest.agents).port;
    expect(command).toBe(
      `curl -fsSL --retry 9 'https://gateway.example:8081/join.sh' | SVC_JOIN_TOKEN='${token}' sh -s -- --endpoint 'http://gateway.example:${port}'`,
    );
    expect(await get(created.id)).toEqual(created);
    const { items } = await rest.data('GET', `${path}?q=RACK&after=start`, { role: 'viewer' });
    expect(items).toEqual([created]);
    for (const [method, url, body] of [
      ['POST', path, { name: 'x' }],
      ['DELETE', `${path}/${created.id}`, undefined],
    ] as const) {
      expect((await rest.call(method, url, { role: 'viewer', body })).statusCode).toBe(403);
    }
    expect((await rest.call('PUT', `${path}/${created.id}`, { body: {}, undescribed: true })).statusCode).toBe(405);
    const [entry] = (await rest.data('GET', `/api/audit?resource_id=${created.id}`, { role: 'viewer' })).items;
    expect(entry).toMatchObject({ action: 'join_token.create', revertible: false });
    expect(entry.changes).toContainEqual({ path: 'token', before: null, after: '***' });
  });

  test.each([
    [{ uses: 0 }, 'uses'],
    [{ uses: 1001 }, 'uses'],
    [{ expires_in_hours: 8761 }, 'expires_in_hours'],
    [{ name: 'a\u0000' }, 'name'],
    [{ name_prefix: '\u202eedge' }, 'name_prefix'],
    [{ name_prefix: ' ' }, 'name_prefix'],
    [{ name_prefix: 'edge\t' }, 'name_prefix: expected no control characters'],
    [{ name_prefix: 'edge\n ' }, 'name_prefix: expected no control characters'],
    [{ labels: { 'a:b': 'c' } }, 'labels'],
    [{ made: 1 }, 'made'],
  ])('refuses %j by the name of the field', async (fields, field) => {
    const refused = await rest.call('POST', path, { body: { name: 'bad', ...fields } });
    expect([refused.statusCode, refused.json().error]).toEqual([400, expect.stringContaining(field)]);
  });

  test('is not made for a host that no line can name', async () => {
    for (const host of ["a'b", 'a b', '[fe80::1%eth0]', 'a/b', '1.2.3', 'example:0', 'user@example']) {
      const refused = await rest.call('POST', path, { body: { name: 'bad' }, headers: { host } });
      expect([host, refused.statusCode, refused.json().error]).toEqual([host, 400, expect.stringContaining('host')]);
    }
    expect((await rest.data('GET', `${path}?q=bad`)).total).toBe(0);
  });

  test.each([
    [
      { publicUrl: 'https://gateway.example' },
      'internal:81',
      true,
      "curl -fsSL --retry 9 'https://gateway.example/join.sh' | ",
    ],
    [{ publicUrl: 'http://gateway.example' }, 'localhost', true, 'SVC_JOIN_TOKEN='],
    [
      { publicUrl: 'https://gateway.example' },
      "it's",
      false,
      "SVC_JOIN_TOKEN='svcjoin1_' gateway-agent join --endpoint '",
    ],
    [{ publicUrl: "https://it's.example" }, 'x', true, "curl -fsSL --retry 9 'https://it'\\''s.example/join.sh' | "],
    [{ publicUrl: null }, 'LOCALHOST', true, "curl -fsSL --retry 9 'http://localhost/join.sh' | "],
    [{ publicUrl: null }, '[::1]:80', true, "curl -fsSL --retry 9 'http://[::1]/join.sh' | "],
  ])('with %j and the host %s, served: %s, begins with %s', (settings, host, isServed, begins) => {
    const addresses = joinAddresses(
      { protocol: 'http', headers: { host } },
      { ...settings, controlEndpoint: (of) => `http://${of}:8443` },
    );
    expect(joinCommand(addresses, 'svcjoin1_', isServed).slice(0, begins.length)).toBe(begins);
  });

  test('has a name that is free again when it has ended, and at most 100 live ones are there', async () => {
    const first = await make({ name: 'Twice', expires_in_hours: 1 });
    const taken = await rest.call('POST', path, { body: { name: 'twice' } });
    expect([taken.statusCode, taken.json().error]).toEqual([409, expect.stringContaining(first.id)]);
    clock.advance(hour);
    const second = await make({ name: 'twice', expires_in_hours: 1000 });
    expect(await get(first.id)).toMatchObject({ expired: true, version: 1 });
    // The name is the second's, whatever becomes of the first.
    await remove(first.id);
    expect((await rest.call('POST', path, { body: { name: 'twice' } })).statusCode).toBe(409);
    const live = (await rest.data('GET', `${path}?page_size=500`)).items.filter(
      ({ expired, used, uses }: JsonData) => !expired && used < uses,
    ).length;
    const others = await Promise.all(Array.from({ length: 100 - live }, () => make()));
    const full = await rest.call('POST', path, { body: { name: 'one more' } });
    expect([full.statusCode, full.json().error]).toEqual([409, expect.stringContaining('at most 100')]);
    await Promise.all(others.map(({ id }) => remove(id)));
    await remove(second.id);
  });

  test('is listed for 30 days after its end, and then forgotten', async () => {
    const { id } = await make({ expires_in_hours: 1 });
    clock.advance(hour + 29 * 24 * hour);
    expect(await get(id)).toMatchObject({ expired: true });
    clock.advance(24 * hour);
    expect((await rest.call('GET', `${path}/${id}`)).statusCode).toBe(404);
    await make({ expires_in_hours: 1 });
    const forgotten = (await rest.log()).filter(({ type }) => type === 'JoinTokenForgotten');
    expect(forgotten.map(({ data }) => data['join_token_id'])).toContain(id);
    expect((await rest.data('GET', path)).items.map((token: JsonData) => token.id)).not.toContain(id);
  });
});

describe('a machine', () => {
  test('becomes a node, which names the token in the audit as the token names the node', async () => {
    const token = await make({ uses: 2, labels: { region: 'eu' }, name_prefix: 'edge-' });
    const joined = await enter(token.token, { name: 'fra-1' });
    expect(joined).toMatchObject({ kind: 'joined', node_name: 'edge-fra-1' });
    if (joined.kind !== 'joined') return;
    const node = await rest.data('GET', `/api/nodes/${joined.node_id}`);
    expect(node).toMatchObject({ name: 'edge-fra-1', labels: { region: 'eu' }, address: null, status: 'pending' });
    expect(await opens(joined.node_id, joined.control_psk)).toBe(true);
    expect(await get(token.id)).toMatchObject({
      used: 1,
      version: 2,
      nodes: [{ id: joined.node_id, name: 'edge-fra-1', joined_at: node.created_at }],
    });
    const [entry] = (await rest.data('GET', `/api/audit?resource_id=${joined.node_id}`, { role: 'viewer' })).items;
    expect(entry).toMatchObject({
      action: 'node.create',
      actor: { type: 'system', id: null, name: 'join' },
      token: { id: token.id, name: token.name },
      revertible: true,
    });
    const about = (await rest.data('GET', `/api/audit?resource_id=${token.id}`)).items;
    expect(about.map(({ action }: JsonData) => action)).toEqual(['node.create', 'join_token.create']);
    await rest.data('PUT', `/api/nodes/${joined.node_id}`, { body: { name: 'renamed' } });
    expect((await get(token.id)).nodes[0].name).toBe('renamed');
    await rest.data('PUT', `/api/nodes/${joined.node_id}`, { body: { name: 'edge-fra-1' } });
    const edits = (await rest.data('GET', `/api/audit?resource_id=${joined.node_id}&action=node.update`)).items;
    for (const { id } of edits) await rest.data('POST', `/api/audit/${id}/revert`);
    expect((await rest.data('POST', `/api/audit/${entry.id}/revert`)).action).toBe('node.revert');
    expect((await rest.call('GET', `/api/nodes/${joined.node_id}`)).statusCode).toBe(404);
    expect(await get(token.id)).toMatchObject({ used: 1, version: 2, nodes: [{ name: 'edge-fra-1' }] });
  });

  test('gets a name that fits and that nobody has', async () => {
    const { token } = await make({ uses: 1000 });
    const named = async (name: string): Promise<string> => {
      const joined = await enter(token, { name });
      return joined.kind === 'joined' ? joined.node_name : joined.message;
    };
    expect(await named(' a\u0007b\u202ec ')).toBe('a-b-c');
    expect(await named('A-B-C')).toBe('A-B-C-2');
    expect(await named('a-b-c')).toBe('a-b-c-3');
    expect(await named('\u00a0\u200b')).toBe('node');
    expect(await named('')).toBe('node-2');
    expect(await named('é'.repeat(300))).toBe('é'.repeat(128));
    expect(await named('e\u0301'.repeat(300))).toBe(`${'é'.repeat(126)}-2`);
    const long = await make({ uses: 2, name_prefix: 'p'.repeat(128) });
    const both = [await enter(long.token), await enter(long.token)];
    expect(both).toMatchObject([{ node_name: 'p'.repeat(128) }, { node_name: `${'p'.repeat(126)}-2` }]);
  });

  test('that lost the answer gets the same node and another PSK, until the node has connected', async () => {
    const token = await make();
    const requestId = randomBytes(16);
    const first = await enter(token.token, { requestId, name: 'lost' });
    const again = await enter(token.token, { requestId, name: 'another name' });
    if (first.kind !== 'joined' || again.kind !== 'joined') throw new Error(JSON.stringify([first, again]));
    expect(again).toMatchObject({ node_id: first.node_id, node_name: 'lost' });
    expect(await opens(first.node_id, first.control_psk)).toBe(false);
    expect(await opens(again.node_id, again.control_psk)).toBe(true);
    expect(await get(token.id)).toMatchObject({ used: 1, uses: 1, version: 2 });
    const [entry] = (await rest.data('GET', `/api/audit?resource_id=${first.node_id}`)).items;
    expect(entry).toMatchObject({ action: 'node.psk', token: { id: token.id }, revertible: false });
    // Another machine, with the same token, is too late.
    expect(await enter(token.token)).toEqual({ kind: 'refused', message: expect.stringContaining('used up') });

    const agent = createRawAgent({ ...addressOf(rest.agents), clock }, again.node_id, again.control_psk);
    await agent.connect();
    await eventually(async () => (await rest.data('GET', `/api/nodes/${again.node_id}`)).status).toBe('online');
    const late = await enter(token.token, { requestId });
    expect(late).toEqual({ kind: 'refused', message: expect.stringContaining('has connected since') });
    agent.disconnect();
    expect(await nodesNamed('lost')).toHaveLength(1);
  });

  test('whose node was deleted, even if it was restored, makes no second one', async () => {
    const { token } = await make({ uses: 5 });
    const requestId = randomBytes(16);
    const joined = await enter(token, { requestId, name: 'gone' });
    if (joined.kind !== 'joined') throw new Error(joined.message);
    await rest.data('DELETE', `/api/nodes/${joined.node_id}`);
    const refused = { kind: 'refused', message: expect.stringContaining('was deleted') };
    expect(await enter(token, { requestId })).toEqual(refused);
    const [entry] = (await rest.data('GET', `/api/audit?resource_id=${joined.node_id}&action=node.delete`)).items;
    await rest.data('POST', `/api/audit/${entry.id}/revert`);
    expect(await enter(token, { requestId })).toEqual(refused);
    expect(await nodesNamed('gone')).toHaveLength(1);
  });

  test('that asks twice at once gets one node', async () => {
    const token = await make({ uses: 5 });
    const requestId = randomBytes(16);
    const outcomes = await Promise.all([1, 2, 3].map(() => enter(token.token, { requestId, name: 'twin' })));
    expect(new Set(outcomes.map((one) => (one.kind === 'joined' ? one.node_id : one.message))).size).toBe(1);
    expect((await get(token.id)).used).toBe(1);
  });

  test('is told nothing about a token that is wrong, unknown, expired or deleted', async () => {
    const token = await make({ expires_in_hours: 1 });
    const unknown = { kind: 'unknown' };
    expect(await enter(tokenWith(token.token, { secret: randomBytes(32) }))).toMatchObject(unknown);
    expect(await enter(tokenWith(token.token, { id: randomUUID() }))).toMatchObject(unknown);
    const guess = rawMachine(rest.agents, clock, token.token, randomBytes(32));
    const stranger = rawMachine(rest.agents, clock, tokenWith(token.token, { id: randomUUID() }));
    const answers = [await guess.open(), await stranger.open()];
    clock.advance(hour);
    expect(await enter(token.token)).toMatchObject(unknown);
    const expired = rawMachine(rest.agents, clock, token.token);
    answers.push(await expired.open());
    const other = await make();
    await remove(other.id);
    expect(await enter(other.token)).toMatchObject(unknown);
    const deleted = rawMachine(rest.agents, clock, other.token);
    answers.push(await deleted.open());
    for (const machine of [guess, stranger, expired, deleted]) machine.disconnect();
    for (const answer of answers) {
      expect(answer).toMatchObject({ code: GrpcStatus.UNAUTHENTICATED, details: 'session refused' });
    }
    expect(await enter('svcjoin1_nonsense')).toEqual({
      kind: 'refused',
      message: expect.stringContaining('join token'),
    });
  });

  test('may not replay what another one said', async () => {
    const { token } = await make({ uses: 2 });
    const machine = rawMachine(rest.agents, clock, token);
    const opened = await machine.session();
    expect(await machine.open({ handshake: opened.handshake })).toMatchObject({ code: GrpcStatus.UNAUTHENTICATED });
    machine.disconnect();
  });

  test('of a token that is deleted under way is turned away before it asks', async () => {
    const token = await make();
    const machine = rawMachine(rest.agents, clock, token.token);
    const [waiting, attached] = [await machine.session(), await machine.session()];
    const stream = machine.attach(attached);
    // A first fragment of a message proves the session.
    stream.sayFragment(Buffer.concat([Buffer.of(1), Buffer.alloc(16 * 1024)]));
    await eventually(async () => (await rest.call('GET', '/metrics')).body).toMatch(/svc_agent_sessions [1-9]/);
    await remove(token.id);
    expect((await stream.status).code).toBe(GrpcStatus.PERMISSION_DENIED);
    expect(stream.closeHeard()?.reason).toBe(SessionCloseReason.REVOKED);
    machine.disconnect();
    const late = rawMachine(rest.agents, clock, token.token);
    const lost = late.attach(waiting);
    lost.say(requestOf());
    expect((await lost.status).code).toBe(GrpcStatus.UNAUTHENTICATED);
    late.disconnect();
  });
});

const requestOf = (requestId = randomBytes(16), name = 'raw'): Sayable => ({
  $case: 'join',
  value: { requestId, name },
});

describe('the session of a join token', () => {
  /** Says payloads on a session of its own. @returns how it ended, and what was said before the end */
  async function said(...payloads: readonly Sayable[]) {
    const { token } = await make({ uses: 5 });
    const machine = rawMachine(rest.agents, clock, token);
    const stream = machine.attach(await machine.session());
    for (const payload of payloads) stream.say(payload);
    const { code } = await stream.status;
    machine.disconnect();
    return { code, reason: stream.closeHeard()?.reason, message: stream.closeHeard()?.message, heard: stream.heard };
  }
  const { PROTOCOL_ERROR, NORMAL, REVOKED } = SessionCloseReason;

  test('ends with NORMAL after the grant', async () => {
    const ended = await said(requestOf(randomBytes(16), 'ended'));
    expect(ended).toMatchObject({ code: GrpcStatus.OK, reason: NORMAL });
    expect(ended.heard.map(({ $case }) => $case)).toEqual(['joinGrant', 'close']);
  });

  test('takes a JoinRequest and nothing else', async () => {
    const outOfOrder = { code: GrpcStatus.FAILED_PRECONDITION, reason: PROTOCOL_ERROR };
    expect(await said(helloOf())).toMatchObject(outOfOrder);
    expect(await said(requestOf(), requestOf())).toMatchObject(outOfOrder);
    const close = { $case: 'close', value: { reason: NORMAL, message: '', retryAfterMs: 0 } } as const;
    expect(await said(close)).toMatchObject({ code: GrpcStatus.OK, reason: undefined });
    const malformed = { code: GrpcStatus.INVALID_ARGUMENT, reason: PROTOCOL_ERROR };
    expect(await said(requestOf(randomBytes(15)))).toMatchObject(malformed);
    expect(await said(requestOf(randomBytes(16), 'n'.repeat(1025)))).toMatchObject(malformed);
  });

  test('is no session of a node: no presence, no facts, and a JoinRequest on one is out of order', async () => {
    const before = (await rest.log('svc-agents-00')).length;
    const { token } = await make();
    const joined = await enter(token);
    if (joined.kind !== 'joined') throw new Error(joined.message);
    expect((await rest.log('svc-agents-00')).length).toBe(before);
    const agent = createRawAgent({ ...addressOf(rest.agents), clock }, joined.node_id, joined.control_psk);
    for (const greet of [true, false]) {
      const stream = agent.attach(await agent.session());
      if (greet) stream.say(helloOf());
      stream.say(requestOf());
      expect((await stream.status).code).toBe(GrpcStatus.FAILED_PRECONDITION);
      expect(stream.closeHeard()?.reason).toBe(PROTOCOL_ERROR);
    }
    agent.disconnect();
  });

  test('of a token that is used up ends with REVOKED and a sentence', async () => {
    const { token } = await make();
    await enter(token);
    const machine = rawMachine(rest.agents, clock, token);
    const stream = machine.attach(await machine.session());
    stream.say(requestOf());
    expect((await stream.status).code).toBe(GrpcStatus.PERMISSION_DENIED);
    expect(stream.closeHeard()).toMatchObject({ reason: REVOKED, message: expect.stringContaining('used up') });
    machine.disconnect();
  });

  test('may wait beside any number of others, 50 of which a second may open', async () => {
    const { token } = await make({ uses: 1000 });
    const machine = rawMachine(rest.agents, clock, token);
    const opened = await Promise.all(Array.from({ length: 5 }, () => machine.session()));
    const [first] = opened;
    const stream = machine.attach(first!);
    stream.say(requestOf());
    expect((await stream.status).code).toBe(GrpcStatus.OK);
    // Time stands still, so that a slow machine does not win back what it uses.
    const still = vi.spyOn(clock, 'monotonic').mockReturnValue(clock.monotonic());
    let refused = 0;
    for (let tries = 0; tries < 300 && refused === 0; tries += 50) {
      const answers = await Promise.all(Array.from({ length: 50 }, () => machine.open()));
      refused += answers.filter((answer) => isRefused(answer) && answer.code === GrpcStatus.RESOURCE_EXHAUSTED).length;
    }
    still.mockRestore();
    expect(refused).toBeGreaterThan(0);
    machine.disconnect();
  });
});

describe("an admin's reset of a password", () => {
  test('deletes the join tokens that the person made, first those', async () => {
    const own = [await make(), await make()];
    const other = await make({}, 'admin');
    const { id } = await rest.data('GET', '/api/auth/me', { role: 'operator' });
    const listed = (await rest.data('GET', `${path}?page_size=500`)).items.filter(
      ({ created_by }: JsonData) => created_by.id === id,
    ).length;
    const reset = await rest.data('PUT', `/api/auth/users/${id}/password`, {
      body: { new_password: 'correct horse battery' },
    });
    expect(reset).toMatchObject({ id, username: 'operator' });
    expect(reset.join_tokens_deleted).toBeGreaterThanOrEqual(listed);
    for (const { token } of own) expect(await enter(token)).toMatchObject({ kind: 'unknown' });
    expect(await enter(other.token)).toMatchObject({ kind: 'joined' });
    const deleted = (await rest.data('GET', '/api/audit?action=join_token.delete&page_size=500')).items;
    expect(deleted.slice(0, 2).map(({ actor }: JsonData) => actor.name)).toEqual(['admin', 'admin']);
    expect(deleted[0]).toMatchObject({
      revertible: false,
      not_revertible_because: expect.stringContaining('not stored'),
    });
  });
});

test('neither token nor PSK is in the log, the audit, a list or what the service logs', async () => {
  const token = await make({ uses: 3 }, 'admin');
  const joined = await enter(token.token, { name: 'secretive' });
  if (joined.kind !== 'joined') throw new Error(joined.message);
  const { secret } = partsOf(token.token);
  const written = [
    JSON.stringify(await rest.log()),
    rest.logged.join('\n'),
    (await rest.call('GET', '/api/audit?page_size=500')).body,
    (await rest.call('GET', path)).body,
    (await rest.call('GET', '/api/fleet/export')).body,
    (await rest.call('GET', '/api/events?after=start&page_size=1000')).body,
  ].join('\n');
  for (const text of [token.token, secret.toString('base64url'), secret.toString('hex'), joined.control_psk]) {
    expect(written).not.toContain(text);
  }
  expect((await rest.call('GET', '/api/fleet/export')).body).not.toContain(token.name);
});
