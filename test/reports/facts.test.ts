/**
 * The facts about agents in memory: the fold of the log at every place, however it is delivered, from a checkpoint on or
 * from the start. What a fact does to a node's facts is in `test/domain`.
 */
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { neverConnected } from '../../src/domain/agents/node-agent-facts.js';
import { agentsStream, streams, type RecordedCommand } from '../../src/kernel/event.js';
import { uuidFromName } from '../../src/kernel/ids.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { openAgentFacts, type AgentFactsFold } from '../../src/reports/facts.js';
import type { FoldCheckpoint } from '../../src/storage/event-store.js';
import { followFacts } from '../support/agent-facts.js';
import { factsOf } from '../support/facts-model.js';
import { eventually } from '../support/eventually.js';
import {
  append,
  asRecorded,
  configApplied,
  fleetAfter,
  planned,
  randomLog,
  sessionOpened,
  type Planned,
} from '../support/read-side.js';
import { storesInMemory } from '../support/stores-in-memory.js';

const node = uuidFromName('a node with facts');
const created = (): Planned =>
  planned(streams.fleet, [
    { type: 'NodeCreated', data: { node_id: node, name: 'n', description: null, address: null, labels: {} } },
  ]);
const deleted = (): Planned => planned(streams.fleet, [{ type: 'NodeDeleted', data: { node_id: node } }]);
const sealing = { seal: (text: string) => `sealed ${text}` };
const never = new AbortController().signal;

/** A fold over a checkpoint that is kept here. */
async function fold(kept: { checkpoint?: FoldCheckpoint } = {}): Promise<AgentFactsFold> {
  return openAgentFacts({
    eventStore: {
      loadFoldCheckpoint: () => Promise.resolve(kept.checkpoint),
      saveFoldCheckpoint(_name, checkpoint) {
        kept.checkpoint = checkpoint;
        return Promise.resolve();
      },
    },
    sealing,
    logger: silentLogger,
  });
}

const ofItsStreams = (log: readonly RecordedCommand[], { streams: own }: AgentFactsFold) =>
  log.filter(({ stream }) => own.includes(stream));

describe('the fold of the facts', () => {
  it('is that of the log, with repeats, and from a checkpoint at any place on', () =>
    fc.assert(
      fc.asyncProperty(fc.nat(1_000_000), fc.nat(), fc.nat(), async (seed, cut, back) => {
        const plan = randomLog(seed, 30);
        const log = asRecorded(plan);
        const fleet = fleetAfter(log);
        const kept: { checkpoint?: FoldCheckpoint } = {};
        const first = await fold(kept);
        const own = ofItsStreams(log, first);
        const at = cut % (own.length + 1);
        first.apply(own.slice(0, at));
        await first.save(never);
        const second = await fold(kept);
        expect(second.position()).toBe(first.position());
        // As after a lost subscription: some of it comes again.
        second.apply(own.slice(Math.max(0, at - (back % 5))));
        first.apply(own.slice(at));
        for (const id of nodesIn(log)) {
          expect(second.of(id)).toEqual(fleet.tables.node.get(id) === undefined ? neverConnected : factsOf(plan, id));
          expect(first.of(id)).toEqual(second.of(id));
        }
      }),
      { numRuns: 60 },
    ));

  it('ignores what is told of a node that does not exist, and a restored node begins without facts', async () => {
    const facts = await fold();
    facts.apply(asRecorded([sessionOpened(node), created()]));
    expect(facts.of(node)).toEqual(neverConnected);
    const later = asRecorded([created(), sessionOpened(node), deleted(), sessionOpened(node, '2.0.0')]).slice(1);
    facts.apply(later.map((command) => moved(command, 100)));
    expect(facts.of(node)).toEqual(neverConnected);
    facts.apply(asRecorded([created()]).map((command) => moved(command, 200)));
    expect(facts.of(node)).toEqual(neverConnected);
  });

  it('tells each fact once it is folded, and none again', async () => {
    const facts = await fold();
    const told: unknown[] = [];
    const stop = facts.onFact(({ fact, at }) => void told.push([fact.type, at, facts.of(node).agent_version]));
    const opened = sessionOpened(node, '7.0.0');
    const log = asRecorded([created(), opened]);
    facts.apply(log);
    facts.apply(log);
    expect(told).toEqual([['AgentSessionOpened', opened.at, '7.0.0']]);
    stop();
    facts.apply(asRecorded([sessionOpened(node)]).map((command) => moved(command, 100)));
    expect(told).toHaveLength(1);
  });

  it('is waited for by the place of a fact, with a bound', async () => {
    const facts = await fold();
    const stream = agentsStream(node);
    const waiting = facts.holds(stream, 0, 10_000);
    facts.apply(asRecorded([created(), sessionOpened(node)]));
    expect([await waiting, await facts.holds(stream, 1, 1)]).toEqual([true, false]);
    const atTheEnd = facts.holds(stream, 1, 10_000);
    facts.close();
    expect(await atTheEnd).toBe(false);
  });
});

