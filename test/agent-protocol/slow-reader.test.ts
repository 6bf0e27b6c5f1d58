/** A peer that does not read: what it costs, what it gets when it reads again, and how it is closed. */
import { status } from '@grpc/grpc-js';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { snapshotPush, startAgentFixture, unlimited, type AgentFixture } from '../support/agent-fixture.js';
import { eventually } from '../support/eventually.js';
import { heartbeatOf, type RawAgent, type RawStream } from '../support/raw-agent.js';
import { outboxPayloads } from '../../src/transport/agent/reading.js';

let fixture: AgentFixture;
let agent: RawAgent;
let stream: RawStream;
const MiB = 1024 * 1024;

beforeEach(async () => {
  fixture = await startAgentFixture({ reading: unlimited });
  agent = await fixture.agent();
  stream = await agent.connect();
  await eventually(() => fixture.nodeSessions.length).toBe(1);
});
afterEach(() => fixture.close());

/** Fills the peer's window with a snapshot that it does not take. */
async function stall(): Promise<void> {
  stream.stopReading();
  fixture.nodeSessions[0]!.slot.offer(snapshotPush(1, 8 * MiB));
  const before = fixture.transport.stats().framesOut;
  await eventually(() => fixture.transport.stats().slowStreams).toBe(1);
  expect(fixture.transport.stats().framesOut - before).toBeLessThan(64);
}

test('a slow reader gets, of many pushes, the snapshot that was on its way and the newest', async () => {
  await stall();
  for (let generation = 2; generation <= 200; generation += 1) {
    fixture.nodeSessions[0]!.slot.offer(snapshotPush(generation, 1024));
  }
  expect(fixture.nodeSessions[0]!.sent).toEqual([]);
  stream.resumeReading();
  await eventually(() => stream.generationsHeard()).toEqual([1n, 200n]);
  await eventually(() => fixture.nodeSessions[0]!.sent.map(({ generation }) => generation)).toEqual([1, 200]);
});

test('a slow reader piles up no answers: the service stops reading from it, then ends it as idle', async () => {
  await stall();
  for (let sequence = 0; sequence < 5_000; sequence += 1) stream.say(heartbeatOf(sequence));
  await eventually(() => fixture.telemetry.heartbeats.length).toBeGreaterThanOrEqual(outboxPayloads);
  // Others are served meanwhile; by the time of their answers, all that is going to be read of this one has been.
  const beside = await fixture.agent('node-2');
  const other = await beside.connect();
  for (let sequence = 1; sequence <= 20; sequence += 1) {
    await other.beat(sequence);
  }
  other.halfClose();
  await other.status;
  beside.disconnect();
  expect(fixture.telemetry.heartbeats.length).toBeLessThan(200);
  fixture.clock.advance(31_000);
  await eventually(() => fixture.transport.stats().ends.get('idle')).toBe(1);
  await eventually(() => fixture.transport.stats().sessions).toBe(0);
});

test('a slow reader gets all its answers when it reads again', async () => {
  await stall();
  for (let sequence = 0; sequence < 300; sequence += 1) stream.say(heartbeatOf(sequence));
  stream.resumeReading();
  await eventually(() => stream.heard.length).toBe(301);
});

/** Longer than anybody has to read what a session ends with. */
const busyMs = 2_500;

test.each([
  ['revoked', status.PERMISSION_DENIED, () => fixture.revoke('node-1')],
  ['ended for another reason', status.UNAVAILABLE, () => fixture.setState({ kind: 'catching_up' })],
])('an agent that reads is told why it is %s, by a process that is busy meanwhile', async (_, code, end) => {
  end();
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, busyMs);
  const { code: told, details } = await stream.status;
  expect(stream.heard.at(-1)).toMatchObject({ $case: 'close' });
  expect([told, details]).toEqual([code, expect.not.stringContaining('Connection dropped')]);
});
