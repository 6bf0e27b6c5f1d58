/** What a connected agent gets, what becomes of its payloads, and takeover, rekey, duplicates and several instances. */
import { status } from '@grpc/grpc-js';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ConfigAnswer } from '../../src/delivery/port.js';
import { ConfigApplyStatus } from '../../src/gen/svc/control/v1/config.js';
import { SessionCloseReason } from '../../src/gen/svc/control/v1/session.js';
import { instanceId, snapshotPush, startAgentFixture, type AgentFixture } from '../support/agent-fixture.js';
import { heldFrames, heldFrameBytes } from '../../src/transport/agent/reading.js';
import { eventually } from '../support/eventually.js';
import { configRequestOf, heartbeatOf, helloOf, type RawAgent, type RawStream } from '../support/raw-agent.js';

let fixture: AgentFixture;
let agent: RawAgent;

beforeEach(async () => {
  fixture = await startAgentFixture();
  agent = await fixture.agent();
});
afterEach(() => fixture.close());

const factTypes = (): string[] => fixture.facts.map(({ type }) => type);

/** What was said before has reached the service once a heartbeat of another agent is answered. */
async function heardElsewhere(): Promise<void> {
  const other = await fixture.agent('node-2');
  const beside = await other.connect();
  await beside.beat(1);
  other.disconnect();
}

test('a report says what the process ran when it sent it, in the order of arrival', async () => {
  const runs = (): readonly (number | null)[] => fixture.telemetry.heartbeats.map((one) => one.runs_generation);
  const report = (generation: number, outcome: ConfigApplyStatus): void =>
    stream.say({
      $case: 'applyReport',
      value: {
        generation: BigInt(generation),
        checksum: Buffer.alloc(32),
        status: outcome,
        errors: [],
        durationMs: 1n,
      },
    });
  const stream = await agent.connect();
  stream.say(heartbeatOf(1));
  // The process holds nothing.
  stream.say(configRequestOf(0n));
  stream.say(heartbeatOf(2));
  report(7, ConfigApplyStatus.APPLIED);
  stream.say(heartbeatOf(3));
  // It was asked to reload, and still runs what it ran.
  stream.say(configRequestOf(0n));
  stream.say(heartbeatOf(4));
  report(8, ConfigApplyStatus.REJECTED);
  stream.say(heartbeatOf(5));
  await eventually(runs).toEqual([null, 0, 7, 7, 7]);

  // The same process on a new session says what it runs before it repeats its report.
  const next = await agent.connect();
  next.say(configRequestOf(7n, Buffer.alloc(32)));
  next.say(heartbeatOf(1));
  await eventually(runs).toEqual([null, 0, 7, 7, 7, 7]);
});

describe('a hello', () => {
  test('records the presence and one fact with its contents', async () => {
    const stream = await agent.connect({
      agentVersion: 'a/2',
      publicIpv4: '192.0.2.7',
      detectedAddresses: ['10.0.0.1'],
    });
    await eventually(() => factTypes()).toEqual(['AgentSessionOpened']);
    const id = stream.opened.sessionId.toString('hex');
    expect(fixture.telemetry.opened).toMatchObject([
      {
        nodeId: 'node-1',
        offlineAfterMs: 30_000,
        presence: { session_id: id, instance_id: instanceId, pushed_generation: 0 },
      },
    ]);
    expect(fixture.facts[0]?.data).toMatchObject({ session_id: id, agent_version: 'a/2', public_ipv4: '192.0.2.7' });
  });
  test('is needed for presence and takeover: a session without one changes nothing', async () => {
    const first = await fixture.live(agent);
    const second = agent.attach(await agent.session());
    second.sayFragment(Buffer.concat([Buffer.of(1), Buffer.alloc(16 * 1024)]));
    await eventually(() => fixture.transport.stats().sessions).toBe(2);
    await first.beat(1);
    expect(fixture.telemetry.opened.length).toBe(1);
  });
});

