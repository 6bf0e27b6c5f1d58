/**
 * Facts expire after 90 days; what they show does not. Real embedded stores that enforce the retention, real read models,
 * and a clock that only the test moves. What a refused append leads to is in `standing-facts-without-a-store.test.ts`.
 */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createFactRecorder, setRetentions } from '../../src/commands/facts.js';
import type { FactRecorder } from '../../src/commands/port.js';
import { createStandingFacts, type StandingFacts } from '../../src/commands/standing-facts.js';
import type { AgentEvent } from '../../src/domain/agents/facts.js';
import type { NodeAgentFacts } from '../../src/domain/agents/node-agent-facts.js';
import { agentsStream } from '../../src/kernel/event.js';
import { randomIds } from '../../src/kernel/ids.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { readAll } from '../storage/contract/appending.js';
import { createFleetLog, type FleetLog } from '../support/fleet-log.js';
import { followFacts, type FollowedFacts } from '../support/agent-facts.js';
import { openReadSide, type ReadSide } from '../support/read-side.js';

const day = 24 * 3600 * 1000;
const never = new AbortController().signal;
let side: ReadSide;
let fleet: FleetLog;
let facts: FactRecorder;
let shown: FollowedFacts;

beforeEach(async () => {
  side = await openReadSide();
  const { eventStore } = side.stores;
  await setRetentions(eventStore);
  fleet = await createFleetLog(eventStore);
  facts = createFactRecorder({ eventStore, clock: side.clock, ids: randomIds, logger: silentLogger });
  shown = await followFacts(eventStore);
});
afterEach(async () => {
  await facts.close();
  await shown.stop();
  await side.close();
});

interface KnownNode {
  readonly id: string;
  readonly agent: NodeAgentFacts;
}

/** All nodes, with their facts. */
const known = (from: FollowedFacts): readonly KnownNode[] =>
  [...fleet.fleet.tables.node.ids()].map((id) => ({ id, agent: from.of(id) }));

/** The job of an instance, which looks after all nodes. */
function job(): StandingFacts {
  const { eventStore, readStore } = side.stores;
  return createStandingFacts({
    eventStore,
    leases: readStore.leases,
    instanceId: 'one',
    clock: side.clock,
    ids: randomIds,
    logger: silentLogger,
    facts: shown,
    nodeIds: () => fleet.fleet.tables.node.ids(),
    holderOf: () => undefined,
  });
}

const settled = (): Promise<void> => shown.settled();

async function tell(nodeId: string, ...events: readonly AgentEvent[]): Promise<void> {
  for (const event of events) {
    expect(await facts.agent(nodeId, event, 'session')).toBe('recorded');
    side.clock.advance(1000);
  }
  await settled();
}

const stamp = (node_id: string, generation: number) => ({ node_id, generation, checksum: `c${generation}` });
const openedBy = (node_id: string, agent_version = '1.2.3'): AgentEvent => ({
  type: 'AgentSessionOpened',
  data: {
    node_id,
    session_id: 'ab',
    instance_id: 'one',
    agent_version,
    public_ipv4: '203.0.113.9',
    public_ipv6: '2001:db8::9',
    detected_addresses: ['10.0.0.1'],
    multiplex: true,
    multiplex_port: 9000,
    features: ['confirm', 'tcp_raw'],
  },
});
const applied = (id: string, generation: number): AgentEvent => ({
  type: 'AgentConfigApplied',
  data: { ...stamp(id, generation), duration_ms: 12 },
});
const rejected = (id: string, generation: number): AgentEvent => ({
  type: 'AgentConfigRejected',
  data: {
    ...stamp(id, generation),
    errors: [{ resource_type: 'l4_chain', resource_id: 'c', path: 'hops[0]', message: 'in use' }],
  },
});
const conflict = (node_id: string): AgentEvent => ({
  type: 'AgentVersionConflict',
  data: { node_id, reported: '9007199254740993' },
});

/** The nodes as a fresh fold of what the log still holds shows them. */
async function rebuilt(): Promise<readonly KnownNode[]> {
  const { eventStore } = side.stores;
  await eventStore.trim();
  const fresh = await followFacts({ ...eventStore, loadFoldCheckpoint: () => Promise.resolve(undefined) });
  const nodes = known(fresh);
  await fresh.stop();
  return nodes;
}
const all = (): readonly KnownNode[] => known(shown);

test('after 200 days a rebuild of a log that has dropped its old facts gives what is shown', async () => {
  for (const id of ['applied', 'rejects', 'both', 'conflict', 'never', 'busy']) await fleet.createNode(id);
  await tell('applied', openedBy('applied'), applied('applied', 5));
  await tell('rejects', openedBy('rejects'), rejected('rejects', 6));
  await tell('both', openedBy('both'), applied('both', 4), rejected('both', 7));
  await tell('conflict', openedBy('conflict'), applied('conflict', 3), conflict('conflict'));
  await tell('busy', openedBy('busy'), applied('busy', 1));
  const before = all();
  const standing = job();
  for (let days = 0; days < 200; days += 8) {
    side.clock.advance(8 * day);
    if (days % 20 === 0) await tell('busy', applied('busy', days + 2));
    await standing.turn(never);
    await settled();
    // The contract: written again before they are 60 days old.
    expect(standing.oldestSeconds()).toBeLessThan(60 * 24 * 3600);
    await side.stores.eventStore.trim();
  }
  const after = all();
  expect(await rebuilt()).toEqual(after);
  for (const id of ['applied', 'rejects', 'both', 'conflict']) {
    const kept = await readAll(side.stores.eventStore, agentsStream(id));
    expect(kept.filter(({ data }) => data['node_id'] === id && data['again_at'] === undefined)).toEqual([]);
  }
  const asShown = (nodes: readonly KnownNode[]) =>
    nodes.filter(({ id }) => id !== 'busy').map(({ id, agent: { written_since: _, ...agent } }) => ({ id, agent }));
  expect(asShown(after)).toEqual(asShown(before));
  expect(shown.of('never').connected_once).toBe(false);
  expect(shown.of('conflict').version_conflict).toBe('9007199254740993');
  // Bounded: five nodes, four times at the most.
  expect(standing.written()).toBeLessThanOrEqual(5 * 4);
  await standing.close();
});

describe('facts are written again', () => {
  test('with their content and time, and change nothing that is shown; a second turn writes nothing', async () => {
    await fleet.createNode('n');
    await tell('n', openedBy('n'), applied('n', 5), rejected('n', 7), conflict('n'));
    const first = (await readAll(side.stores.eventStore, agentsStream('n'))).slice(-4);
    side.clock.advance(51 * day);
    const standing = job();
    expect(await standing.turn(never)).toBe(1);
    const again = (await readAll(side.stores.eventStore, agentsStream('n'))).slice(-4);
    expect(again.map(({ type, metadata }) => [type, metadata.occurred_at])).toEqual(
      first.map(({ type, metadata }) => [type, metadata.occurred_at]),
    );
    const again_at = new Date(side.clock.now()).toISOString();
    expect(again.map(({ data }) => data)).toEqual(first.map(({ data }) => ({ ...data, again_at })));
    expect(new Set(again.map(({ metadata }) => metadata.command.id)).size).toBe(1);
    expect(await standing.turn(never)).toBe(0);
  });
});
