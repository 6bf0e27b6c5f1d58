/** What a connected agent gets and what becomes of what it says; takeover, rekey, duplicates, several instances. */
import { status } from '@grpc/grpc-js';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ConfigAnswer } from '../../src/delivery/port.js';
import { Command } from '../../src/gen/svc/control/v1/command.js';
import { AgentPayload, SessionCloseReason } from '../../src/gen/svc/control/v1/session.js';
import { instanceId, snapshotPush, startAgentHouse } from '../support/agent-fixture.js';
import type { AgentHouse } from '../support/agent-fixture.js';
import { eventually } from '../support/eventually.js';
import { configRequestOf, createRawAgent, heartbeatOf, helloOf } from '../support/raw-agent.js';
import type { RawAgent, RawStream } from '../support/raw-agent.js';

let house: AgentHouse;
let agent: RawAgent;

beforeEach(async () => {
  house = await startAgentHouse();
  agent = createRawAgent(house, 'node-1', await house.issue('node-1'));
});
afterEach(async () => {
  agent.disconnect();
  await house.close();
});

const factTypes = (): string[] => house.facts.map(({ type }) => type);
const snapshotsHeard = (stream: RawStream): bigint[] =>
  stream.heard.flatMap((heard) =>
    heard.$case === 'configUpdate' && heard.value.update?.$case === 'snapshot'
      ? [heard.value.update.value.generation]
      : [],
  );

describe('hello', () => {
  test('presence before anything else, one fact with what it said', async () => {
    const stream = await agent.connect({
      agentVersion: 'a/2',
      publicIpv4: '192.0.2.7',
      detectedAddresses: ['10.0.0.1'],
    });
    await eventually(() => factTypes()).toEqual(['AgentSessionOpened']);
    const id = stream.opened.sessionId.toString('hex');
    expect(house.telemetry.opened).toMatchObject([
      {
        nodeId: 'node-1',
        offlineAfterMs: 30_000,
        presence: { session_id: id, instance_id: instanceId, pushed_generation: 0 },
      },
    ]);
    expect(house.facts[0]?.data).toMatchObject({ session_id: id, agent_version: 'a/2', public_ipv4: '192.0.2.7' });
  });
  test('before it: no presence, no takeover', async () => {
    const first = await agent.connect();
    await eventually(() => house.telemetry.opened.length).toBe(1);
    const second = agent.attach(await agent.session());
    second.sayFragment(Buffer.concat([Buffer.of(1), Buffer.alloc(16 * 1024)]));
    await eventually(() => house.transport.stats().sessions).toBe(2);
    first.say(heartbeatOf(1));
    await eventually(() => first.heard.length).toBe(1);
    expect(house.telemetry.opened.length).toBe(1);
  });
  test('another public address is passed on, at most once a minute, what came too soon afterwards', async () => {
    await agent.connect({ publicIpv4: '192.0.2.1' });
    await eventually(() => house.addresses.length).toBe(1);
    await agent.connect({ publicIpv4: '192.0.2.2' });
    await agent.connect({ publicIpv4: '192.0.2.3', publicIpv6: 'no address' });
    await eventually(() => house.telemetry.opened.length).toBe(3);
    expect(house.addresses).toEqual([['node-1', '192.0.2.1', null]]);
    house.clock.advance(61_000);
    await eventually(() => house.addresses.length).toBe(2);
    expect(house.addresses[1]).toEqual(['node-1', '192.0.2.3', null]);
  });
});

test('a later session_id that is the own one is taken', async () => {
  const stream = await agent.connect();
  const heartbeat = AgentPayload.encode({ payload: heartbeatOf(5) }).finish();
  stream.sendFrame({ ...stream.seal(Buffer.concat([Buffer.of(0), heartbeat])), sessionId: stream.opened.sessionId });
  await eventually(() => stream.heard.length).toBe(1);
});