describe('configuration', () => {
  test('a ConfigRequest is answered with the whole snapshot, which counts as pushed once it is sent', async () => {
    const stream = await agent.connect();
    stream.say(configRequestOf(0n));
    await eventually(() => stream.generationsHeard()).toEqual([1n]);
    await eventually(() => fixture.nodeSessions[0]?.sent.map(({ generation }) => generation)).toEqual([1]);
    stream.say(heartbeatOf(1));
    await eventually(() => fixture.telemetry.alives.at(-1)?.presence.pushed_generation).toBe(1);
  });
  test('a push reaches the agent without a request, and its apply report reaches delivery', async () => {
    const stream = await agent.connect();
    await eventually(() => fixture.nodeSessions.length).toBe(1);
    fixture.nodeSessions[0]!.slot.offer(snapshotPush(7));
    await eventually(() => stream.generationsHeard()).toEqual([7n]);
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
    await eventually(() => fixture.nodeSessions[0]?.reports.length).toBe(1);
    expect(fixture.nodeSessions[0]?.reports[0]).toMatchObject({
      generation: 7n,
      status: 'rejected',
      errors: [{ resource_type: 'l4_chain', resource_id: 'c', path: 'hops[0]', message: 'in use' }],
    });
  });
  test('a snapshot of many fragments arrives whole, and answers follow it', async () => {
    fixture.answer = () => ({ kind: 'snapshot', push: snapshotPush(3, 2_000_000) });
    const stream = await agent.connect();
    stream.say(configRequestOf(0n));
    stream.say(heartbeatOf(1));
    await eventually(() => stream.heard.length).toBe(2);
    expect(stream.generationsHeard()).toEqual([3n]);
  });
  test('an agent that asks faster than delivery answers is slowed down, and every request is answered', async () => {
    let release: (answer: ConfigAnswer) => void = () => undefined;
    const slow = new Promise<ConfigAnswer>((resolve) => {
      release = resolve;
    });
    fixture.answer = () => slow;
    const stream = await agent.connect();
    for (let index = 0; index < 15; index += 1) stream.say(configRequestOf(0n));
    await eventually(() => fixture.nodeSessions[0]?.requests.length).toBe(1);
    await heardElsewhere();
    // The silence does not count, because the service has stopped reading.
    fixture.clock.advance(40_000);
    release({ kind: 'unchanged', generation: 1 });
    await eventually(() => stream.heard.length).toBe(15);
  });
});

describe('while a change is brought to all agents', () => {
  const report = {
    $case: 'applyReport',
    value: { generation: 7n, status: 1, errors: [], durationMs: 5n, checksum: Buffer.alloc(32, 7) },
  } as const;
  /** A stream whose agent was sent a snapshot, and whose report is to wait until `pass` is called. */
  async function pushed(): Promise<{ stream: RawStream; pass: () => void }> {
    let pass = (): void => undefined;
    fixture.reportTurn = () => new Promise((resolve) => (pass = resolve));
    const stream = await agent.connect();
    await eventually(() => fixture.nodeSessions.length).toBe(1);
    fixture.nodeSessions[0]!.slot.offer(snapshotPush(7));
    await eventually(() => stream.generationsHeard()).toEqual([7n]);
    return { stream, pass: () => pass() };
  }
  const reports = (): number | undefined => fixture.nodeSessions[0]?.reports.length;
  test('what an agent says about it waits for its turn, in order, and nobody else waits', async () => {
    const { stream, pass } = await pushed();
    stream.say(report);
    stream.say(heartbeatOf(1));
    await heardElsewhere();
    expect([reports(), stream.heard.length]).toEqual([0, 1]);
    pass();
    await eventually(() => stream.heard.length).toBe(2);
    expect(reports()).toBe(1);
    await stream.beat(2);
  });
  test('what has come is not silence', async () => {
    const { stream, pass } = await pushed();
    stream.say(report);
    await heardElsewhere();
    fixture.clock.advance(40_000);
    await heardElsewhere();
    pass();
    await stream.beat(1);
    expect(reports()).toBe(1);
  });
  test('more than a few frames, or a large one, do not wait', async () => {
    const { stream } = await pushed();
    for (let count = 0; count < heldFrames; count += 1) stream.say(heartbeatOf(count));
    await heardElsewhere();
    expect(stream.heard.length).toBe(1);
    stream.say(heartbeatOf(99));
    await eventually(() => stream.heard.length).toBe(heldFrames + 2);
    stream.say(heartbeatOf(100));
    const error = { resourceType: 'l4_chain', resourceId: 'c', path: '', message: 'w'.repeat(200) };
    const errors = Array.from({ length: heldFrameBytes / 200 }, () => error);
    stream.say({ $case: 'applyReport', value: { ...report.value, status: 2, errors } });
    await eventually(() => [stream.heard.length, reports()]).toEqual([heldFrames + 3, 1]);
  });
  test('an agent that leaves meanwhile is heard to its end', async () => {
    const { stream } = await pushed();
    stream.say(report);
    stream.say({ $case: 'close', value: { reason: SessionCloseReason.REKEY, message: '', retryAfterMs: 0 } });
    stream.halfClose();
    await eventually(() => fixture.changes.filter(({ message }) => message === 'agent session closed')).toMatchObject([
      { agent_reason: 'rekey' },
    ]);
    expect(reports()).toBe(1);
  });
});

