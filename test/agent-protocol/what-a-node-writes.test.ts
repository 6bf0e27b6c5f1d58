/** What one node can make the service write into the log: real sessions, the real fact recorder, a real log. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createFactRecorder } from '../../src/commands/facts.js';
import type { FactRecorder } from '../../src/commands/port.js';
import { agentsStream, type RecordedEvent } from '../../src/kernel/event.js';
import { randomIds } from '../../src/kernel/ids.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { eventBytes } from '../../src/storage/event-json.js';
import { readAll } from '../storage/contract/appending.js';
import {
  createShiftedClock,
  startAgentFixture,
  type AgentFixture,
  type ShiftedClock,
} from '../support/agent-fixture.js';
import { eventually } from '../support/eventually.js';
import { type RawAgent } from '../support/raw-agent.js';
import { openTemporaryStores, type TemporaryStores } from '../support/temporary-stores.js';

const burstBytes = 512 * 1024;
const bytesPerMinute = 64 * 1024;
const nodeId = 'node-1';

let clock: ShiftedClock;
let stores: TemporaryStores;
let facts: FactRecorder;
let fixture: AgentFixture;
let agent: RawAgent;

beforeEach(async () => {
  clock = createShiftedClock();
  stores = await openTemporaryStores(clock);
  facts = createFactRecorder({ eventStore: stores.eventStore, clock, ids: randomIds, logger: silentLogger });
  fixture = await startAgentFixture({}, { facts, clock });
  agent = await fixture.agent(nodeId);
});
afterEach(async () => {
  await fixture.close();
  await facts.close();
  await stores.close();
});

const log = (): Promise<readonly RecordedEvent[]> => readAll(stores.eventStore, agentsStream(nodeId));
const bytesOf = (events: readonly RecordedEvent[]): number => events.reduce((sum, event) => sum + eventBytes(event), 0);
const versionsOf = (events: readonly RecordedEvent[]): unknown[] => events.map(({ data }) => data['agent_version']);

/** Opens a session whose hello is as large as the protocol allows, and waits until it is live. */
async function hello(version: string, detectedAddresses: readonly string[]): Promise<void> {
  const stream = await fixture.live(agent, { agentVersion: version, detectedAddresses: [...detectedAddresses] });
  stream.halfClose();
  await stream.status;
}

const longestAddresses = Array.from(
  { length: 64 },
  (_, index) => `2001:db8:aaaa:bbbb:cccc:dddd:eeee:${(0x1000 + index).toString(16)}`,
);

test('texts of a hello that are no IP literals are not recorded', async () => {
  await hello('v', ['10.0.0.1', 'x'.repeat(1024), '2001:DB8::1', 'host.example', 'fe80::1%eth0']);
  await eventually(async () => (await log()).length).toBe(1);
  const [event] = await log();
  expect(event?.data['detected_addresses']).toEqual(['10.0.0.1', '2001:db8::1']);
  expect(event?.data['public_ipv6']).toBe('');
});

test('a node that opens sessions in a loop writes no more than its budget, and the newest session is recorded in the end', async () => {
  const began = clock.monotonic();
  let last = '';
  // A machine that is slow gives the budget more time, so the burst may last longer.
  for (let round = 0; round < 150 || (round < 600 && versionsOf(await log()).includes(last)); round += 1) {
    last = `${round}`.padEnd(1024, 'v');
    await hello(last, longestAddresses);
    // The budget of sessions is one a second.
    clock.advance(1000);
  }
  const allowed = (): number => burstBytes + (bytesPerMinute * (clock.monotonic() - began)) / 60_000;
  expect(bytesOf(await log())).toBeLessThanOrEqual(allowed());
  expect(versionsOf(await log())).not.toContain(last);
  // The session is long over; its fact is written when the budget allows.
  clock.advance(60_000);
  await eventually(async () => versionsOf(await log()).at(-1)).toBe(last);
  expect(bytesOf(await log())).toBeLessThanOrEqual(allowed());
});
