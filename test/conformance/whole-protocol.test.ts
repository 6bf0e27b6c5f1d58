/**
 * One agent, written without the service's code, through everything that `docs/contract/agent-protocol.md` lets happen to
 * it, in one life: what each part says in detail is in the other files of this folder and in `../agent-protocol`.
 */
import { x25519 } from '@noble/curves/ed25519.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { prepareService, type ServiceProcess } from '../../scripts/stack/service.js';
import type { RuntimeConfigSnapshot } from '../../src/gen/svc/control/v1/config.js';
import type { RuntimeListener } from '../../src/gen/svc/control/v1/heartbeat.js';
import { SessionCloseReason } from '../../src/gen/svc/control/v1/session.js';
import { eventually } from '../support/eventually.js';
import {
  applied,
  closing,
  configRequest,
  connectAgent,
  enrol,
  fingerprint,
  heartbeat,
  hello,
  rejected,
  status,
  type Control,
  type Enrolment,
  type Link,
  type Said,
} from './support/agent.js';
import {
  createChain,
  createNode,
  deploy,
  port,
  rawHop,
  type Chain,
  type Deployment,
  type NodeData,
} from './support/resources.js';
import { startServiceOf, type Running } from './support/running.js';

let running: Running<ServiceProcess>;
let enrolment: Enrolment;
let node: { readonly id: string; readonly name: string };
let link: Link;
let control: Control;
let chain: Chain;
/** What the agent runs. */
let runs: RuntimeConfigSnapshot;
const links: Link[] = [];

const newLink = (): Link => {
  const made = connectAgent(running.service.controlEndpoint);
  links.push(made);
  return made;
};
const show = (): Promise<NodeData> => running.api.ok('GET', `/api/nodes/${enrolment.nodeId}`);
const shows = (want: object): Promise<void> => expect.poll(show, { timeout: 10_000, interval: 50 }).toMatchObject(want);

/** Opens a session on a new connection; hello, the last report, and the question for a configuration. */
async function connect(last?: Said): Promise<void> {
  link = newLink();
  control = link.control(await link.session(enrolment));
  greet(last);
}

function greet(last?: Said): void {
  control.say(hello({ nodeId: enrolment.nodeId, publicIpv4: '198.51.100.9', detectedAddresses: ['10.0.0.9', 'eth0'] }));
  if (last !== undefined) control.say(last);
  control.say(runs === undefined ? configRequest() : configRequest(runs.generation, runs.checksum));
}

async function apply(): Promise<void> {
  runs = await control.snapshot();
  control.say(applied(runs));
  await shows({ applied_generation: Number(runs.generation) });
}

const unchanged = async (): Promise<void> =>
  expect(await control.update()).toEqual({ $case: 'unchanged', value: { generation: runs.generation } });

beforeAll(async () => {
  running = await startServiceOf(prepareService, { SVC_CONTROL_REKEY_INTERVAL_SECS: '3600' });
  const created = await createNode(running.api);
  node = created;
  enrolment = enrol(created.id, created.control_psk);
  chain = await createChain(running.api, { hops: [rawHop(created.id, port())] });
});

afterAll(async () => {
  for (const each of links) each.close();
  await running.close();
});

