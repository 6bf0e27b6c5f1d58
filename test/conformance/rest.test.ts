/**
 * What only a process shows of REST: the first sign-in, the two seconds of `x-min-position`, that a kill loses no
 * idempotency key, and what a stop does to requests (`docs/contract/rest.md`). The sentences of that document are proven in `../rest`.
 */
import { randomUUID } from 'node:crypto';
import { connect } from 'node:net';
import { expect, it } from 'vitest';
import { prepareService } from '../../scripts/stack/service.js';
import { eventually } from '../support/eventually.js';
import { createMakerFor, lookingPaths, sessionPaths } from '../support/one-of-each.js';
import type { Document } from '../support/openapi-document.js';
import { attach, configRequest, enrol } from './support/agent.js';
import { createChain, createNode, deploy, rawHop, type ListOf } from './support/resources.js';
import { refused } from './support/rest.js';
import { adminPassword, sharedServiceOf } from './support/running.js';

const shared = sharedServiceOf(prepareService);

it('the first start makes an admin, who signs in with the password of the settings and no other', async () => {
  const { api } = shared;
  const { items } = await api.ok<ListOf<{ id: string }>>('GET', '/api/auth/users');
  expect(items).toMatchObject([{ username: 'admin', role: 'admin' }]);
  const made = await api.ok<ListOf<object>>('GET', `/api/audit?action=user.create&resource_id=${items[0]!.id}`);
  expect(made.items).toMatchObject([{ actor: { type: 'system' }, resource: { name: 'admin' }, revertible: false }]);
  const login = (json: object) => api.send('POST', '/api/auth/login', { json, token: null });
  expect((await login({ username: 'ADMIN', password: adminPassword })).status).toBe(200);
  refused(await login({ username: 'admin', password: 'a wrong password' }), 401);
  // The audit finds them by a name in any case.
  const signIns = '/api/audit?actor=Admin&action=session.sign_in';
  await eventually(async () => (await api.ok<ListOf<object>>('GET', signIns)).total).toBeGreaterThan(1);
});

it('a GET waits two seconds for a position that does not come', async () => {
  const { api } = shared;
  const made = await api.send<{ id: string }>('POST', '/api/nodes', { json: { name: 'waited for' } });
  const later = String(made.headers['x-position']).replace(/\d+$/, (digits) => String(Number(digits) + 1_000_000));
  const started = performance.now();
  refused(await api.send('GET', `/api/nodes/${made.data.id}`, { headers: { 'x-min-position': later } }), 503);
  expect(performance.now() - started).toBeGreaterThan(1_500);
});

it('every POST is answered as before when it is repeated after a kill of the service', async () => {
  const { api, service } = shared;
  const key = randomUUID();
  const entries = async (): Promise<number> => (await api.ok<ListOf<object>>('GET', '/api/audit')).total;
  const document = JSON.parse((await api.send('GET', '/openapi.json')).text) as Document;
  const maker = await createMakerFor(document, (method, path, given) => api.ok(method, path, given?.body));
  const sent = await Promise.all(
    maker.operations
      .filter(({ method, path }) => method === 'POST' && ![...sessionPaths, ...lookingPaths].includes(path))
      // Each step needs a rollout of its own, and only one of all nodes runs at a time: see test/rest/rollouts.test.ts.
      // A rotated identity is retired once no node needs it: test/rest/guided-rotation.test.ts has that.
      .filter(({ path }) => !path.startsWith('/api/rollouts/') && !path.startsWith('/api/service/identity/'))
      .map(async (post): Promise<{ readonly url: string; readonly body?: unknown }> =>
        post.path.includes('{') ? maker.onNew(post) : { url: post.path, body: maker.newBody(post.path) },
      ),
  );
  const send = ({ url, body }: (typeof sent)[number]) =>
    api.send<Record<string, unknown>>('POST', url, {
      headers: { 'idempotency-key': key },
      ...(body === undefined ? {} : { json: body }),
    });
  const first = await Promise.all(sent.map(send));
  expect(first.filter(({ status }) => status >= 300).map(({ error }) => error)).toEqual([]);
  const before = await entries();
  await service.kill();
  await service.start();
  for (const [index, one] of sent.entries()) {
    const [was, again] = [first[index]!, await send(one)];
    expect([one.url, again.status, again.headers.location]).toEqual([one.url, was.status, was.headers.location]);
    // The answer tells what a webhook has delivered meanwhile, and a ping is sent anew.
    if (one.url.startsWith('/api/webhooks')) continue;
    const secrets = ['control_psk', 'token', ...(one.url === '/api/join-tokens' ? ['command'] : [])];
    const once = Object.keys(was.data).filter((field) => secrets.includes(field));
    // Nodes that it changed are shown as they are now.
    const { nodes = null } = again.data;
    expect(again.data).toEqual({
      ...was.data,
      ...(nodes === null ? {} : { nodes }),
      ...Object.fromEntries(once.map((field) => [field, null])),
    });
  }
  expect(await entries()).toBe(before);
  expect(first.length).toBeGreaterThan(10);
});

it('a stop does not wait for a request that never ends, and completes one that does', async () => {
  const { api, service } = shared;
  const { hostname, port, host } = new URL(api.url);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => undefined);
  const half =
    `POST /api/nodes HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${api.token}\r\n` +
    'content-type: application/json\r\ncontent-length: 100\r\n\r\n{';
  await new Promise((resolve) => socket.write(half, resolve));
  const node = await createNode(api);
  const { link, control } = await attach(service.controlEndpoint, enrol(node.id, node.control_psk));
  control.say(configRequest());
  await control.snapshot();
  const chain = await createChain(api, { hops: [rawHop(node.id, 30_000)] });
  const waiting = deploy(api, chain, '?wait=applied&timeout_ms=30000');
  await control.snapshot();
  expect(await service.program().stop()).toBe(0);
  link.close();
  const { deployment } = await waiting;
  await service.start();
  const { items } = await api.ok<{ items: { id: string }[] }>('GET', `/api/l4-chains/${chain.id}/deployments`);
  expect(items.map(({ id }) => id)).toEqual([deployment.id]);
});
