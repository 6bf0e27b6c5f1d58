/**
 * Two instances on one log, one of which is cut off from it for a while: what it writes late changes nothing that a node
 * has told the other one since. And a node that goes from one to the other. Real sessions, recorders and read models.
 */
import { randomBytes } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createFactRecorder } from '../../src/commands/facts.js';
import type { FactRecorder } from '../../src/commands/port.js';
import type { AgentEvent } from '../../src/domain/agents/facts.js';
import type { NodeAgentFacts } from '../../src/domain/agents/node-agent-facts.js';
import { SessionCloseReason } from '../../src/gen/svc/control/v1/session.js';
import { agentsStream } from '../../src/kernel/event.js';
import { randomIds } from '../../src/kernel/ids.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { followFacts, type FollowedFacts } from '../support/agent-facts.js';
import type { EventStore } from '../../src/storage/event-store.js';
import { readAll } from '../storage/contract/appending.js';
import {
  createShiftedClock,
  startAgentFixture,
  type AgentFixture,
  type ShiftedClock,
} from '../support/agent-fixture.js';
import { eventually } from '../support/eventually.js';
import { createFleetLog } from '../support/fleet-log.js';
import { createRawAgent, helloOf, type RawAgent, type RawStream } from '../support/raw-agent.js';
import { scriptedEventStore, unavailable, type ScriptedEventStore } from '../support/scripted-event-store.js';
import { openTemporaryStores, type TemporaryStores } from '../support/temporary-stores.js';

const nodeId = 'node-1';

interface Instance {
  readonly fixture: AgentFixture;
  readonly facts: FactRecorder;
  readonly agent: RawAgent;
  /** False: the instance does not hear from the log. */
  follows: boolean;
}

let clock: ShiftedClock;
let stores: TemporaryStores;
let cutStore: ScriptedEventStore;
let told: FollowedFacts;
let cut: Instance;
let other: Instance;
let instances: Instance[];

beforeEach(async () => {
  clock = createShiftedClock();
  stores = await openTemporaryStores(clock);
  const { eventStore } = stores;
  await (await createFleetLog(eventStore)).createNode(nodeId);
  cutStore = scriptedEventStore(eventStore);
  told = await followFacts(eventStore);
  const secret = randomBytes(32);
  const start = async (instanceId: string, store: EventStore): Promise<Instance> => {
    const facts = createFactRecorder({ eventStore: store, clock, ids: randomIds, logger: silentLogger });
    const fixture = await startAgentFixture({}, { facts, clock, instanceId });
    const agent = createRawAgent(fixture, nodeId, await fixture.issue(nodeId, secret));
    return { fixture, facts, agent, follows: true };
  };
  [cut, other] = [await start('cut', cutStore), await start('other', eventStore)];
  instances = [cut, other];
  told.onFact(({ fact, at }) => {
    if (fact.type !== 'AgentSessionOpened') return;
    const { session_id, instance_id } = fact.data;
    for (const { fixture, follows } of instances) {
      if (follows) fixture.transport.noteSessionOpened(nodeId, session_id, instance_id, at);
    }
  });
});
afterEach(async () => {
  cutStore.always(undefined);
  for (const { agent, fixture, facts } of instances) {
    agent.disconnect();
    await fixture.close();
    await facts.close();
  }
  await told.stop();
  await stores.close();
});

const applied = (generation: number): AgentEvent => ({
  type: 'AgentConfigApplied',
  data: { node_id: nodeId, generation, checksum: `c${generation}`, duration_ms: 1 },
});
const rejected = (generation: number): AgentEvent => ({
  type: 'AgentConfigRejected',
  data: { node_id: nodeId, generation, checksum: `c${generation}`, errors: [] },
});
const shown = (): NodeAgentFacts => told.of(nodeId);
const versionsInLog = async (): Promise<unknown[]> =>
  (await readAll(stores.eventStore, agentsStream(nodeId))).flatMap(({ data }) => data['agent_version'] ?? []);

async function opened(instance: Instance, agentVersion: string): Promise<RawStream & { readonly id: string }> {
  const stream = await instance.fixture.live(instance.agent, { agentVersion });
  return { ...stream, id: stream.opened.sessionId.toString('hex') };
}

