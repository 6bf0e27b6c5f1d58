/**
 * The whole service, in this process, through its main job and what goes wrong around it: what its log says of it, that no
 * secret is in the log, and that every metric moves. `docs/reference/log.md` and `docs/how-to/monitor.md`.
 */
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startApp, type RunningApp } from '../../src/app/app.js';
import { readConfig } from '../../src/app/config/config.js';
import { ConfigApplyStatus } from '../../src/gen/svc/control/v1/config.js';
import { systemClock } from '../../src/kernel/clock.js';
import { createServiceLog } from '../../src/instance/service-log.js';
import { issue } from '../support/x509.js';
import { eventually } from '../support/eventually.js';
import { configRequestOf, createRawAgent, isRefused, type RawAgent } from '../support/raw-agent.js';

type Line = { readonly [field: string]: unknown };
type Data = Record<string, unknown>;

const metricsToken = `metrics-${randomBytes(12).toString('hex')}`;
const adminPassword = `admin ${randomBytes(12).toString('hex')}`;
/** Everything that must not be in the log. */
const secrets: string[] = [metricsToken, adminPassword];
const secret = (kind: string): string => {
  const made = `${kind}-${randomBytes(12).toString('hex')}`;
  secrets.push(made);
  return made;
};

const folder = mkdtempSync(join(tmpdir(), 'observability-'));
let app: RunningApp;
let text = '';
let token = '';
const agents: RawAgent[] = [];

beforeAll(async () => {
  const config = readConfig({
    SVC_HTTP_LISTEN_ADDR: '127.0.0.1:0',
    SVC_REALITY_LISTEN_ADDR: '127.0.0.1:0',
    SVC_DATA_DIR: folder,
    SVC_ADMIN_PASSWORD: adminPassword,
    SVC_METRICS_TOKEN: metricsToken,
  });
  // The debug lines, which only an operator in search of a fault sees, are checked as well.
  const log = createServiceLog('debug', { write: (line) => void (text += line) });
  app = await startApp(config, log, (sentence) => expect.unreachable(sentence));
  secrets.push(readFileSync(join(folder, 'master.key'), 'utf8').trim());
});
afterAll(async () => {
  for (const agent of agents) agent.disconnect();
  await app.close();
  rmSync(folder, { recursive: true });
});

const lines = (message: string): readonly Line[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Line)
    .filter(({ msg }) => msg === message);

