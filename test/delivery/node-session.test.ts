/** What the sessions of a node are offered, beside answers that are still being made. */
import { neverConnected } from '../../src/domain/agents/node-agent-facts.js';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Answerer } from '../../src/delivery/answer.js';
import { createApplyHistories } from '../../src/delivery/apply-history.js';
import { stampOf, emptyApplyHistory } from '../../src/delivery/target.js';
import type { Newest } from '../../src/delivery/newest.js';
import { createSessionServer, type SessionServerDeps } from '../../src/delivery/node-session.js';
import type { ConfigAnswer, SnapshotPush } from '../../src/delivery/port.js';
import { createSessionRegistry } from '../../src/delivery/session-registry.js';
import { createManualClock, type ManualClock } from '../support/manual-clock.js';

const pushOf = (generation: number): SnapshotPush => ({
  generation,
  checksum: Buffer.alloc(32, generation),
  payload: Buffer.alloc(10 * generation),
});
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

let generation: number | undefined;
let touched: string[];
let offers: number[];
let clock: ManualClock;

beforeEach(() => {
  [generation, touched, offers, clock] = [1, [], [], createManualClock()];
});

/** Sessions whose requests are answered with the newest snapshot, as delivery does. */
function create(deps: Partial<SessionServerDeps> = {}) {
  const registry = createSessionRegistry();
  const histories = createApplyHistories({
    lastGood: { stamp: () => Promise.resolve(undefined) },
    nodeFacts: () => neverConnected,
  });
  const newest = (): Newest<SnapshotPush> => {
    const push = pushOf(generation ?? 0);
    return { kind: 'made', stamp: stampOf(push), value: push };
  };
  const answer: Answerer = async (session) => {
    await Promise.resolve();
    await histories.load(session.nodeId);
    session.considered = generation ?? 0;
    return { kind: 'snapshot', push: pushOf(generation ?? 0) };
  };
  const sessions = createSessionServer({
    sessions: registry,
    histories,
    applyReports: { report: () => Promise.resolve(), confirm: () => undefined },
    reportTurns: { turn: () => undefined },
    retries: { reload: () => undefined },
    newest: {
      get: newest,
      forget: () => undefined,
      stamp: () => {
        throw new Error('not asked');
      },
    },
    timeToApplied: { offered: () => undefined },
    clock,
    answer,
    generation: () => generation,
    waits: () => false,
    need: () => undefined,
    mayPush: () => true,
    touch: (nodeId) => void touched.push(nodeId),
    ...deps,
  });
  const open = (id: string) => sessions.open('n1', id, { offer: (push) => void offers.push(push.generation) });
  return { registry, histories, sessions, open };
}

const ask = (session: { request(version: bigint, checksum: Uint8Array): Promise<ConfigAnswer> }) =>
  session.request(0n, Buffer.alloc(0));

