/** What the facts about a node's agent amount to: late ones, and expired ones. */
import { describe, expect, it } from 'vitest';
import { agentEvent, type AgentEvent } from '../../src/domain/agents/facts.js';
import { standingFacts } from '../../src/domain/agents/standing-facts.js';
import { evolveAgentFacts, neverConnected, type NodeAgentFacts } from '../../src/domain/agents/node-agent-facts.js';
import { agentsStream, streams, type RecordedEvent } from '../../src/kernel/event.js';

type Data<T extends AgentEvent['type']> = Extract<AgentEvent, { readonly type: T }>['data'];
interface Fact {
  readonly event: AgentEvent;
  readonly at: string;
  /** The session that told it. */
  readonly by?: string;
}

const node_id = 'node';
/** A moment of one fixed hour, by its minute. */
const minute = (count: number): string => `2025-01-01T00:${String(count).padStart(2, '0')}:00.000Z`;

const session = (at: number, fields: Partial<Data<'AgentSessionOpened'>> = {}): Fact => ({
  at: minute(at),
  event: {
    type: 'AgentSessionOpened',
    data: {
      node_id,
      session_id: `session of ${at}`,
      instance_id: 'instance',
      agent_version: `1.0.${at}`,
      public_ipv4: '192.0.2.1',
      public_ipv6: '2001:db8::1',
      detected_addresses: ['10.0.0.1'],
      multiplex: true,
      multiplex_port: 4433,
      features: ['confirm', 'tcp_raw'],
      ...fields,
    },
  },
});
const applied = (at: number, generation: number, fields: Partial<Data<'AgentConfigApplied'>> = {}): Fact => ({
  at: minute(at),
  event: {
    type: 'AgentConfigApplied',
    data: { node_id, generation, checksum: `sum ${generation}`, duration_ms: 7, ...fields },
  },
});
const errors = [{ resource_type: 'l4_chain', resource_id: 'chain', path: 'hops[0]', message: 'port in use' }];
const rejected = (at: number, generation: number, fields: Partial<Data<'AgentConfigRejected'>> = {}): Fact => ({
  at: minute(at),
  event: {
    type: 'AgentConfigRejected',
    data: { node_id, generation, checksum: `sum ${generation}`, errors, ...fields },
  },
});
const conflict = (at: number, reported = '0.9.0'): Fact => ({
  at: minute(at),
  event: { type: 'AgentVersionConflict', data: { node_id, reported } },
});
const duplicate = (at: number, until: number): Fact => ({
  at: minute(at),
  event: { type: 'AgentDuplicateSeen', data: { node_id, until: minute(until) } },
});

const foldOf = (facts: readonly Fact[], from: NodeAgentFacts = neverConnected): NodeAgentFacts =>
  facts.reduce((before, { event, at, by = 'unknown' }) => evolveAgentFacts(before, event, at, by), from);

describe('a session', () => {
  it('tells what the agent reported, and who holds it', () => {
    expect(foldOf([session(1)])).toEqual({
      ...neverConnected,
      connected_once: true,
      agent_version: '1.0.1',
      detected_addresses: ['10.0.0.1'],
      reported_multiplex: true,
      reported_multiplex_port: 4433,
      features: ['confirm', 'tcp_raw'],
      session: {
        id: 'session of 1',
        instance_id: 'instance',
        public_ipv4: '192.0.2.1',
        public_ipv6: '2001:db8::1',
        at: minute(1),
      },
      written_since: minute(1),
    });
  });

  it('without a port for many sessions on one connection has none, which the wire writes as 0', () => {
    expect(foldOf([session(1, { multiplex_port: 0 })]).reported_multiplex_port).toBeNull();
  });

  it('that an earlier release recorded says nothing of what its agent can run', () => {
    const { event } = session(1);
    const { features: _, ...data } = event.data as Data<'AgentSessionOpened'>;
    expect(foldOf([{ at: minute(1), event: { type: 'AgentSessionOpened', data } }]).features).toEqual([]);
  });

  it.each([
    ['older than the one that is known', 2, session(1), '1.0.2'],
    ['as old as the one that is known', 2, session(2, { agent_version: 'the same time' }), 'the same time'],
    ['newer than the one that is known', 2, session(3), '1.0.3'],
  ])('that is written late, %s', (_, at, late, version) => {
    const { agent_version } = foldOf([session(at), late]);
    expect(agent_version).toBe(version);
  });
});

describe('an apply', () => {
  it('is kept with its duration, and ends a conflict of versions', () => {
    const facts = foldOf([session(1), conflict(2), applied(3, 5)]);
    expect(facts.applied).toEqual({ generation: 5, checksum: 'sum 5', at: minute(3), duration_ms: 7 });
    expect(facts).toMatchObject({ version_conflict_at: null });
    expect(facts).not.toHaveProperty('version_conflict');
  });

  it.each([
    ['a lower generation that is late tells nothing', applied(3, 4), 5, 2],
    ['the same generation again is the newer report', applied(3, 5), 5, 3],
    ['a higher generation replaces it', applied(3, 6), 6, 3],
    ['a lower generation that the node fell back to replaces it', applied(3, 4, { falls_from: 5 }), 4, 3],
    ['a fall from a generation that is not the known one is late', applied(3, 4, { falls_from: 6 }), 5, 2],
  ])('%s', (_, next, generation, at) => {
    expect(foldOf([applied(2, 5), next]).applied).toMatchObject({ generation, at: minute(at) });
  });

  it('of any generation is taken when none is known', () => {
    expect(foldOf([applied(1, 0)]).applied?.generation).toBe(0);
  });

  it.each([
    ['of an earlier generation', 4, true],
    ['of the same generation', 5, true],
    ['of a later generation', 6, false],
  ])('outlives a reject %s', (_, generation, outlived) => {
    expect(foldOf([rejected(1, generation), applied(2, 5)]).rejected === null).toBe(outlived);
  });
});

