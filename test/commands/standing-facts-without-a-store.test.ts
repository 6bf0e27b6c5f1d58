/** Which standing facts are due, in which appends they are written again, and what a refused append leads to. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createStandingFacts, type StandingFactsDeps } from '../../src/commands/standing-facts.js';
import { tuning } from '../../src/commands/tuning.js';
import { neverConnected, type NodeAgentFacts } from '../../src/domain/agents/node-agent-facts.js';
import { agentsStream, type ProposedEvent, type RecordedEvent } from '../../src/kernel/event.js';
import { limits } from '../../src/kernel/limits.js';
import { silentLogger } from '../../src/kernel/logger.js';
import type { AppendOutcome, ExpectedRevision } from '../../src/storage/event-store.js';
import type { Leases } from '../../src/storage/read-store.js';
import { createManualClock } from '../support/manual-clock.js';
import { eventOf } from '../support/append-outcomes.js';

const day = 24 * 3600 * 1000;
const minute = 60_000;
const never = new AbortController().signal;
/** The time of the clock and of all facts at the start of a test. */
const start = Date.UTC(2025, 0, 1);

let clock: ReturnType<typeof createManualClock>;
let nodes: Map<string, NodeAgentFacts>;
let online: Map<string, { instance_id: string }>;
let heads: Map<string, number>;
let appends: { stream: string; expected: ExpectedRevision; events: readonly ProposedEvent[] }[];
/** What the next appends answer; then they are written. */
let outcomes: (AppendOutcome | (() => AppendOutcome))[];
let lines: string[];

beforeEach(() => {
  clock = createManualClock(start);
  nodes = new Map();
  online = new Map();
  heads = new Map();
  appends = [];
  outcomes = [];
  lines = [];
});
afterEach(() => void vi.restoreAllMocks());

/** The facts of a node with one session; written into the log at the start of the test. */
const connected: NodeAgentFacts = {
  ...neverConnected,
  connected_once: true,
  agent_version: '1.2.3',
  session: {
    id: 's',
    instance_id: 'i',
    public_ipv4: '203.0.113.9',
    public_ipv6: '',
    at: new Date(start).toISOString(),
  },
  written_since: new Date(start).toISOString(),
};

const leads = (has: boolean): StandingFactsDeps['leases'] => ({
  acquire: async () => has,
  release: async () => undefined,
});

/** The facts of `nodes`. @param holds whether an event of the log is among them */
const factsOf = (holds: StandingFactsDeps['facts']['holds']): StandingFactsDeps['facts'] => ({
  of: (id) => nodes.get(id) ?? neverConnected,
  holds,
});

function job(over: Partial<StandingFactsDeps> = {}) {
  const logger = {
    ...silentLogger,
    warn: (fields: object) => void lines.push(`warn ${JSON.stringify(fields)}`),
    info: (fields: object) => void lines.push(`info ${JSON.stringify(fields)}`),
  };
  let ids = 0;
  return createStandingFacts({
    eventStore: {
      async *read(stream) {
        const revision = heads.get(stream);
        const event: RecordedEvent = { ...eventOf('Any'), stream, revision: revision ?? 0, position: 1 };
        if (revision !== undefined) yield event;
      },
      async append(stream, expected, events) {
        appends.push({ stream, expected, events });
        const scripted = outcomes.shift();
        if (scripted !== undefined) return typeof scripted === 'function' ? scripted() : scripted;
        const revision = (heads.get(stream) ?? -1) + events.length;
        heads.set(stream, revision);
        // The read models follow at once.
        const written_since = new Date(clock.now()).toISOString();
        for (const { data } of events) {
          const id = String(data['node_id']);
          nodes.set(id, { ...(nodes.get(id) ?? connected), written_since });
        }
        return { kind: 'appended', revision, position: undefined };
      },
    },
    leases: leads(true),
    instanceId: 'here',
    clock,
    ids: { next: () => `id ${(ids += 1)}` },
    logger,
    facts: factsOf(async () => true),
    nodeIds: () => nodes.keys(),
    holderOf: (nodeId) => online.get(nodeId)?.instance_id,
    ...over,
  });
}