describe('configuration', () => {
  test('a ConfigRequest is answered with the whole snapshot, which counts as pushed once it is out', async () => {
    const stream = await agent.connect();
    stream.say(configRequestOf(0n));
    await eventually(() => snapshotsHeard(stream)).toEqual([1n]);
    await eventually(() => house.attachments[0]?.sent.map(({ generation }) => generation)).toEqual([1]);
    stream.say(heartbeatOf(1));
    await eventually(() => house.telemetry.alives.at(-1)?.presence.pushed_generation).toBe(1);
  });
  test('unchanged is said with its generation', async () => {
    house.answer = () => ({ kind: 'unchanged', generation: 12 });
    const stream = await agent.connect();
    stream.say(configRequestOf(12n, Buffer.alloc(32)));
    await eventually(() => stream.heard).toEqual([
      { $case: 'configUpdate', value: { update: { $case: 'unchanged', value: { generation: 12n } } } },
    ]);
  });
  test('a push reaches the agent without being asked for; a report reaches delivery', async () => {
    const stream = await agent.connect();
    await eventually(() => house.attachments.length).toBe(1);
    house.attachments[0]!.slot.offer(snapshotPush(7));
    await eventually(() => snapshotsHeard(stream)).toEqual([7n]);
    stream.say({
      $case: 'applyReport',
      value: {
        generation: 7n,
        status: 2,
        errors: [{ resourceType: 'l4_chain', resourceId: 'c', path: 'hops[0]', message: 'in use' }],
        durationMs: 5n,
        checksum: Buffer.alloc(32, 7),
      },
    });
    await eventually(() => house.attachments[0]?.reports.length).toBe(1);
    expect(house.attachments[0]?.reports[0]).toMatchObject({
      generation: 7n,
      status: 'rejected',
      errors: [{ resource_type: 'l4_chain', resource_id: 'c', path: 'hops[0]', message: 'in use' }],
    });
  });
  test('a snapshot of many fragments arrives whole, and answers go on after it', async () => {
    house.answer = () => ({ kind: 'snapshot', push: snapshotPush(3, 2_000_000) });
    const stream = await agent.connect();
    stream.say(configRequestOf(0n));
    stream.say(heartbeatOf(1));
    await eventually(() => stream.heard.length).toBe(2);
    expect(snapshotsHeard(stream)).toEqual([3n]);
  });
  test('an agent that asks faster than delivery answers is held back, and every request is answered', async () => {
    let release: (answer: ConfigAnswer) => void = () => undefined;
    const slow = new Promise<ConfigAnswer>((resolve) => {
      release = resolve;
    });
    house.answer = () => slow;
    const stream = await agent.connect();
    for (let index = 0; index < 50; index += 1) stream.say(configRequestOf(0n));
    await eventually(() => house.attachments[0]?.requests.length).toBe(1);
    // Silent for long, but it is the service that does not read.
    house.clock.advance(40_000);
    release({ kind: 'unchanged', generation: 1 });
    await eventually(() => stream.heard.length).toBe(50);
  });
});

describe('heartbeats and metrics', () => {
  test('a response with the intervals in force and the commands claimed, each once', async () => {
    house.commands.set('node-1', ['RELOAD_CONFIG', 'RUN_DIAGNOSTICS']);
    const stream = await agent.connect();
    stream.say(heartbeatOf(41));
    await eventually(() => stream.heard.length).toBe(1);
    house.settings = { ...house.settings, heartbeat_interval_secs: 4, metrics_interval_secs: 9 };
    stream.say(heartbeatOf(42));
    await eventually(() => stream.heard.length).toBe(2);
    expect(stream.heard).toMatchObject([
      { value: { ok: true, ackSequence: 41n, commands: [Command.RELOAD_CONFIG, Command.RUN_DIAGNOSTICS] } },
      { value: { ackSequence: 42n, commands: [], heartbeatIntervalSecs: 4, metricsIntervalSecs: 9 } },
    ]);
    expect(house.telemetry.heartbeats[0]).toMatchObject({ cpu_usage: 0.5, memory_usage: 0.25, uptime_seconds: 7 });
  });
  test('numbers that JSON does not know are made safe', async () => {
    const stream = await agent.connect();
    const heartbeat = heartbeatOf(1);
    if (heartbeat.$case !== 'heartbeat') throw new Error('unreachable');
    stream.say({
      $case: 'heartbeat',
      value: { ...heartbeat.value, cpuUsage: Number.NaN, memoryUsage: 17, uptimeSeconds: 2n ** 64n - 1n },
    });
    await eventually(() => house.telemetry.heartbeats.length).toBe(1);
    expect(house.telemetry.heartbeats[0]).toMatchObject({
      cpu_usage: 0,
      memory_usage: 1,
      uptime_seconds: Number.MAX_SAFE_INTEGER,
    });
  });
  test('a metrics report reaches telemetry and is not answered', async () => {
    const stream = await agent.connect();
    stream.say({
      $case: 'metrics',
      value: { sequence: 1n, timestamp: undefined, connections: undefined, bandwidth: undefined, gateway: undefined },
    });
    stream.say(heartbeatOf(1));
    await eventually(() => stream.heard.length).toBe(1);
    expect(house.telemetry.reports).toHaveLength(1);
  });
});