describe('a reject', () => {
  it.each([
    ['below the applied generation is late', [applied(1, 5)], rejected(2, 4), undefined],
    ['of the applied generation is shown', [applied(1, 5)], rejected(2, 5), 5],
    ['above the applied generation is shown', [applied(1, 5)], rejected(2, 6), 6],
    ['below the rejected generation is late', [applied(1, 3), rejected(1, 5)], rejected(2, 4), 5],
    ['is shown when nothing was applied', [rejected(1, 5)], rejected(2, 6), 6],
    ['below the rejected generation is late, when nothing was applied', [rejected(1, 5)], rejected(2, 4), 5],
  ])('%s', (_, before, late, generation) => {
    expect(foldOf([...before, late]).rejected?.generation).toBe(generation);
  });

  it('of a lower generation that the node ran is the later report, and leaves the higher one that is shown', () => {
    const back = [rejected(1, 9), applied(2, 5)];
    expect(foldOf(back).rejected).toMatchObject({ generation: 9, applied_since: true });
    const again = foldOf([...back, rejected(3, 5)]);
    expect(again.rejected).toEqual({ generation: 9, checksum: 'sum 9', at: minute(1), errors });
  });

  it('shows the errors of the node', () => {
    expect(foldOf([rejected(1, 5)]).rejected).toEqual({ generation: 5, checksum: 'sum 5', at: minute(1), errors });
  });
});

describe('a report of a session that a newer one has superseded', () => {
  const newer = [session(5, { session_id: 'newer' }), applied(6, 5)];

  it('does not count when it is written after it', () => {
    const facts = foldOf(newer);
    expect(foldOf([{ ...rejected(4, 5), by: 'older' }], facts)).toBe(facts);
    expect(foldOf([{ ...applied(4, 6), by: 'older' }], facts)).toBe(facts);
  });

  it.each([
    ['of the session itself, whose clock was set back', { ...rejected(4, 5), by: 'newer' }],
    ['of a session that has replaced it by a rekey, which no fact announces', { ...rejected(7, 5), by: 'next' }],
    ['of before, written again so that it does not expire', rejected(4, 5, { again_at: minute(50) })],
  ])('is none that is %s', (_, report) => {
    expect(foldOf([...newer, report]).rejected?.generation).toBe(5);
  });
});

describe('the time since which the log holds what is shown', () => {
  it.each([
    ['a session', session(1)],
    ['an apply', applied(1, 1)],
    ['a reject', rejected(1, 1)],
    ['a conflict of versions', conflict(1)],
    ['a second agent', duplicate(1, 3)],
  ])('begins with %s, and later facts leave it', (_, first) => {
    expect(foldOf([first]).written_since).toBe(minute(1));
    expect(foldOf([first, session(9), applied(10, 9)]).written_since).toBe(minute(1));
  });

  it('moves on when the facts are written again', () => {
    const again_at = minute(30);
    expect(foldOf([session(1), applied(2, 1), session(1, { again_at })]).written_since).toBe(again_at);
  });

  it('is not touched by a late fact, which tells nothing at all', () => {
    const facts = foldOf([session(2), applied(3, 5)]);
    const late = [session(1), applied(4, 4, { again_at: minute(40) })];
    expect(late.map((fact) => foldOf([fact], facts) === facts)).toEqual([true, true]);
  });
});

describe('facts that are about to expire', () => {
  const again_at = minute(50);
  const of = (facts: NodeAgentFacts) => standingFacts(node_id, facts, again_at);

  it('are none for a node whose agent has never connected', () => {
    expect(of(neverConnected)).toEqual([]);
  });

  it.each([
    ['all of them', [session(1), applied(2, 5), rejected(3, 6), conflict(4), duplicate(5, 20)]],
    ['a session alone', [session(1, { multiplex: false, multiplex_port: 0 })]],
    ['an apply alone', [applied(2, 5)]],
    ['a reject alone', [rejected(3, 6)]],
    ['a reject of what was applied before', [applied(2, 6), rejected(3, 6)]],
    ['an apply of a lower generation than was rejected before', [rejected(2, 6), applied(3, 5)]],
    ['a conflict alone', [conflict(4)]],
    ['a second agent alone', [duplicate(5, 20)]],
  ])('are written again as they were, with their times: %s', (_, facts) => {
    const folded = foldOf(facts);
    const marked = facts.map(({ event: { type, data }, at }) => ({
      // The second agent is shown until a time, and that is what is left of it.
      at: type === 'AgentDuplicateSeen' ? minute(20) : at,
      event: { type, data: { ...data, again_at } },
    }));
    expect(of(folded)).toEqual(marked);
    // Whether the old ones have expired by then or not.
    expect(foldOf(of(folded))).toEqual({ ...folded, written_since: again_at });
    expect(foldOf(of(folded), folded)).toEqual({ ...folded, written_since: again_at });
  });
});

describe('an event of another stream', () => {
  const event = (stream: string) => ({ stream, revision: 0, type: 'AgentDuplicateSeen' }) as RecordedEvent;

  it('is no fact about an agent', () => {
    expect(agentEvent(event(agentsStream(node_id)))).toMatchObject({ type: 'AgentDuplicateSeen' });
    expect(() => agentEvent(event(streams.fleet))).toThrow(`${streams.fleet}@0 is no event of svc-agents-`);
  });
});