/** Nodes of one stream, with these facts. */
function neighbours(count: number, facts: NodeAgentFacts = connected): readonly string[] {
  const ids: string[] = [];
  for (let index = 0; ids.length < count; index += 1) {
    if (agentsStream(`m${index}`) === agentsStream('m0')) ids.push(`m${index}`);
  }
  for (const id of ids) nodes.set(id, facts);
  return ids;
}
const written = (): readonly (readonly string[])[] =>
  appends.map(({ events }) => [...new Set(events.map(({ data }) => String(data['node_id'])))]);

describe('facts are due', () => {
  test.each([
    ['at 45 days, when the session is here', 'here', tuning.standingFactsHeldDays, false],
    ['at 50 days, when the session is elsewhere and nobody has written them', 'there', tuning.standingFactsDays, true],
    ['at 50 days, without a session', undefined, tuning.standingFactsDays, true],
  ])('%s, and not before', async (_when, holder, days, leading) => {
    nodes.set('n', connected);
    if (holder !== undefined) online.set('n', { instance_id: holder });
    const standing = job({ leases: leads(leading) });
    clock.advance(days * day - 1);
    expect(await standing.turn(never)).toBe(0);
    clock.advance(1);
    expect(await standing.turn(never)).toBe(1);
    expect(written()).toEqual([['n']]);
  });

  test('only where this instance holds the session, unless it looks after all others', async () => {
    for (const id of ['mine', 'other', 'offline']) nodes.set(id, connected);
    online.set('mine', { instance_id: 'here' });
    online.set('other', { instance_id: 'there' });
    clock.advance(80 * day);
    expect(await job({ leases: leads(false) }).turn(never)).toBe(1);
    expect(written()).toEqual([['mine']]);
    expect(await job().turn(never)).toBe(2);
  });

  test('at once, when a clock that was ahead has written them: nobody knows how old they are', async () => {
    const ahead = (ms: number): NodeAgentFacts => ({
      ...connected,
      written_since: new Date(start + limits.clocks.apartMs + ms).toISOString(),
    });
    nodes.set('ahead', ahead(1));
    nodes.set('as near as clocks are', ahead(0));
    const standing = job();
    expect(await standing.turn(never)).toBe(1);
    expect(written()).toEqual([['ahead']]);
    expect(await standing.turn(never), 'written with the time of now').toBe(0);
  });

  test('never, when the agent has never connected', async () => {
    nodes.set('n', neverConnected);
    const standing = job();
    clock.advance(80 * day);
    expect(await standing.turn(never)).toBe(0);
    expect([appends, lines]).toEqual([[], []]);
    expect(standing.oldestSeconds()).toBe(0);
  });
});

test('the instance that looks after the others holds a lease for two turns, and gives it back', async () => {
  const calls: unknown[] = [];
  const leases: Pick<Leases, 'acquire' | 'release'> = {
    acquire: async (...claim) => calls.push(claim) > 0,
    release: async (...claim) => void calls.push(claim),
  };
  const standing = job({ leases });
  await standing.turn(never);
  await standing.close();
  const [acquired, released] = calls as [[string, { name: string }], unknown];
  const ttlMs = 2 * tuning.standingFactsEveryMs;
  expect(ttlMs).toBe(60 * minute);
  expect(acquired).toEqual([expect.any(String), { name: expect.any(String), holder: 'here', ttlMs, data: null }]);
  expect(released).toEqual([acquired[0], acquired[1].name, 'here']);
});

test('a lease that cannot be given back does not keep the service from ending', async () => {
  const release = async (): Promise<void> => {
    throw new Error('the store is away');
  };
  await job({ leases: { ...leads(true), release } }).close();
});