describe('a session', () => {
  it('says when its report may be worked on, and takes it with the time when it came', async () => {
    const taken: [string, number][] = [];
    const later = Promise.resolve();
    const { open } = create({
      reportTurns: { turn: () => later },
      applyReports: {
        report: async (_record, { sessionId }, _report, at) => void taken.push([sessionId, at]),
        confirm: () => undefined,
      },
    });
    const session = open('s1');
    expect(session.reportTurn()).toBe(later);
    const report = { generation: 1n, checksum: Buffer.alloc(32), errors: [], durationMs: 1 };
    await session.report({ ...report, status: 'applied' }, 17);
    expect(taken).toEqual([['s1', 17]]);
  });

  it('is offered nothing before its first answer, and every newer snapshot once afterwards', async () => {
    const { sessions, open } = create();
    const session = open('s1');
    expect(await sessions.serve('n1')).toBe(0);
    await ask(session);
    await turn();
    expect(await sessions.serve('n1')).toBe(0);
    generation = 2;
    expect(await sessions.serve('n1')).toBe(20);
    expect(await sessions.serve('n1')).toBe(0);
    expect([offers, sessions.offered()]).toEqual([[2], 1]);
  });

  it('has not taken what it was offered since the first offer, or since it took an older one, and until it took the newest', async () => {
    const { registry, sessions, open } = create();
    const session = open('s1');
    await ask(session);
    await turn();
    const offerAfter = async (ms: number): Promise<void> => {
      clock.advance(ms);
      generation = (generation ?? 0) + 1;
      await sessions.serve('n1');
    };
    expect(registry.unsentSince('n1')).toBeUndefined();
    const began = clock.monotonic();
    await offerAfter(10);
    await offerAfter(10);
    expect(registry.unsentSince('n1')).toBe(began + 10);
    clock.advance(10);
    session.sent(pushOf(2));
    expect(registry.unsentSince('n1')).toBe(began + 30);
    session.sent(pushOf(3));
    expect(registry.unsentSince('n1')).toBeUndefined();
    await offerAfter(10);
    expect(registry.unsentSince('n1')).toBe(began + 40);
    // As during a rekey: the other one has nothing waiting.
    const next = open('s2');
    expect(registry.unsentSince('n1')).toBeUndefined();
    next.close();
    session.close();
    expect(registry.unsentSince('n1')).toBeUndefined();
  });

  it.each<[string, ConfigAnswer, readonly number[]]>([
    ['unchanged', { kind: 'unchanged', generation: 1 }, [2]],
    ['draining', { kind: 'draining', retryAfterMs: 1 }, []],
    ['raised_too_soon', { kind: 'raised_too_soon', reported: 5, retryAfterMs: 1 }, []],
    ['an absurd version', { kind: 'absurd_version' }, []],
  ])('may be offered snapshots after this answer, or not: %s', async (_name, answer, expected) => {
    const { sessions, open, histories } = create({ answer: () => Promise.resolve(answer) });
    const session = open('s1');
    await histories.load('n1');
    await ask(session);
    await turn();
    generation = 2;
    await sessions.serve('n1');
    expect(offers).toEqual(expected);
  });

  it('is served again when its node changed while an answer was made, and not when it did not', async () => {
    const { sessions, open } = create();
    const session = open('s1');
    await ask(session);
    await turn();
    expect(touched).toEqual([]);
    const asking = ask(session);
    await asking;
    generation = 2;
    // The caller has not seen the answer yet, and nothing overtakes it.
    expect(await sessions.serve('n1')).toBe(0);
    await turn();
    expect(touched).toEqual(['n1']);
    expect(await sessions.serve('n1')).toBe(20);
  });

  it('is not served again after an answer once it is closed, or when it had none', async () => {
    const { open } = create();
    const closed = open('s1');
    await ask(closed);
    generation = 2;
    closed.close();
    await turn();
    const { open: openOther } = create({ answer: () => Promise.reject(new Error('failed')) });
    const unanswered = openOther('s2');
    await expect(ask(unanswered)).rejects.toThrow('failed');
    await turn();
    expect(touched).toEqual([]);
  });

  it('is not served again when its node is gone', async () => {
    const { sessions, open } = create();
    const session = open('s1');
    await ask(session);
    generation = undefined;
    await turn();
    expect([touched, await sessions.serve('n1')]).toEqual([[], 0]);
  });

  it('waits when pushing is stopped while its snapshot is made', async () => {
    let allowed = true;
    const { sessions, open } = create({ mayPush: () => allowed });
    await ask(open('s1'));
    await turn();
    generation = 2;
    allowed = false;
    expect(await sessions.serve('n1')).toBe(0);
    expect([offers, touched]).toEqual([[], ['n1']]);
    allowed = true;
    expect(await sessions.serve('n1')).toBe(20);
  });

  it('is offered nothing that its node rejected, and what comes after it', async () => {
    const { sessions, open, histories } = create();
    await ask(open('s1'));
    await turn();
    generation = 2;
    const record = await histories.load('n1');
    record.history = { ...emptyApplyHistory, rejected: [{ ...stampOf(pushOf(2)), sessionId: 's1', errors: '' }] };
    expect(await sessions.serve('n1')).toBe(20);
    expect([offers, sessions.offered()]).toEqual([[], 0]);
    generation = 3;
    await sessions.serve('n1');
    expect(offers).toEqual([3]);
  });

  it('is offered nothing while its newest snapshot is withheld', async () => {
    const { sessions, open } = create({
      newest: { get: () => ({ kind: 'withheld' }), stamp: () => ({ kind: 'withheld' }), forget: () => undefined },
    });
    await ask(open('s1'));
    await turn();
    generation = 2;
    expect([await sessions.serve('n1'), offers]).toEqual([0, []]);
  });
});