describe('takeover', () => {
  const superseded = async (stream: RawStream): Promise<boolean> => {
    const { code } = await stream.status;
    return code === status.ABORTED && stream.closeHeard()?.reason === SessionCloseReason.SUPERSEDED;
  };
  test('the second within 5 minutes marks the node as duplicate for an hour', async () => {
    const first = await agent.connect();
    await eventually(() => house.telemetry.opened.length).toBe(1);
    const second = await agent.connect();
    expect(await superseded(first)).toBe(true);
    expect(factTypes()).not.toContain('AgentDuplicateSeen');
    await agent.connect();
    expect(await superseded(second)).toBe(true);
    await eventually(() => factTypes().filter((type) => type === 'AgentDuplicateSeen').length).toBe(1);
    const seen = house.facts.find(({ type }) => type === 'AgentDuplicateSeen');
    const until = Date.parse((seen!.data as { until: string }).until);
    expect(Math.abs(until - house.clock.now() - 3_600_000)).toBeLessThan(60_000);
  });
  test('a rekey is no event, supersedes nobody and leaves the new session live', async () => {
    let current: RawStream = await agent.connect();
    await eventually(() => factTypes()).toEqual(['AgentSessionOpened']);
    for (let round = 0; round < 3; round += 1) {
      const opened = await agent.session();
      current.say({ $case: 'close', value: { reason: SessionCloseReason.REKEY, message: '', retryAfterMs: 0 } });
      expect((await current.status).code).toBe(status.OK);
      current = agent.attach(opened);
      current.say(helloOf());
      await eventually(() => house.telemetry.opened.length).toBe(round + 2);
    }
    current.say(heartbeatOf(1));
    await eventually(() => current.heard.length).toBe(1);
    expect(factTypes()).toEqual(['AgentSessionOpened']);
  });
  test('a session opened after the old one said REKEY is a new one, and an event', async () => {
    const old = await agent.connect();
    await eventually(() => factTypes()).toEqual(['AgentSessionOpened']);
    old.say({ $case: 'close', value: { reason: SessionCloseReason.REKEY, message: '', retryAfterMs: 0 } });
    await old.status;
    await agent.connect();
    await eventually(() => factTypes()).toEqual(['AgentSessionOpened', 'AgentSessionOpened']);
  });
  test('a newer session on another instance ends the own one; an older one in the log does not', async () => {
    const stream = await agent.connect();
    await eventually(() => house.telemetry.opened.length).toBe(1);
    const id = stream.opened.sessionId.toString('hex');
    house.transport.noteSessionOpened('node-1', 'ab'.repeat(16), 'instance-2');
    stream.say(heartbeatOf(1));
    await eventually(() => stream.heard.length).toBe(1);
    house.transport.noteSessionOpened('node-1', id, instanceId);
    house.transport.noteSessionOpened('node-1', 'cd'.repeat(16), 'instance-2');
    expect(await superseded(stream)).toBe(true);
  });
  test('a lease that another session has taken ends the session', async () => {
    const stream = await agent.connect();
    await eventually(() => house.telemetry.opened.length).toBe(1);
    house.telemetry.lose('node-1', 'another session');
    house.telemetry.lose('node-1', stream.opened.sessionId.toString('hex'));
    expect(await superseded(stream)).toBe(true);
  });
});

test('closing drains every agent, and leaves no connection', async () => {
  const stream = await agent.connect();
  await eventually(() => house.telemetry.opened.length).toBe(1);
  await house.close();
  expect((await stream.status).code).toBe(status.UNAVAILABLE);
  expect(stream.closeHeard()?.reason).toBe(SessionCloseReason.DRAINING);
  expect(house.telemetry.ended).toHaveLength(1);
});