describe('a checkpoint of the facts', () => {
  it.each<[string, (stored: FoldCheckpoint) => FoldCheckpoint]>([
    ['of another version', (stored) => ({ ...stored, foldVersion: 0 })],
    ['whose bytes were changed', (stored) => ({ ...stored, bytes: Buffer.concat([stored.bytes, Buffer.from('x\n')]) })],
    ['that another installation sealed', (stored) => ({ ...stored, sha256: 'x' })],
  ])('%s is not used', async (_what, change) => {
    const kept: { checkpoint?: FoldCheckpoint } = {};
    const first = await fold(kept);
    first.apply(asRecorded([created(), sessionOpened(node)]));
    await first.save(never);
    kept.checkpoint = change(kept.checkpoint!);
    const again = await fold(kept);
    expect([again.position(), again.of(node)]).toEqual([0, neverConnected]);
  });
});

describe('an instance', () => {
  let stores: ReturnType<typeof storesInMemory>;
  beforeEach(() => {
    stores = storesInMemory();
  });
  const closing: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const close of closing.splice(0)) await close();
  });

  it('goes on from the checkpoint that the last one left', async () => {
    const { eventStore } = stores;
    for (const one of [created(), sessionOpened(node), configApplied(node, 3)]) await append(eventStore, one);
    const first = await followFacts(eventStore, { checkpointEvery: 2 });
    closing.push(first.stop);
    await eventually(async () => (await eventStore.loadFoldCheckpoint('svc-agents'))?.position).toBe(first.position());
    const from: unknown[] = [];
    const second = await followFacts({
      ...eventStore,
      subscribe(options) {
        from.push(options.after);
        return eventStore.subscribe(options);
      },
    });
    closing.push(second.stop);
    const { position } = (await eventStore.loadFoldCheckpoint('svc-agents'))!;
    expect(from).toEqual([{ commit: position, prepare: position }]);
    expect(second.of(node)).toEqual(first.of(node));
    await append(eventStore, configApplied(node, 4));
    await second.settled();
    expect(second.of(node).applied?.generation).toBe(4);
  });

  it('that meets a fact of a newer release says so, and follows no further', async () => {
    const { eventStore } = stores;
    await append(eventStore, created());
    const facts = await followFacts(eventStore);
    closing.push(facts.stop);
    await append(eventStore, planned(agentsStream(node), [{ type: 'AgentSang', data: { node_id: node } }]));
    await eventually(facts.failure).toContain('AgentSang');
    await append(eventStore, sessionOpened(node));
    expect(facts.of(node)).toEqual(neverConnected);
  });
});

/** Every node that an event names. */
function nodesIn(log: readonly RecordedCommand[]): ReadonlySet<string> {
  const named = log.flatMap(({ events }) => events.map(({ data }) => data['node_id']));
  return new Set(named.filter((id) => typeof id === 'string'));
}

/** The command, that many positions later. */
function moved(command: RecordedCommand, by: number): RecordedCommand {
  const [first, ...rest] = command.events.map((event) => ({ ...event, position: event.position + by }));
  return { ...command, events: [first!, ...rest] };
}
