/** A node that sends more than it may: its reads are paused, and everything else goes on. Real sockets. */
import { status } from '@grpc/grpc-js';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { SessionCloseReason } from '../../src/gen/svc/control/v1/session.js';
import { LinkMetric } from '../../src/gen/svc/control/v1/heartbeat.js';
import { snapshotPush, startAgentFixture, type AgentFixture } from '../support/agent-fixture.js';
import { eventually } from '../support/eventually.js';
import { configRequestOf, heartbeatOf, type RawAgent, type RawStream } from '../support/raw-agent.js';

let fixture: AgentFixture;
let agent: RawAgent;
/** Of another node. */
let beside: RawAgent;
let stream: RawStream;

beforeEach(async () => {
  fixture = await startAgentFixture();
  agent = await fixture.agent();
  beside = await fixture.agent('node-2');
  stream = await agent.connect();
  await eventually(() => fixture.nodeSessions.length).toBe(1);
});
afterEach(() => fixture.close());

const throttled = (): number => fixture.transport.stats().throttledSessions;
const answered = (): number => stream.heard.length;

/** Says heartbeats until the service reads no more. */
async function flood(count = 200): Promise<void> {
  for (let sequence = 0; sequence < count; sequence += 1) stream.say(heartbeatOf(sequence));
  await eventually(throttled).toBe(1);
}

describe('a session that sends more than it may', () => {
  test('is read at 2 payloads a second after a burst of 20, is never ended for it, and loses nothing', async () => {
    await flood(60);
    // The answers to what was read may still be on their way.
    await eventually(answered).toBeGreaterThanOrEqual(20);
    const first = answered();
    expect(first).toBeLessThan(30);
    fixture.clock.advance(5_000);
    await eventually(() => answered() - first).toBeGreaterThanOrEqual(10);
    expect(answered() - first).toBeLessThan(20);
    for (let seconds = 0; seconds < 30; seconds += 10) {
      fixture.clock.advance(10_000);
      await eventually(answered).toBeGreaterThanOrEqual(Math.min(60, 30 + seconds));
    }
    await eventually(answered).toBe(60);
    await eventually(throttled).toBe(0);
    expect(fixture.transport.stats().ends.size).toBe(0);
  });

  test.each([
    ['heartbeats', heartbeatOf(1)],
    ['config requests', configRequestOf(0n)],
    [
      'metrics',
      {
        $case: 'metrics',
        value: { sequence: 1n, timestamp: undefined, connections: undefined, bandwidth: undefined, gateway: undefined },
      },
    ],
  ] as const)('is paused for %s', async (_, payload) => {
    fixture.answer = () => ({ kind: 'unchanged', generation: 1 });
    for (let index = 0; index < 21; index += 1) stream.say(payload);
    await eventually(throttled).toBe(1);
    expect(fixture.transport.stats().readPauses).toBe(1);
  });
});

describe('a session that is paused', () => {
  /** Heartbeats with so many entries that the next one is read after 6 seconds. */
  async function pauseForSeconds(): Promise<void> {
    const linkMetrics = Array.from({ length: 16_384 }, () => LinkMetric.fromPartial({}));
    for (let round = 0; round < 4; round += 1) stream.say(heartbeatOf(round, { linkMetrics }));
    await eventually(throttled).toBe(1);
  }

  test('is not idle, however long the pause is', async () => {
    stream.halfClose();
    await stream.status;
    fixture.settings = { ...fixture.settings, heartbeat_interval_secs: 1 };
    await beside.connect();
    stream = await agent.connect();
    await pauseForSeconds();
    fixture.clock.advance(4_000);
    // The session beside it, which is not paused, is.
    await eventually(() => fixture.transport.stats().ends.get('idle')).toBe(1);
    // It may be read a little meanwhile.
    await eventually(throttled).toBe(1);
    fixture.clock.advance(4_000);
    await eventually(answered).toBe(4);
    // Silence counts again after the pause.
    fixture.clock.advance(4_000);
    await eventually(() => fixture.transport.stats().ends.get('idle')).toBe(2);
  });

  test('still gets pushes', async () => {
    stream.say(configRequestOf(0n));
    await eventually(() => stream.generationsHeard()).toEqual([1n]);
    await pauseForSeconds();
    fixture.nodeSessions[0]!.slot.offer(snapshotPush(7, 200_000));
    await eventually(() => stream.generationsHeard()).toEqual([1n, 7n]);
    await eventually(throttled).toBe(1);
  });

  test('is revoked and superseded at once', async () => {
    await pauseForSeconds();
    const newer = await agent.connect();
    expect((await stream.status).code).toBe(status.ABORTED);
    expect(stream.closeHeard()?.reason).toBe(SessionCloseReason.SUPERSEDED);
    await eventually(throttled).toBe(1);
    fixture.revoke('node-1');
    expect(await fixture.transport.sessionsEnded('node-1', 20_000)).toBe(true);
    expect((await newer.status).code).not.toBe(status.OK);
  });

  test('holds its agent back by flow control: what the agent goes on sending does not pile up here', async () => {
    await pauseForSeconds();
    let taken = 0;
    const frame = Buffer.alloc(60_000);
    const frames = 200;
    for (let index = 0; index < frames; index += 1) stream.call.write(frame, () => (taken += frame.length));
    let before = -1;
    const nothingMoreIsTaken = (): boolean => {
      const stalled = taken > 0 && taken === before;
      before = taken;
      return stalled;
    };
    await expect.poll(nothingMoreIsTaken, { interval: 100 }).toBe(true);
    // The windows hold about 1 MiB; from Node 22 on, the client counts twice as much as taken.
    expect(taken).toBeLessThan((frames * frame.length) / 4);
    await eventually(throttled).toBe(1);
  });

  test('is not helped by a new session: what was read counts for the node', async () => {
    await pauseForSeconds();
    stream.halfClose();
    agent.disconnect();
    await eventually(() => fixture.transport.stats().sessions).toBe(0);
    agent = await fixture.agent();
    stream = await agent.connect();
    stream.say(heartbeatOf(1));
    await eventually(throttled).toBe(1);
    const other = await beside.connect();
    await other.beat(1);
    expect(answered()).toBe(0);
    fixture.clock.advance(8_000);
    await eventually(answered).toBe(1);
  });
});