async function send(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
  const answer = await fetch(`${app.url}${path}`, {
    method,
    headers: {
      ...(token === '' ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    signal: AbortSignal.timeout(30_000),
  });
  return { status: answer.status, text: await answer.text() };
}
async function call<T = Data>(method: string, path: string, body?: unknown): Promise<T> {
  const answer = await send(method, path, body);
  const parsed = JSON.parse(answer.text) as { data: T; error: string | null };
  if (parsed.error !== null) throw new Error(`${method} ${path}: ${parsed.error}`);
  return parsed.data;
}
async function signIn(username: string, password: string): Promise<string> {
  const signedIn = await call<{ token: string }>('POST', '/api/auth/login', { username, password });
  secrets.push(signedIn.token, ...signedIn.token.split('.').slice(1));
  return signedIn.token;
}
function agentOf(nodeId: string, psk: string): RawAgent {
  const { hostname, port } = new URL(`tcp://${app.agents}`);
  const agent = createRawAgent({ host: hostname, port: Number(port), clock: systemClock }, nodeId, psk);
  agents.push(agent);
  return agent;
}

/** All samples of `/metrics`, by name with labels. */
async function metrics(): Promise<ReadonlyMap<string, number>> {
  const answer = await send('GET', '/metrics', undefined, { authorization: `Bearer ${metricsToken}` });
  return new Map(
    answer.text
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
  );
}

let node: { readonly id: string; readonly control_psk: string };
let before: ReadonlyMap<string, number>;

test('the main job: sign in, nodes, credentials, a chain, an agent that applies, rejects and applies again', async () => {
  before = await metrics();
  token = await signIn('admin', adminPassword);
  node = await call('POST', '/api/nodes', { name: 'edge', address: '192.0.2.1' });
  secrets.push(node.control_psk, node.control_psk.slice('svcpsk1_'.length));
  const upstream = await call<{ id: string }>('POST', '/api/l4-upstreams', { name: 'web', endpoint: '192.0.2.9:80' });
  const raw = randomBytes(32).toString('base64url');
  secrets.push(raw);
  await call('POST', '/api/credentials', { name: 'key', key_type: 'x25519', private_key: raw });
  const issued = await issue({ names: ['edge.example'] });
  secrets.push(...issued.key.split('\n').filter((line) => line.length > 20 && !line.startsWith('-')));
  const certificate = await call<{ id: string }>('POST', '/api/credentials', {
    name: 'certificate',
    key_type: 'tls_cert',
    certificate_pem: issued.cert,
    private_key_pem: issued.key,
  });

  const stream = await agentOf(node.id, node.control_psk).connect({ agentVersion: 'test/1' });
  stream.say(configRequestOf(0n));
  await eventually(() => stream.generationsHeard().length).toBe(1);
  const answer = (status: ConfigApplyStatus, place: number): void => {
    const update = stream.heard.flatMap((payload) =>
      payload.$case === 'configUpdate' && payload.value.update?.$case === 'snapshot'
        ? [payload.value.update.value]
        : [],
    )[place];
    if (update === undefined) throw new RangeError(`there is no snapshot ${place}`);
    const { generation, checksum } = update;
    const message = secret('words-of-an-agent');
    const errors =
      status === ConfigApplyStatus.REJECTED
        ? [{ resourceType: 'l4_chain', resourceId: node.id, path: 'hops[0].listen_port', message }]
        : [];
    stream.say({ $case: 'applyReport', value: { generation, checksum, status, errors, durationMs: 1n } });
  };
  answer(ConfigApplyStatus.APPLIED, 0);
  const chain = await call<{ id: string }>('POST', '/api/l4-chains', {
    name: 'chain',
    payload: 'tcp',
    hops: [{ node_id: node.id, listen_port: 9000, outer: 'tcp', security: 'tls', credential_id: certificate.id }],
    target: { upstream_id: upstream.id },
  });
  await call('POST', `/api/l4-chains/${chain.id}/deploy`);
  await eventually(() => stream.generationsHeard().length).toBe(2);
  answer(ConfigApplyStatus.REJECTED, 1);
  const state = async () => (await call<{ apply: { state: string } }>('GET', `/api/nodes/${node.id}`)).apply.state;
  await eventually(state).toBe('rejected');
  await call('PUT', `/api/l4-upstreams/${upstream.id}`, { endpoint: '192.0.2.10:80' });
  await eventually(() => stream.generationsHeard().length).toBe(3);
  answer(ConfigApplyStatus.APPLIED, 2);
  await eventually(state).toBe('applied');
  await call('PUT', `/api/l4-upstreams/${upstream.id}`, { endpoint: '192.0.2.10:80' });

  // A second session of the node takes the place of the first; then its PSK is replaced.
  const second = await agentOf(node.id, node.control_psk).connect();
  second.say(configRequestOf(0n));
  await eventually(() => second.generationsHeard().length).toBe(1);
  const replaced = await call<{ control_psk: string }>('POST', `/api/nodes/${node.id}/psk`);
  secrets.push(replaced.control_psk, replaced.control_psk.slice('svcpsk1_'.length));
  expect(isRefused(await agentOf(node.id, node.control_psk).open())).toBe(true);
});

test('wrong logins, password changes, and secrets in every wrong place are answered', async () => {
  const login = (username: string, password: string): unknown => ({ username, password });
  const admin = token;
  token = '';
  const status = async (...request: Parameters<typeof send>): Promise<number> => (await send(...request)).status;
  expect(await status('POST', '/api/auth/login', login('admin', secret('wrong-password')))).toBe(401);
  // A password in the field of the name, as people type it.
  expect(await status('POST', '/api/auth/login', login(secret('typed'), secret('wrong-password')))).toBe(401);
  expect(await status('POST', '/api/auth/login', `{"username": "admin", "password": "${secret('cut')}`)).toBe(400);
  expect(await status('POST', '/api/auth/login', { ...(login('admin', 'x') as Data), [secret('extra')]: 1 })).toBe(400);
  expect(await status('GET', '/api/nodes', undefined, { authorization: `Bearer ${secret('token')}` })).toBe(401);
  expect(await status('GET', '/metrics', undefined, { authorization: `Bearer ${secret('metrics')}` })).toBe(401);
  expect(await status('GET', `/api/nodes?token=${secret('query')}`)).toBe(401);
  token = admin;
  const [first, second] = [secret('password'), secret('password')];
  const user = { username: 'operator.one', password: first, role: 'operator', email: 'o@example.org' };
  await call('POST', '/api/auth/users', user);
  expect(await status('POST', '/api/auth/users', { ...user, password: secret('p').slice(0, 11) })).toBe(400);
  expect(await status('GET', `/api/nodes/${secret('path')}`)).toBe(404);
  expect(await status('GET', `/api/nodes?q=ok&${secret('name')}=${secret('query')}`)).toBe(400);
  expect(await status('PUT', `/api/nodes/${node.id}`, { control_psk: secret('psk') })).toBe(400);
  expect(await status('PUT', `/api/nodes/${node.id}`, { [secret('field')]: 1 })).toBe(400);
  expect(await status('PUT', `/api/nodes/${node.id}`, { labels: { [secret('label')]: 1 } })).toBe(400);
  expect(await status('POST', `/api/nodes/${node.id}/psk`, { [secret('field')]: 1 })).toBe(400);
  const twice = secret('twice');
  expect(await status('PUT', `/api/nodes/${node.id}`, `{"${twice}": 1, "${twice}": 2}`)).toBe(400);
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  secrets.push(...pem.split('\n').filter((line) => line.length > 20 && !line.startsWith('-')));
  const other = await issue({ names: ['other.example'] });
  const pair = { name: 'no-match', key_type: 'tls_cert', certificate_pem: other.cert, private_key_pem: pem };
  expect(await status('POST', '/api/credentials', pair)).toBe(400);
  const key = { name: 'bad', key_type: 'x25519', private_key: secret('private-key') };
  expect(await status('POST', '/api/credentials', key)).toBe(400);
  expect(await status('DELETE', '/api/nodes/ports')).toBe(405);

  token = await signIn('operator.one', first);
  const change = (current_password: string, new_password: string): Data => ({ current_password, new_password });
  expect(await status('PUT', '/api/auth/password', change(secret('wrong'), second))).toBe(400);
  const changed = await call<{ token: string }>('PUT', '/api/auth/password', change(first, second));
  secrets.push(changed.token, ...changed.token.split('.').slice(1));
  expect(await status('GET', '/api/auth/me')).toBe(401);
  token = changed.token;
  expect(await status('POST', '/api/auth/users', user)).toBe(403);
  token = admin;
});

describe('the log', () => {
  test('has no secret in it', () => {
    expect(secrets.length).toBeGreaterThan(30);
    expect(lines('request').length).toBeGreaterThan(15);
    expect(secrets.filter((one) => text.includes(one))).toEqual([]);
  });

  test('has a line for each request of the job and one for each change of a session, and they tell who and which', () => {
    const created = lines('request').find(({ path, method }) => path === '/api/nodes' && method === 'POST');
    expect(created).toMatchObject({ level: 'info', status: 201, user_id: expect.any(String), route: '/api/nodes' });
    const opened = lines('agent session opened');
    expect(opened).toHaveLength(2);
    expect(opened[0]).toMatchObject({ node_id: node.id, agent_version: 'test/1', address: '127.0.0.1' });
    const [first, second] = opened.map(({ session_id }) => session_id);
    expect(lines('agent session superseded')).toMatchObject([{ session_id: first, by_session_id: second }]);
    expect(lines('agent session closed')).toMatchObject([
      { session_id: first, cause: 'superseded' },
      { session_id: second, cause: 'revoked' },
    ]);
    const rejected = lines('a node rejected its configuration');
    expect(rejected).toMatchObject([{ level: 'warn', node_id: node.id, session_id: first, errors: 1 }]);
    expect(lines('a node applies configurations again')).toMatchObject([
      { node_id: node.id, session_id: first, rejected_generation: rejected[0]?.['generation'] },
    ]);
    expect(lines('a session was refused to an agent')).toMatchObject([{ reason: 'handshake_refused' }]);
  });

  test('names the same things by the same names, in words that are documented', () => {
    const documented = readFileSync(new URL('../../docs/reference/log.md', import.meta.url), 'utf8');
    const fields = new Set(
      ['request', 'request refused', 'agent session opened', 'agent session closed', 'agent session superseded']
        .flatMap(lines)
        .flatMap((line) => Object.keys(line)),
    );
    for (const field of ['level', 'time', 'msg']) fields.delete(field);
    expect(fields.size).toBeGreaterThan(10);
    expect([...fields].filter((field) => !documented.includes(`\`${field}\``))).toEqual([]);
  });
});

describe('the metrics', () => {
  test('of requests, commands, appends, sessions, pushes and stores have moved with the job', async () => {
    const pings = ['event store', 'read store'].map(
      (store) => `svc_store_ping_seconds_count{store="${store}",outcome="ok"}`,
    );
    let after = before;
    // The text is made once a second at most, and the stores are asked every few.
    await eventually(async () => {
      after = await metrics();
      return pings.every((name) => (after.get(name) ?? 0) > (before.get(name) ?? 0));
    }).toBe(true);
    const grown = (name: string): number => (after.get(name) ?? 0) - (before.get(name) ?? 0);
    const atLeast = (count: number, name: string): void => expect([name, grown(name) >= count]).toEqual([name, true]);
    atLeast(1, 'svc_rest_request_seconds_count{route="/api/nodes",method="POST",status="2xx"}');
    atLeast(1, 'svc_rest_request_seconds_bucket{le="+Inf",route="/api/nodes",method="POST",status="2xx"}');
    atLeast(1, 'svc_rest_request_seconds_count{route="/api/nodes/:id",method="GET",status="4xx"}');
    atLeast(4, 'svc_rest_refused_total{code="invalid_request"}');
    atLeast(2, 'svc_refusals_total{reason="rest_unauthenticated"}');
    for (const type of ['CreateNode', 'CreateUpstream', 'DeployChain', 'CreateUser']) {
      atLeast(1, `svc_commands_total{command="${type}",outcome="written"}`);
    }
    atLeast(1, 'svc_commands_total{command="UpdateUpstream",outcome="unchanged"}');
    atLeast(8, 'svc_command_seconds_count');
    for (const log of ['fleet', 'accounts', 'facts']) {
      atLeast(1, `svc_append_seconds_count{log="${log}",outcome="appended"}`);
      atLeast(1, `svc_append_events_total{log="${log}"}`);
    }
    atLeast(2, 'svc_agent_handshakes_total{outcome="ok"}');
    atLeast(1, 'svc_agent_handshakes_total{outcome="refused"}');
    atLeast(1, 'svc_agent_session_ends_total{cause="superseded"}');
    atLeast(2, 'svc_delivery_offered_total');
    atLeast(4, 'svc_agent_snapshots_total{outcome="offered"}');
    atLeast(4, 'svc_agent_snapshots_total{outcome="sent"}');
    atLeast(2, 'svc_delivery_reports_total{outcome="applied"}');
    atLeast(1, 'svc_delivery_reports_total{outcome="rejected"}');
    atLeast(2, 'svc_delivery_time_to_applied_seconds_count');
    for (const store of ['event store', 'read store']) {
      expect(after.get(`svc_store_up{store="${store}"}`)).toBe(1);
    }
    atLeast(1, 'svc_projection_position');
    for (const gauge of [
      'svc_projection_lag_seconds',
      'svc_projection_lag_positions',
      'nodejs_eventloop_lag_seconds',
    ]) {
      expect([gauge, after.has(gauge)]).toEqual([gauge, true]);
    }
  });

  test('have a help text, a type, one unit at the end of their names, and no label that a client chooses', async () => {
    const answer = await send('GET', '/metrics', undefined, { authorization: `Bearer ${metricsToken}` });
    const own = [...answer.text.matchAll(/^# HELP (svc_\w+) (.*)\n# TYPE (\w+) (\w+)$/gm)];
    expect(own.length).toBeGreaterThan(40);
    expect(new Set(own.map(([, name]) => name)).size).toBe(own.length);
    for (const [, name = '', help = '', same, type = ''] of own) {
      expect(same).toBe(name);
      expect([name, help.length > 10]).toEqual([name, true]);
      expect([name, name.endsWith('_total')]).toEqual([name, type === 'counter']);
      if (type === 'histogram') expect(name).toMatch(/_seconds$/);
    }
    const samples = answer.text.split('\n').filter((line) => line.startsWith('svc_'));
    expect(samples.filter((line) => line.includes(node.id))).toEqual([]);
    for (const one of secrets) expect(samples.filter((line) => line.includes(one))).toEqual([]);
  });
});