describe('heartbeats and metrics', () => {
  test('a metrics report reaches telemetry and is not answered', async () => {
    const stream = await agent.connect();
    stream.say({
      $case: 'metrics',
      value: { sequence: 1n, timestamp: undefined, connections: undefined, bandwidth: undefined, gateway: undefined },
    });
    await stream.beat(1);
    expect(fixture.telemetry.reports).toHaveLength(1);
  });
});

describe('takeover', () => {
  const superseded = async (stream: RawStream): Promise<boolean> => {
    const { code } = await stream.status;
    return code === status.ABORTED && stream.closeHeard()?.reason === SessionCloseReason.SUPERSEDED;
  };
  test('twice within 5 minutes marks the node as duplicate for an hour', async () => {
    const first = await fixture.live(agent);
    const second = await agent.connect();
    expect(await superseded(first)).toBe(true);
    expect(factTypes()).not.toContain('AgentDuplicateSeen');
    await agent.connect();
    expect(await superseded(second)).toBe(true);
    await eventually(() => factTypes().filter((type) => type === 'AgentDuplicateSeen').length).toBe(1);
    const duplicateSeen = fixture.facts.find(({ type }) => type === 'AgentDuplicateSeen');
    const until = Date.parse((duplicateSeen!.data as { until: string }).until);
    expect(Math.abs(until - fixture.clock.now() - 3_600_000)).toBeLessThan(60_000);
  });
  test.each([
    ['ahead', 600_000, 1],
    ['back', -86_400_000, 0],
  ])('counts by the time that has passed, though the clock is set %s meanwhile', async (_way, jump, marked) => {
    const first = await fixture.live(agent);
    const second = await agent.connect();
    expect(await superseded(first)).toBe(true);
    fixture.clock.jump(jump);
    if (marked === 0) fixture.clock.advance(301_000);
    await agent.connect();
    expect(await superseded(second)).toBe(true);
    await eventually(() => fixture.telemetry.opened.length).toBe(3);
    expect(factTypes().filter((type) => type === 'AgentDuplicateSeen').length).toBe(marked);
  });
  test('does not happen at a rekey, which records no event and leaves the new session live', async () => {
    let current: RawStream = await agent.connect();
    await eventually(() => factTypes()).toEqual(['AgentSessionOpened']);
    for (let round = 0; round < 3; round += 1) {
      const opened = await agent.session();
      current.say({ $case: 'close', value: { reason: SessionCloseReason.REKEY, message: '', retryAfterMs: 0 } });
      expect((await current.status).code).toBe(status.OK);
      current = agent.attach(opened);
      current.say(helloOf());
      await eventually(() => fixture.telemetry.opened.length).toBe(round + 2);
    }
    await current.beat(1);
    expect(factTypes()).toEqual(['AgentSessionOpened']);
  });
  test('does not happen for a session opened after REKEY, but an event is recorded', async () => {
    const old = await agent.connect();
    await eventually(() => factTypes()).toEqual(['AgentSessionOpened']);
    old.say({ $case: 'close', value: { reason: SessionCloseReason.REKEY, message: '', retryAfterMs: 0 } });
    await old.status;
    await agent.connect();
    await eventually(() => factTypes()).toEqual(['AgentSessionOpened', 'AgentSessionOpened']);
  });
  test('happens for a newer session on another instance, not for one that is older in the log or by its time', async () => {
    const at = (seconds: number): string => new Date(fixture.clock.now() + seconds * 1000).toISOString();
    const stream = await fixture.live(agent);
    const id = stream.opened.sessionId.toString('hex');
    /** What it hears next is the answer to a heartbeat, and no SessionClose. */
    const lives = async (sequence: number): Promise<void> => {
      await stream.beat(sequence);
      expect(stream.heard.at(-1)).toMatchObject({
        $case: 'heartbeatResponse',
        value: { ackSequence: BigInt(sequence) },
      });
    };
    // Later by its time, but before the fact of this session in the log.
    fixture.transport.noteSessionOpened('node-1', 'ab'.repeat(16), 'instance-2', at(5));
    await lives(1);
    fixture.transport.noteSessionOpened('node-1', id, instanceId, at(0));
    await lives(2);
    // The fact of an instance that was cut off from the log comes late.
    fixture.transport.noteSessionOpened('node-1', 'ef'.repeat(16), 'instance-3', at(-60));
    await lives(3);
    fixture.transport.noteSessionOpened('node-1', 'cd'.repeat(16), 'instance-2', at(60));
    expect(await superseded(stream)).toBe(true);
  });
  test('happens when another session has taken the presence lease', async () => {
    const stream = await fixture.live(agent);
    fixture.telemetry.lose('node-1', 'another session');
    fixture.telemetry.lose('node-1', stream.opened.sessionId.toString('hex'));
    expect(await superseded(stream)).toBe(true);
  });
});