describe('an agent that shares no code with the service', () => {
  it('opens its first session after it has learned the time, and gets and applies its configuration', async () => {
    link = newLink();
    const off = 10 * 60_000;
    const { ended, session } = await link.open(enrolment, { timestampMs: Date.now() - off });
    expect([ended.code, session]).toEqual([status.FAILED_PRECONDITION, undefined]);
    const serverTime = Number(ended.trailers['server-time-ms']);
    expect(Math.abs(serverTime - Date.now())).toBeLessThan(10_000);
    const offset = serverTime - (Date.now() - off);
    const again = await link.open(enrolment, { timestampMs: Date.now() - off + offset });
    expect(again.session!.grant.rekeyAfterSecs).toBe(3600);
    control = link.control(again.session!);
    greet();
    await apply();
    await shows({ status: 'online', public_ipv4: '198.51.100.9', detected_addresses: ['10.0.0.9'] });
  });

  it('gets a change as one whole snapshot, in fragments when it is large, and says so', async () => {
    await deploy(running.api, chain);
    await apply();
    expect(runs.gateway!.tcpProxyRules.map(({ ruleId }) => ruleId)).toEqual([`${chain.id}/0`]);
    for (let i = 0; i < 8; i += 1) {
      const listen = port();
      const label = 'a'.repeat(60);
      const names = Array.from({ length: 64 }, (_, k) => `${label}.${label}.${label}.n${k}-of-${listen}.example`);
      const many = await createChain(running.api, { hops: [rawHop(node.id, listen, { server_names: names })] });
      await deploy(running.api, many);
    }
    // Of pushes that come while one is being sent, only the newest is sent.
    while (runs.gateway!.tcpProxyRules.length < 9) runs = await control.snapshot();
    control.say(applied(runs));
    await shows({ applied_generation: Number(runs.generation) });
    expect(control.fragments.at(-1)).toBeGreaterThan(1);
  });

  it('reads slowly: it gets the snapshot that was on its way and the newest, not those between', async () => {
    control.stream.pause();
    let newest = 0;
    for (let i = 0; i < 8; i += 1) {
      await running.api.ok('PUT', `/api/l4-chains/${chain.id}`, { target: { endpoint: `192.0.2.1:${100 + i}` } });
      newest = (await deploy(running.api, chain)).deployment.nodes[0]!.generation;
    }
    control.stream.resume();
    const got: number[] = [];
    while (got.at(-1) !== newest) {
      runs = await control.snapshot();
      got.push(Number(runs.generation));
    }
    expect(got).toEqual(got.toSorted((a, b) => a - b));
    expect(got.length).toBeLessThan(5);
    control.say(applied(runs));
    await shows({ applied_generation: newest });
  });

  it('rejects one: resource and field are shown on its node, its deployment and the dashboard, and it keeps what it runs', async () => {
    await running.api.ok('PUT', `/api/l4-chains/${chain.id}`, { target: { endpoint: '192.0.2.1:66' } });
    await deploy(running.api, chain);
    const bad = await control.snapshot();
    const error = { resourceType: 'l4_chain', resourceId: chain.id, path: 'hops[0].listen_port', message: 'in use' };
    control.say(rejected(bad, [error]));
    const errors = [
      { resource_type: 'l4_chain', resource_id: chain.id, path: 'hops[0].listen_port', message: 'in use' },
    ];
    await shows({
      generation: Number(bad.generation),
      applied_generation: Number(runs.generation),
      apply: { state: 'rejected', generation: Number(bad.generation), errors },
    });
    const { items } = await running.api.ok<{ items: Deployment[] }>('GET', `/api/l4-chains/${chain.id}/deployments`);
    expect(items[0]!.nodes).toEqual([
      { node_id: node.id, generation: Number(bad.generation), state: 'rejected', errors, listeners: null },
    ]);
    await eventually(() => running.api.ok('GET', '/api/dashboard/stats')).toMatchObject({
      nodes: { rejected: 1, converged: 0 },
    });
    control.say(configRequest());
    expect(await control.snapshot()).toEqual(runs);
    // On the next session as well, with the report as it was.
    link.close();
    await connect(rejected(bad, [error]));
    await unchanged();
    await running.api.ok('POST', `/api/nodes/${node.id}/config`);
    await apply();
    await shows({ apply: { state: 'applied', errors: [] } });
  });

  it('rejects what it had applied, as a process that cannot open a port any more: no figure calls it converged', async () => {
    const figures = () => running.api.ok('GET', '/api/dashboard/stats');
    await eventually(figures).toMatchObject({ nodes: { rejected: 0, converged: 1 } });
    control.say(rejected(runs, []));
    await shows({ applied_generation: Number(runs.generation), apply: { state: 'rejected' } });
    await eventually(figures).toMatchObject({ nodes: { rejected: 1, converged: 0 } });
    control.say(applied(runs));
    await shows({ apply: { state: 'applied' } });
    await eventually(figures).toMatchObject({ nodes: { rejected: 0, converged: 1 } });
  });

  it('sends a heartbeat in many fragments, and gets its commands with the answers, oldest first, sixteen at most, once', async () => {
    const path = `/api/nodes/${node.id}/commands`;
    const commands = Array.from({ length: 18 }, (_, index) => (index % 3 === 0 ? 'RELOAD_CONFIG' : 'RESTART_PINGORA'));
    for (const command of commands) await running.api.ok('POST', path, { command });
    const listeners = Array.from({ length: 2_000 }, (_, index): RuntimeListener => ({
      transport: 'tcp',
      listenAddr: '0.0.0.0',
      listenPort: 10_000 + index,
      state: 'running',
      routes: [],
      bytesIn: 1n,
      bytesOut: 2n,
      activeSessions: 0n,
      totalSessions: 3n,
      errorSessions: undefined,
    }));
    control.say(heartbeat(7n, { cpuUsage: 0.5, runtimeListeners: listeners }));
    const first = await control.heartbeatResponse();
    expect(first).toMatchObject({ ok: true, ackSequence: 7n, heartbeatIntervalSecs: 10, metricsIntervalSecs: 60 });
    expect(first.commands).toEqual(commands.slice(0, 16).map((command) => (command === 'RELOAD_CONFIG' ? 1 : 2)));
    control.say(heartbeat(8n));
    expect((await control.heartbeatResponse()).commands).toEqual([2, 2]);
    // The number of a heartbeat is the agent's own.
    control.say(heartbeat(1n));
    expect(await control.heartbeatResponse()).toMatchObject({ ackSequence: 1n, commands: [] });
    await shows({ cpu_usage: 0 });
    control.say({
      $case: 'metrics',
      value: { sequence: 1n, timestamp: undefined, connections: undefined, bandwidth: undefined, gateway: undefined },
    });
    await control.silence(200);
  });

  it('replaces its session by rekeys, on its connection and on another one, and is never superseded', async () => {
    for (const another of [false, true, false]) {
      const next = another ? newLink() : link;
      const session = await next.session(enrolment);
      control.say(closing(SessionCloseReason.REKEY));
      expect(await control.ended()).toMatchObject({ code: status.OK, close: undefined });
      control = next.control(session);
      link = next;
      greet(applied(runs));
      await unchanged();
    }
    await shows({ status: 'online', duplicate_agent: false, generation: Number(runs.generation) });
  });

  it('is superseded by a newer session of its node, and comes back', async () => {
    const old = control;
    await connect(applied(runs));
    expect(await old.ended()).toMatchObject({
      code: status.ABORTED,
      close: { reason: SessionCloseReason.SUPERSEDED },
    });
    await unchanged();
  });

  it('is ended for a protocol error, with a reason that only the service can have sent', async () => {
    control.say(hello());
    expect(await control.ended()).toMatchObject({
      code: status.FAILED_PRECONDITION,
      close: { reason: SessionCloseReason.PROTOCOL_ERROR, message: 'a second hello' },
    });
    await connect(applied(runs));
    await unchanged();
  });

  it('is revoked when its PSK is replaced: the old one opens nothing, with the new one it goes on', async () => {
    const reset = await running.api.ok<{ control_psk: string; sessions_ended: boolean }>(
      'POST',
      `/api/nodes/${node.id}/psk`,
    );
    expect(reset.sessions_ended).toBe(true);
    expect(await control.ended()).toMatchObject({
      code: status.PERMISSION_DENIED,
      close: { reason: SessionCloseReason.REVOKED },
    });
    await eventually(() => link.http2.destroyed).toBe(true);
    expect((await newLink().open(enrolment)).ended.code).toBe(status.UNAUTHENTICATED);
    enrolment = enrol(node.id, reset.control_psk);
    await connect(applied(runs));
    await unchanged();
    await shows({ status: 'online', psk_fingerprint: fingerprint(x25519.getPublicKey(enrolment.staticPrivate)) });
  });

  it('is told when the instance stops, when to come back, and finds everything as it was', async () => {
    const stopped = running.service.program().stop();
    const end = await control.ended();
    expect(end).toMatchObject({ code: status.UNAVAILABLE, close: { reason: SessionCloseReason.DRAINING } });
    expect(end.close!.retryAfterMs).toBeGreaterThan(0);
    expect(await stopped).toBe(0);
    await running.service.start();
    await connect(applied(runs));
    await unchanged();
  });

  it('loses the connection without a word when the service is killed, and comes back with what it runs', async () => {
    const session = await link.session(enrolment);
    await running.service.kill();
    expect(await control.ended()).toMatchObject({ code: -1, close: undefined });
    await running.service.start();
    // No session outlives its connection.
    link = newLink();
    control = link.control(session);
    greet();
    expect((await control.ended()).code).toBe(status.UNAUTHENTICATED);
    await connect(applied(runs));
    await unchanged();
    await shows({ status: 'online', generation: Number(runs.generation), apply: { state: 'applied' } });
    await running.api.ok('POST', `/api/nodes/${node.id}/config`);
    await apply();
  });

  it('says goodbye: nothing more is sent, and its node is offline at once', async () => {
    control.say(closing(SessionCloseReason.NORMAL));
    expect(await control.ended()).toMatchObject({ code: status.OK, close: undefined });
    await shows({ status: 'offline' });
  });

  it('is revoked when its node is deleted', async () => {
    const created = await createNode(running.api);
    enrolment = enrol(created.id, created.control_psk);
    await connect(configRequest());
    await control.snapshot();
    await running.api.ok('DELETE', `/api/nodes/${created.id}`);
    expect(await control.ended()).toMatchObject({
      code: status.PERMISSION_DENIED,
      close: { reason: SessionCloseReason.REVOKED },
    });
    expect((await newLink().open(enrolment)).ended.code).toBe(status.UNAUTHENTICATED);
  });
});