test('what it writes late is older: generations, rejects and versions that the node told since stay, and its session lives', async () => {
  cutStore.always(unavailable);
  cut.follows = false;
  const late = await opened(cut, 'old');
  const writings = [applied(5), rejected(6)].map((fact) => cut.facts.agent(nodeId, fact, late.id));
  clock.advance(1_000);
  const live = await opened(other, 'new');
  await other.facts.agent(nodeId, rejected(8), live.id);
  await other.facts.agent(nodeId, applied(7), live.id);
  await eventually(() => shown().applied?.generation).toBe(7);

  cutStore.always(undefined);
  expect(await Promise.all(writings)).toEqual(['recorded', 'recorded']);
  await eventually(versionsInLog).toEqual(['new', 'old']);
  // A fact behind them: the read models hold all of them by then.
  await other.facts.agent(nodeId, { type: 'AgentVersionConflict', data: { node_id: nodeId, reported: '1' } }, live.id);
  await eventually(() => shown().version_conflict_at !== null).toBe(true);
  expect(shown()).toMatchObject({
    agent_version: 'new',
    applied: { generation: 7 },
    rejected: { generation: 8 },
  });
  await live.beat(1);
});

test('what waits there is dropped when it learns that its session is superseded', async () => {
  const old = await opened(cut, 'old');
  await eventually(() => shown().agent_version).toBe('old');
  cutStore.always(unavailable);
  const late = cut.facts.agent(nodeId, applied(5), old.id);
  clock.advance(1_000);
  await opened(other, 'new');
  expect(await late).toBe('superseded');
  expect((await old.status).code).toBe(status.ABORTED);
  cutStore.always(undefined);
  await cut.facts.agent('another-node', applied(1), 'another session');
  expect((await readAll(stores.eventStore, agentsStream(nodeId))).map(({ type }) => type)).not.toContain(
    'AgentConfigApplied',
  );
});

test('what waits there of a session that has ended is dropped when it learns of a newer one', async () => {
  cutStore.always(unavailable);
  const old = await opened(cut, 'old');
  const late = cut.facts.agent(nodeId, applied(5), old.id);
  old.halfClose();
  await old.status;
  clock.advance(1_000);
  await opened(other, 'new');
  expect(await late).toBe('superseded');
  cutStore.always(undefined);
  await eventually(versionsInLog).toEqual(['new']);
});

test('a node that says so itself may run a lower generation than it did', async () => {
  const live = await opened(other, 'new');
  await other.facts.agent(nodeId, applied(7), live.id);
  const fallen: AgentEvent = { ...applied(5), data: { ...applied(5).data, falls_from: 7 } } as AgentEvent;
  await other.facts.agent(nodeId, fallen, live.id);
  await eventually(() => shown().applied?.generation).toBe(5);
  // Written late, a fall from what is no longer recorded counts for nothing.
  const later: AgentEvent = { ...applied(4), data: { ...applied(4).data, falls_from: 7 } } as AgentEvent;
  await other.facts.agent(nodeId, later, live.id);
  await other.facts.agent(nodeId, rejected(9), live.id);
  await eventually(() => shown().rejected?.generation).toBe(9);
  expect(shown().applied?.generation).toBe(5);
});

test('a rekey that lands on another instance, and back again, supersedes nothing and counts as no duplicate', async () => {
  const types = async (): Promise<string[]> =>
    (await readAll(stores.eventStore, agentsStream(nodeId))).map(({ type }) => type);
  let current: RawStream = await opened(cut, 'first');
  for (const [round, next] of [other, cut, other].entries()) {
    const session = await next.agent.session();
    current.say({ $case: 'close', value: { reason: SessionCloseReason.REKEY, message: '', retryAfterMs: 0 } });
    expect((await current.status).code).toBe(status.OK);
    expect(current.closeHeard()).toBeUndefined();
    current = next.agent.attach(session);
    clock.advance(10);
    current.say(helloOf({ agentVersion: `round ${round}` }));
    // The session is recorded, and every instance has read that.
    await eventually(() => shown().agent_version).toBe(`round ${round}`);
    await current.beat(1);
  }
  expect(await types()).toEqual(Array.from({ length: 4 }, () => 'AgentSessionOpened'));
  expect(instances.map(({ fixture }) => fixture.transport.stats().ends.get('superseded'))).toEqual([
    undefined,
    undefined,
  ]);
});