test('closing the transport drains every session and releases its lease', async () => {
  const stream = await fixture.live(agent);
  await fixture.transport.close(1_000);
  expect((await stream.status).code).toBe(status.UNAVAILABLE);
  expect(stream.closeHeard()?.reason).toBe(SessionCloseReason.DRAINING);
  expect(fixture.telemetry.ended).toHaveLength(1);
});

describe('the log of sessions', () => {
  const changes = (message: string) => fixture.changes.filter((line) => line.message === message);

  test('has a line when one is opened, and one with the cause when it ends', async () => {
    const stream = await agent.connect({ agentVersion: `a/${'9'.repeat(1_000)}` });
    await eventually(() => changes('agent session opened').length).toBe(1);
    const named = { node_id: 'node-1', session_id: stream.opened.sessionId.toString('hex'), address: '127.0.0.1' };
    expect(changes('agent session opened')).toEqual([
      { message: 'agent session opened', ...named, agent_version: expect.stringMatching(/^a\/9{62}$/), rekey: false },
    ]);
    stream.say({ $case: 'close', value: { reason: SessionCloseReason.NORMAL, message: 'bye', retryAfterMs: 0 } });
    await eventually(() => changes('agent session closed').length).toBe(1);
    expect(changes('agent session closed')).toEqual([
      {
        message: 'agent session closed',
        ...named,
        cause: 'closed_by_agent',
        agent_reason: 'normal',
        duration_ms: expect.any(Number),
      },
    ]);
  });

  test('names the session that takes the place of another one, and one whose agent ends it without a word', async () => {
    const first = await agent.connect();
    const second = await agent.connect();
    const [old, now] = [first, second].map(({ opened }) => opened.sessionId.toString('hex'));
    await eventually(() => changes('agent session superseded').length).toBe(1);
    expect(changes('agent session superseded')[0]).toMatchObject({
      session_id: old,
      by_session_id: now,
      duplicate: false,
    });
    await eventually(() => changes('agent session closed')).toMatchObject([{ session_id: old, cause: 'superseded' }]);
    second.halfClose();
    await eventually(() => changes('agent session closed').at(-1)).toMatchObject({
      session_id: now,
      cause: 'closed_by_agent',
      agent_reason: null,
    });
  });
});
