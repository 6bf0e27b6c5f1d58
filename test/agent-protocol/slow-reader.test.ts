/** A peer that does not read: costs one snapshot and a few answers, gets the newest when it reads, is cut when closed. */
import { status } from '@grpc/grpc-js';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { snapshotPush, startAgentHouse } from '../support/agent-fixture.js';
import type { AgentHouse } from '../support/agent-fixture.js';
import { eventually } from '../support/eventually.js';
import { createRawAgent, heartbeatOf } from '../support/raw-agent.js';
import type { RawAgent, RawStream } from '../support/raw-agent.js';
import { tuning } from '../../src/transport/agent/tuning.js';

let house: AgentHouse;
let agent: RawAgent;
let stream: RawStream;
const MiB = 1024 * 1024;

beforeEach(async () => {
  house = await startAgentHouse();
  agent = createRawAgent(house, 'node-1', await house.issue('node-1'));
  stream = await agent.connect();
  await eventually(() => house.attachments.length).toBe(1);
});
afterEach(async () => {
  agent.disconnect();
  await house.close();
});

/** Fills the peer's window with a snapshot that it does not take. */
async function stall(): Promise<void> {
  stream.stopReading();
  house.attachments[0]!.slot.offer(snapshotPush(1, 8 * MiB));
  const before = house.transport.stats().framesOut;
  await eventually(() => house.transport.stats().slowStreams).toBe(1);
  expect(house.transport.stats().framesOut - before).toBeLessThan(64);
}

const generations = (): bigint[] =>
  stream.heard.flatMap((heard) =>
    heard.$case === 'configUpdate' && heard.value.update?.$case === 'snapshot'
      ? [heard.value.update.value.generation]
      : [],
  );

test('one unsent snapshot at most: of many pushes it gets the one that was on its way and the newest', async () => {
  await stall();
  for (let generation = 2; generation <= 200; generation += 1) {
    house.attachments[0]!.slot.offer(snapshotPush(generation, 1024));
  }
  expect(house.attachments[0]!.sent).toEqual([]);
  stream.readAgain();
  await eventually(generations).toEqual([1n, 200n]);
  await eventually(() => house.attachments[0]!.sent.map(({ generation }) => generation)).toEqual([1, 200]);
});

test('answers that it does not read do not pile up: the service stops reading from it, then calls it idle', async () => {
  await stall();
  for (let sequence = 0; sequence < 5_000; sequence += 1) stream.say(heartbeatOf(sequence));
  await eventually(() => house.telemetry.heartbeats.length).toBeGreaterThanOrEqual(tuning.outboxPayloads);
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(house.telemetry.heartbeats.length).toBeLessThan(200);
  house.clock.advance(31_000);
  await eventually(() => house.transport.stats().ends.get('idle')).toBe(1);
  await eventually(() => house.transport.stats().sessions).toBe(0);
});

test('answers pile up no further and go on when it reads again', async () => {
  await stall();
  for (let sequence = 0; sequence < 300; sequence += 1) stream.say(heartbeatOf(sequence));
  stream.readAgain();
  await eventually(() => stream.heard.length).toBe(301);
});

test('revoked: cut at the socket at once', async () => {
  await stall();
  house.revoke('node-1');
  expect(await house.transport.sessionsEnded('node-1', 1_500)).toBe(true);
  stream.readAgain();
  expect((await stream.status).code).not.toBe(status.OK);
});

test('closed for any other reason: cut at the socket after 2 s', async () => {
  await stall();
  house.setState({ kind: 'catching_up' });
  expect(await house.transport.sessionsEnded('node-1', 10_000)).toBe(true);
  stream.readAgain();
  expect((await stream.status).code).not.toBe(status.OK);
});