describe('an append', () => {
  test('holds the facts of a node as one command, in order', async () => {
    nodes.set('n', {
      ...connected,
      applied: { generation: 4, checksum: 'c', at: '2025-01-01T00:00:01.000Z', duration_ms: 12 },
    });
    heads.set(agentsStream('n'), 41);
    clock.advance(51 * day);
    await job().turn(never);
    expect(appends.map(({ stream, expected }) => [stream, expected])).toEqual([[agentsStream('n'), 41]]);
    const [opened, applied] = appends[0]?.events ?? [];
    expect([opened?.type, applied?.type]).toEqual(['AgentSessionOpened', 'AgentConfigApplied']);
    expect(opened?.metadata).toEqual({
      command: { id: expect.any(String), index: 0, count: 2 },
      actor: { type: 'agent', id: 'n', name: 'n' },
      request_id: expect.any(String),
      occurred_at: new Date(start).toISOString(),
      schema_version: 1,
    });
    expect(applied?.metadata.command).toEqual({ ...opened?.metadata.command, index: 1 });
    expect(new Set([opened?.id, applied?.id, opened?.metadata.command.id]).size).toBe(3);
  });

  test('holds as many whole nodes as fit by number, and the rest goes into the next ones', async () => {
    const applied = { generation: 4, checksum: 'c', at: '2025-01-01T00:00:01.000Z', duration_ms: 12 };
    // Three facts each, so that a node would stand across the end of the first append.
    const ids = neighbours(35, { ...connected, applied, rejected: { ...applied, generation: 5, errors: [] } });
    clock.advance(51 * day);
    const standing = job();
    expect(await standing.turn(never)).toBe(35);
    expect(appends.map(({ events }) => events.length)).toEqual([99, 6]);
    expect(written().flat()).toEqual(ids);
    // Each behind the one before.
    expect(appends.map(({ expected }) => expected)).toEqual(['no_stream', 98]);
    expect(standing.written()).toBe(35);
    expect(lines).toEqual(['info {"nodes":35}']);
  });

  test('holds as many bytes as an append may, and at least one node', async () => {
    const rejecting = (bytes: number): NodeAgentFacts => ({
      ...connected,
      rejected: {
        generation: 5,
        checksum: 'c',
        at: '2025-01-01T00:00:01.000Z',
        errors: [{ resource_type: 'l4_chain', resource_id: 'c', path: '', message: 'm'.repeat(bytes) }],
      },
    });
    const [first, second, third, large] = neighbours(4, rejecting(limits.events.appendBytes / 2 - 2000)) as string[];
    nodes.set(large ?? '', rejecting(limits.events.appendBytes));
    clock.advance(51 * day);
    expect(await job().turn(never)).toBe(4);
    expect(written()).toEqual([[first, second], [third], [large]]);
  });

  test('goes to the stream of its nodes', async () => {
    for (let index = 0; index < 3; index += 1) nodes.set(`n${index}`, connected);
    clock.advance(51 * day);
    await job().turn(never);
    expect(new Set(appends.map(({ stream }) => stream)).size).toBe(3);
    for (const { stream, events } of appends) {
      expect(events.map(({ data }) => agentsStream(String(data['node_id'])))).toEqual(events.map(() => stream));
    }
  });
});

test('the age of the oldest facts that a turn leaves is told, in seconds', async () => {
  const since = (days: number) => ({ ...connected, written_since: new Date(start + days * day).toISOString() });
  nodes.set('younger', since(30));
  nodes.set('older', since(10));
  clock.advance(40 * day + 1600);
  const standing = job();
  expect(await standing.turn(never)).toBe(0);
  expect(standing.oldestSeconds()).toBe((30 * day) / 1000 + 2);
  // What has been written again no longer counts.
  clock.advance(25 * day);
  expect(await standing.turn(never)).toBe(1);
  expect(standing.oldestSeconds()).toBe((35 * day) / 1000 + 2);
});

