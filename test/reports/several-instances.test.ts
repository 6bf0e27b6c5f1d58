/**
 * Who is online, and what nodes told, on several instances with one read store: opened, renewed, taken over, ended by time
 * (`docs/contract/agent-protocol.md#several-instances`). `flush` writes what waits and reads what others wrote.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ServiceError } from '../../src/kernel/errors.js';
import type { ReportsService } from '../../src/reports/reports.js';
import { openedReports, presenceOf, type OpenedReports } from '../support/opened-reports.js';
import { heartbeatFactsOf, processNamed, runningListener } from '../support/reported-tables.js';
import { leaseOf } from '../support/lease-of.js';

let opened: OpenedReports;
beforeEach(async () => void (opened = await openedReports()));
afterEach(() => opened.close());

const ttlMs = 30_000;
const facts = presenceOf;

const tell = (reports: ReportsService, session: string, bytes_in: number, process_id = 'aa'): void =>
  reports.alive(
    'n1',
    facts(session),
    ttlMs,
    heartbeatFactsOf({
      cpu_usage: bytes_in / 1_000,
      memory_usage: 0,
      uptime_seconds: 1,
      process_id,
      link_metrics: [],
      runtime_listeners: [runningListener(443, { bytes_in })],
    }),
  );
const carried = (reports: ReportsService): number => reports.traffic('n1').bytes_in;
const session = (reports: ReportsService): string | undefined => reports.presence('n1')?.session_id;

describe('a node', () => {
  it('is online from the opening of its session until it ends', async () => {
    const reports = await opened.alone();
    await reports.sessionOpened('n1', facts('s1'), ttlMs);
    expect(reports.presence('n1')).toEqual(facts('s1'));
    await reports.sessionEnded('n1', 's1');
    expect(reports.presence('n1')).toBeUndefined();
  });

  it('is offline everywhere once a session has ended that ended while its lease was being taken', async () => {
    let take: (() => void) | undefined;
    const held = new Promise<void>((resolve) => (take = resolve));
    const { leases } = opened.readStore;
    const one = await opened.oneOfSeveral('one', { take: (kind, claim) => held.then(() => leases.take(kind, claim)) });
    const opening = one.sessionOpened('n1', facts('s1'), ttlMs);
    const ending = one.sessionEnded('n1', 's1');
    take?.();
    await Promise.all([opening, ending]);
    expect(await leases.list('presence')).toEqual([]);
  });

  it('is online on the instance of its session before the lease is taken, and on every other one from then on', async () => {
    let take: (() => void) | undefined;
    const held = new Promise<void>((resolve) => (take = resolve));
    const { leases } = opened.readStore;
    const one = await opened.oneOfSeveral('one', { take: (kind, claim) => held.then(() => leases.take(kind, claim)) });
    const two = await opened.oneOfSeveral('two');
    const opening = one.sessionOpened('n1', facts('s1'), ttlMs);
    expect(one.presence('n1')).toEqual(facts('s1'));
    await two.flush();
    expect(two.presence('n1')).toBeUndefined();
    take?.();
    await opening;
    await one.flush();
    await two.flush();
    expect(two.presence('n1')).toEqual(facts('s1'));
    const three = await opened.oneOfSeveral('three');
    expect(three.presence('n1')).toEqual(facts('s1'));
  });

  it('is forgotten on the others when it is deleted while they read what it told', async () => {
    const [one, two] = [await opened.oneOfSeveral('one'), await opened.oneOfSeveral('two')];
    tell(one, 's1', 100);
    await one.flush();
    let read: (() => void) | undefined;
    opened.readsHeld = new Promise((resolve) => (read = resolve));
    const reading = two.flush();
    await one.forget(['n1']);
    await two.forget(['n1']);
    opened.gone.add('n1');
    read?.();
    await reading;
    await two.flush();
    expect([...two.known()]).toEqual([]);
  });

  it('goes offline on the others when its instance is killed, once its last sign of life is too old', async () => {
    const [one, two] = [await opened.oneOfSeveral('one'), await opened.oneOfSeveral('two')];
    await one.sessionOpened('n1', facts('s1'), ttlMs);
    await one.flush();
    await two.flush();
    opened.dead.add('one');
    const told: string[] = [];
    two.onReport((nodeId) => told.push(nodeId));
    opened.clock.advance(ttlMs - 1);
    await two.flush();
    expect([session(two), told]).toEqual(['s1', []]);
    opened.clock.advance(2);
    await two.flush();
    expect([session(two), told]).toEqual([undefined, ['n1']]);
  });

  it('stays online with any sign of life, and shows the newest facts', async () => {
    const [one, two] = [await opened.oneOfSeveral('one'), await opened.oneOfSeveral('two')];
    await one.sessionOpened('n1', facts('s1'), ttlMs);
    opened.clock.advance(20_000);
    one.alive('n1', facts('s1', 'one', 7), ttlMs);
    await one.flush();
    await two.flush();
    opened.clock.advance(20_000);
    await two.flush();
    expect(two.presence('n1')).toEqual(facts('s1', 'one', 7));
    expect(two.vitals('n1').last_seen_at).toBe('2025-01-01T00:00:20.000Z');
  });

  it('stays online when a session ends that is no longer its live one', async () => {
    const reports = await opened.alone();
    await reports.sessionOpened('n1', facts('s1'), ttlMs);
    await reports.sessionOpened('n1', facts('s2'), ttlMs);
    await reports.sessionEnded('n1', 's1');
    expect(session(reports)).toBe('s2');
  });

  it('is what the instance says that has its session, whatever others wrote before', async () => {
    const [one, two] = [await opened.oneOfSeveral('one'), await opened.oneOfSeveral('two')];
    await one.sessionOpened('n1', facts('s1'), ttlMs);
    tell(one, 's1', 70);
    await one.flush();
    await two.sessionOpened('n1', facts('s2', 'two'), ttlMs);
    tell(two, 's2', 80);
    await two.flush();
    tell(one, 's1', 71);
    await one.flush();
    await two.flush();
    expect([session(two), carried(two), two.vitals('n1').cpu_usage]).toEqual(['s2', 80, 0.08]);
  });

  it('that goes to another instance at once is not shown as offline by what waited at the old one', async () => {
    const [one, two] = [await opened.oneOfSeveral('one'), await opened.oneOfSeveral('two')];
    const three = await opened.oneOfSeveral('three');
    await one.sessionOpened('n1', facts('s1'), ttlMs);
    await one.flush();
    tell(one, 's1', 70);
    await one.sessionEnded('n1', 's1');
    await two.sessionOpened('n1', facts('s2', 'two'), ttlMs);
    await two.flush();
    await one.flush();
    await three.flush();
    expect([one, two, three].map(session)).toEqual(['s2', 's2', 's2']);
  });

  it('that went to another instance is not shown as offline when its old session ends', async () => {
    const [one, two] = [await opened.oneOfSeveral('one'), await opened.oneOfSeveral('two')];
    const three = await opened.oneOfSeveral('three');
    await one.sessionOpened('n1', facts('s1'), ttlMs);
    await two.sessionOpened('n1', facts('s2', 'two'), ttlMs);
    await two.flush();
    await one.sessionEnded('n1', 's1');
    await one.flush();
    await three.flush();
    expect([one, two, three].map(session)).toEqual(['s2', 's2', 's2']);
    await two.sessionEnded('n1', 's2');
    await two.flush();
    await one.flush();
    await three.flush();
    expect([one, two, three].map(session)).toEqual([undefined, undefined, undefined]);
  });

  it('that goes to another instance is soon online everywhere, although the old one has written over what the new one wrote', async () => {
    const [one, two] = [await opened.oneOfSeveral('one'), await opened.oneOfSeveral('two')];
    const three = await opened.oneOfSeveral('three');
    await one.sessionOpened('n1', facts('s1'), ttlMs);
    await one.flush();
    await two.sessionOpened('n1', facts('s2', 'two'), ttlMs);
    tell(two, 's2', 80);
    await one.sessionEnded('n1', 's1');
    opened.beforeWrite = () => {
      opened.beforeWrite = undefined;
      return two.flush();
    };
    await one.flush();
    // Its agent says nothing more.
    for (let round = 0; round < 2; round += 1) for (const reports of [two, one, three]) await reports.flush();
    expect([one, two, three].map(session)).toEqual(['s2', 's2', 's2']);
    expect([one, two, three].map(carried)).toEqual([80, 80, 80]);
  });
});

describe('what a node told', () => {
  it('is shown by every instance, tables, links and metrics', async () => {
    const [one, two] = [await opened.oneOfSeveral('one'), await opened.oneOfSeveral('two')];
    await one.sessionOpened('n1', facts('s1'), ttlMs);
    tell(one, 's1', 70);
    one.metrics('n1', { connections: null, bandwidth: null, gateway: null }, processNamed('aa'));
    await one.flush();
    await two.flush();
    for (const reports of [one, two]) {
      expect(reports.listeners('n1')?.listeners).toMatchObject([{ listen_port: 443, bytes_in: 70 }]);
      expect([...(reports.listenerStates('n1')?.states ?? [])]).toEqual([['tcp/443/0.0.0.0', 'running']]);
      expect(reports.links('n1')?.links).toEqual([]);
      expect(reports.reportedMetrics('n1')).toBeDefined();
    }
    tell(one, 's1', 75);
    await one.flush();
    await two.flush();
    expect(carried(two)).toBe(75);
  });

  it('is read once, however often others look', async () => {
    const [one, two] = [await opened.oneOfSeveral('one'), await opened.oneOfSeveral('two')];
    await one.sessionOpened('n1', facts('s1'), ttlMs);
    tell(one, 's1', 70);
    await one.flush();
    await two.flush();
    opened.reads.clear();
    for (let round = 0; round < 5; round += 1) await two.flush();
    expect(opened.reads.get('node_listeners')).toBeUndefined();
    // Only figures: the tables come unchanged.
    tell(one, 's1', 70);
    await one.flush();
    await two.flush();
    expect(opened.reads.get('node_listeners')).toBeUndefined();
  });

  it('adds up over the processes of its agent, whichever instance they connect to', async () => {
    const [one, two] = [await opened.oneOfSeveral('one'), await opened.oneOfSeveral('two')];
    await one.sessionOpened('n1', facts('s1'), ttlMs);
    tell(one, 's1', 70);
    tell(one, 's1', 80, 'bb');
    await one.flush();
    // Nobody has read it yet: the session begins with what is stored.
    const opening = two.sessionOpened('n1', facts('s2', 'two'), ttlMs);
    tell(two, 's2', 85, 'bb');
    await opening;
    expect(carried(two)).toBe(155);
    expect(two.activity().last_5m.bytes_in).toBe(0);
    tell(two, 's2', 95, 'bb');
    expect([carried(two), two.activity().last_5m.bytes_in]).toEqual([165, 10]);
  });

  it('stays as it was last known while the read store is away, and is stale', async () => {
    const [one, two] = [await opened.oneOfSeveral('one'), await opened.oneOfSeveral('two')];
    await one.sessionOpened('n1', facts('s1'), ttlMs);
    await one.flush();
    await two.flush();
    opened.away = true;
    tell(one, 's1', 70);
    await expect(one.flush()).rejects.toThrow('away');
    opened.clock.advance(2 * ttlMs);
    expect([session(two), two.stale()]).toEqual(['s1', true]);
    opened.away = false;
    await one.flush();
    await two.flush();
    expect([session(two), carried(two), two.stale()]).toEqual(['s1', 70, false]);
  });
});

describe('a session', () => {
  it('is reported as lost once, at its next renewal, after another instance has taken the node over', async () => {
    const [one, two] = [await opened.oneOfSeveral('one'), await opened.oneOfSeveral('two')];
    const lost: string[] = [];
    one.onLost((nodeId, sessionId) => lost.push(`${nodeId} ${sessionId}`));
    await one.sessionOpened('n1', facts('s1'), ttlMs);
    await two.sessionOpened('n1', facts('s2', 'two'), ttlMs);
    await two.flush();
    opened.clock.advance(1_000);
    one.alive('n1', facts('s1'), ttlMs);
    await one.flush();
    one.alive('n1', facts('s1'), ttlMs);
    await one.flush();
    expect(lost).toEqual(['n1 s1']);
  });

  it('is reported as lost when its successor is on the same instance; the successor is not', async () => {
    const reports = await opened.alone();
    const lost: string[] = [];
    reports.onLost((_nodeId, sessionId) => lost.push(sessionId));
    await reports.sessionOpened('n1', facts('s1'), ttlMs);
    await reports.sessionOpened('n1', facts('s2'), ttlMs);
    opened.clock.advance(1_000);
    reports.alive('n1', facts('s2'), ttlMs);
    await reports.flush();
    expect(lost).toEqual([]);
    reports.alive('n1', facts('s1'), ttlMs);
    await reports.flush();
    expect(lost).toEqual(['s1']);
  });

  it('takes its lease again when that is missing, as after a restore', async () => {
    const one = await opened.oneOfSeveral('one');
    const lost: string[] = [];
    one.onLost((_nodeId, sessionId) => lost.push(sessionId));
    await one.sessionOpened('n1', facts('s1'), ttlMs);
    await opened.readStore.leases.release('presence', 'n1', 's1');
    opened.clock.advance(1_000);
    one.alive('n1', facts('s1'), ttlMs);
    await one.flush();
    expect(lost).toEqual([]);
    expect(await leaseOf(opened.readStore.leases, 'presence', 'n1')).toMatchObject({ holder: 's1' });
  });

  it('that has ended stays ended after a late sign of life', async () => {
    const reports = await opened.alone();
    await reports.sessionOpened('n1', facts('s1'), ttlMs);
    opened.clock.advance(1_000);
    reports.alive('n1', facts('s1'), ttlMs);
    await reports.sessionEnded('n1', 's1');
    reports.alive('n1', facts('s1'), ttlMs);
    await reports.flush();
    expect(reports.presence('n1')).toBeUndefined();
  });
});

describe('while the read store is away', () => {
  const away = (): Promise<never> => Promise.reject(new ServiceError('unavailable', 'away'));

  it('a session cannot be opened, as it would not become the live one', async () => {
    const one = await opened.oneOfSeveral('one', { take: away });
    await expect(one.sessionOpened('n1', facts('s1'), ttlMs)).rejects.toThrow('away');
    expect(one.presence('n1')).toBeUndefined();
  });

  it('renewals wait, and the newest is written once the store is back', async () => {
    let failing = true;
    const { leases } = opened.readStore;
    const renew: typeof leases.renew = (kind, claims) => (failing ? away() : leases.renew(kind, claims));
    const one = await opened.oneOfSeveral('one', { renew });
    await one.sessionOpened('n1', facts('s1'), ttlMs);
    one.alive('n1', facts('s1', 'one', 1), ttlMs);
    await expect(one.flush()).rejects.toThrow('away');
    one.alive('n1', facts('s1', 'one', 2), ttlMs);
    failing = false;
    await one.flush();
    expect((await leaseOf(leases, 'presence', 'n1'))?.data).toEqual(facts('s1', 'one', 2));
  });

  it('a session ends without an error, and its lease is released later', async () => {
    let failing = true;
    const { leases } = opened.readStore;
    const release: typeof leases.release = (kind, name, holder) =>
      failing ? away() : leases.release(kind, name, holder);
    const one = await opened.oneOfSeveral('one', { release });
    await one.sessionOpened('n1', facts('s1'), ttlMs);
    await one.sessionEnded('n1', 's1');
    expect(await leaseOf(leases, 'presence', 'n1')).toBeDefined();
    failing = false;
    await one.flush();
    expect(await leaseOf(leases, 'presence', 'n1')).toBeUndefined();
  });
});