describe('the apply history', () => {
  it('is released with the last session of the node, not with the one before', async () => {
    const { open, histories } = create();
    const [one, two] = [open('s1'), open('s2')];
    await ask(one);
    one.close();
    expect(histories.peek('n1')).toBeDefined();
    two.close();
    expect(histories.peek('n1')).toBeUndefined();
  });

  it('is released when its session was closed while it was loaded, by a request or a report', async () => {
    const { open, histories } = create();
    const asking = open('s1');
    const answer = ask(asking);
    asking.close();
    await answer;
    expect(histories.peek('n1')).toBeUndefined();
    const reporting = open('s2');
    // The last report of a stream that has ended.
    reporting.close();
    const report = { generation: 1n, checksum: Buffer.alloc(32, 1), errors: [], durationMs: 1 };
    const reported = reporting.report({ ...report, status: 'applied' }, 0);
    await reported;
    expect(histories.peek('n1')).toBeUndefined();
  });

  it('stays when another session of the node is open by then', async () => {
    const { open, histories } = create();
    const asking = open('s1');
    const answer = ask(asking);
    asking.close();
    const other = ask(open('s2'));
    await Promise.all([answer, other]);
    expect(histories.peek('n1')).toBeDefined();
  });

  it('that has ended while it was told to reload leaves nothing behind', async () => {
    const reloaded: string[] = [];
    const { open, histories } = create({ retries: { reload: ({ nodeId }) => void reloaded.push(nodeId) } });
    const session = open('s1');
    const reloading = session.reload();
    session.close();
    await reloading;
    expect([reloaded, histories.peek('n1')]).toEqual([['n1'], undefined]);
  });
});

describe('what was pushed to a node', () => {
  it('is the newest generation that was sent as a whole to one of its open sessions, and when', async () => {
    const { open, registry } = create();
    const [one, two] = [open('s1'), open('s2')];
    expect(registry.pushed('n1')).toBeUndefined();
    one.sent(pushOf(3));
    const at = clock.now();
    clock.advance(5);
    two.sent(pushOf(2));
    expect(registry.pushed('n1')).toEqual({ generation: 3, at });
    one.sent(pushOf(2));
    one.sent(pushOf(3));
    expect(registry.pushed('n1')).toEqual({ generation: 3, at });
    two.sent(pushOf(4));
    expect(registry.pushed('n1')).toEqual({ generation: 4, at: at + 5 });
    two.close();
    expect(registry.pushed('n1')).toEqual({ generation: 3, at });
    one.close();
    expect(registry.pushed('n1')).toBeUndefined();
  });
});

describe('the registry of sessions', () => {
  it('counts each session once, however often it is closed, and knows which nodes have one', () => {
    const { open, registry } = create();
    const [one, two] = [open('s1'), open('s2')];
    expect([registry.size, registry.has('n1'), registry.has('n2')]).toEqual([2, true, false]);
    one.close();
    one.close();
    expect([registry.size, registry.has('n1')]).toEqual([1, true]);
    two.close();
    expect([registry.size, registry.has('n1')]).toEqual([0, false]);
  });
});