describe('while the stream goes on', () => {
  beforeEach(() => {
    // No waits between tries.
    vi.spyOn(Math, 'random').mockReturnValue(-1);
    nodes.set('n', connected);
    clock.advance(51 * day);
  });
  const conflict: AppendOutcome = { kind: 'conflict', actual: 7 };
  const unknown: AppendOutcome = { kind: 'unknown', cause: 'lost' };

  test('a conflict is read again and tried behind the newer facts, without a word', async () => {
    heads.set(agentsStream('n'), 3);
    outcomes.push(() => {
      heads.set(agentsStream('n'), 7);
      return conflict;
    });
    expect(await job().turn(never)).toBe(1);
    expect(appends.map(({ expected }) => expected)).toEqual([3, 7]);
    expect(lines).toEqual(['info {"nodes":1}']);
  });

  test('a stream whose events have all expired ends where the refused append says', async () => {
    outcomes.push(conflict);
    expect(await job().turn(never)).toBe(1);
    expect(appends.map(({ expected }) => expected)).toEqual(['no_stream', 7]);
  });

  test('facts that another instance has written meanwhile are not written again', async () => {
    outcomes.push(() => {
      nodes.set('n', { ...connected, written_since: new Date(clock.now()).toISOString() });
      return conflict;
    });
    expect(await job().turn(never)).toBe(0);
    expect(appends.length).toBe(1);
    expect(lines).toEqual([]);
  });

  test('an unknown outcome is told and tried again, as often as five times', async () => {
    outcomes.push(...Array<AppendOutcome>(9).fill(unknown));
    const standing = job();
    expect(await standing.turn(never)).toBe(0);
    expect(appends.length).toBe(tuning.standingFactsTries);
    expect(lines).toEqual(appends.map(({ stream }) => `warn ${JSON.stringify({ stream, outcome: unknown.kind })}`));
    expect(standing.oldestSeconds()).toBe((51 * day) / 1000);
  });

  test('each append has its own tries', async () => {
    neighbours(limits.events.appendEvents + 1);
    nodes.delete('n');
    const four = Array<AppendOutcome>(tuning.standingFactsTries - 1).fill(unknown);
    let appended = false;
    outcomes.push(...four);
    const standing = job({
      facts: factsOf(async () => {
        // Behind the first append that was written.
        if (heads.size > 0 && !appended) {
          appended = true;
          outcomes.push(...four);
        }
        return true;
      }),
    });
    expect(await standing.turn(never)).toBe(limits.events.appendEvents + 1);
    expect(new Set(appends.map(({ events }) => events.length))).toEqual(new Set([limits.events.appendEvents, 1]));
  });

  test('nothing is written before the facts hold what is in the stream', async () => {
    heads.set(agentsStream('n'), 3);
    const waits: unknown[] = [];
    const standing = job({ facts: factsOf(async (...wait) => waits.push(wait) < 0) });
    expect(await standing.turn(never)).toBe(0);
    expect([appends, waits]).toEqual([[], [[agentsStream('n'), 3, tuning.standingFactsWaitMs]]]);
  });

  test('an append is followed by a wait for its facts', async () => {
    const waits: unknown[] = [];
    await job({ facts: factsOf(async (...wait) => waits.push(wait) > 0) }).turn(never);
    // The second wait belongs to the look for more that is due.
    expect(waits).toEqual(Array(2).fill([agentsStream('n'), 0, tuning.standingFactsWaitMs]));
  });

  test('a shutdown ends the turn before the next append', async () => {
    const stop = new AbortController();
    outcomes.push(() => {
      stop.abort();
      return unknown;
    });
    neighbours(limits.events.appendEvents + 1);
    const standing = job();
    await standing.turn(stop.signal);
    expect(appends.length).toBe(1);
    await standing.turn(stop.signal);
    expect(appends.length).toBe(1);
  });
});
