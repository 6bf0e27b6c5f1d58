/** What a session is answered and offered, with stores in memory: requests, pushes, rejects, restarts, generation raises. */
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { compileNode } from '../../src/domain/compile/compile-node.js';
import { lastGoodSnapshots } from '../../src/delivery/last-good.js';
import type { SnapshotPush } from '../../src/delivery/port.js';
import {
  createDeliveryFixture,
  openSession,
  snapshotOf,
  turns,
  until,
  witness,
  type DeliveryFixture,
  type TestSession,
} from '../support/delivery-fixture.js';
import { eventually } from '../support/eventually.js';
import { shortSleeps } from '../support/short-sleeps.js';
import { storesInMemory } from '../support/stores-in-memory.js';

let fixture: DeliveryFixture;
beforeEach(async () => {
  fixture = await createDeliveryFixture(storesInMemory());
  await fixture.log.createNode('n1');
});
afterEach(() => fixture.close());

const refresh = (id = 'n1'): Promise<number> => fixture.log.run({ type: 'RefreshNodeConfig', id });

/** The node applies its newest snapshot and rejects the next one. @returns the one that it applied, which is stored */
async function appliedThenRejected(session: TestSession): Promise<SnapshotPush> {
  const good = snapshotOf(await session.ask());
  await session.apply(good);
  await refresh();
  await until(() => session.offers.length === 1);
  await session.reject(session.take()!);
  await lastGoodBytes('n1');
  return good;
}

/** The sealed bytes of a node's last-good snapshot, once they are written. */
async function lastGoodBytes(nodeId: string): Promise<Uint8Array> {
  const collection = await fixture.stores.readStore.collection(lastGoodSnapshots);
  const stored = async (): Promise<unknown> => (await collection.get(nodeId))?.fields['sealed'];
  await eventually(stored).toBeInstanceOf(Uint8Array);
  return (await stored()) as Uint8Array;
}

describe('a ConfigRequest', () => {
  it('is answered "unchanged" when it names the newest snapshot, which is recorded as applied once', async () => {
    const delivery = await fixture.start();
    const session = openSession(delivery, 'n1');
    const push = snapshotOf(await session.ask());
    const again = (): Promise<unknown> => session.nodeSession.request(BigInt(push.generation), push.checksum);
    expect(await again()).toEqual({ kind: 'unchanged', generation: push.generation });
    await until(() => fixture.facts.length === 1);
    await again();
    // A repeat too; its fact is settled after that of the request before it.
    await session.apply(push);
    expect(fixture.facts.map(({ type }) => type)).toEqual(['AgentConfigApplied']);
  });
});

describe('a push', () => {
  it('is not offered to nodes that the command did not touch', async () => {
    await fixture.log.createNode('n2');
    const delivery = await fixture.start();
    const [one, two] = [openSession(delivery, 'n1'), openSession(delivery, 'n2')];
    await one.ask();
    await two.ask();
    const served = await witness(fixture, delivery);
    await refresh('n1');
    await served();
    expect(one.offers).toHaveLength(1);
    expect(two.offers).toEqual([]);
  });

  it('is offered to both sessions of a node during a rekey', async () => {
    const delivery = await fixture.start();
    const [old, next] = [openSession(delivery, 'n1', 's1'), openSession(delivery, 'n1', 's2')];
    await old.ask();
    await next.ask();
    // Behind the answers: while one is being made, its session waits for the next turn.
    await turns();
    await refresh();
    await until(() => old.offers.length === 1 && next.offers.length === 1);
    expect(old.offers[0]).toBe(next.offers[0]);
  });
});

describe('a rejected snapshot', () => {
  it('makes the last-good snapshot the target, without a push, until there is a new generation', async () => {
    const delivery = await fixture.start();
    const session = openSession(delivery, 'n1');
    const good = snapshotOf(await session.ask());
    await session.apply(good);
    await refresh();
    await until(() => session.offers.length === 1);
    const bad = session.take()!;
    const served = await witness(fixture, delivery);
    await session.reject(bad);
    await served();
    expect(session.offers).toHaveLength(1);

    const later = openSession(delivery, 'n1', 'later');
    const lastGood = snapshotOf(await later.ask());
    expect(lastGood.generation).toBe(good.generation);
    expect(Buffer.from(lastGood.payload).equals(Buffer.from(good.payload))).toBe(true);
    expect(await later.nodeSession.request(BigInt(good.generation), good.checksum)).toEqual({
      kind: 'unchanged',
      generation: good.generation,
    });

    await refresh();
    const newest = 1 + fixture.log.fleet.revision.value;
    await until(() => later.offers.at(-1)?.generation === newest && session.offers.at(-1)?.generation === newest);
    // The request that named the last-good one says that the node runs it, after the reject.
    const types = ['AgentConfigApplied', 'AgentConfigRejected', 'AgentConfigApplied'];
    expect(fixture.facts.map(({ type }) => type)).toEqual(types);
  });

  it('that the node had applied before is served to its new process, and confirmed by another session alone', async () => {
    const delivery = await fixture.start();
    const first = openSession(delivery, 'n1', 'first');
    const push = snapshotOf(await first.ask());
    await first.apply(push);
    first.nodeSession.close();
    const anew = openSession(delivery, 'n1', 'anew');
    await anew.reject(snapshotOf(await anew.ask()));
    const named = [BigInt(push.generation), push.checksum] as const;
    expect(await anew.nodeSession.request(...named)).toMatchObject({ kind: 'unchanged' });
    expect(delivery.stats().rejectingNodes).toBe(1);
    await openSession(delivery, 'n1', 'next').nodeSession.request(...named);
    expect(delivery.stats().rejectingNodes).toBe(0);
    const types = ['AgentConfigApplied', 'AgentConfigRejected', 'AgentConfigApplied'];
    expect(fixture.facts.map(({ type }) => type)).toEqual(types);
  });

  it('is known to the next instance, which serves the last-good bytes', async () => {
    const first = await fixture.start();
    const session = openSession(first, 'n1');
    const good = snapshotOf(await session.ask());
    await session.apply(good);
    await refresh();
    await until(() => session.offers.length === 1);
    await session.reject(session.take()!);
    await first.close();

    const second = await fixture.start();
    const lastGood = snapshotOf(await openSession(second, 'n1').ask());
    expect(lastGood.generation).toBe(good.generation);
    expect(Buffer.from(lastGood.payload).equals(Buffer.from(good.payload))).toBe(true);
    expect(Buffer.from(lastGood.checksum).equals(Buffer.from(good.checksum))).toBe(true);
  });
});

describe('a rejected newest snapshot is the target again', () => {
  /** From 0 to 1; in the middle nothing is earlier or later than the contract says. */
  const start = () => fixture.start({ random: () => 0.5 });
  const minute = 60_000;
  // What is due is looked for each second.
  beforeEach(() => onTestFinished(shortSleeps().restore));

  it('after 1, 5 and 30 minutes and then hourly, pushed to the node, until it applies it', async () => {
    const delivery = await start();
    const session = openSession(delivery, 'n1');
    await appliedThenRejected(session);
    const rejectedAt = fixture.clock.monotonic();
    for (const [pushes, minutes] of [1, 5, 30, 90, 150].entries()) {
      fixture.clock.advance(rejectedAt + minutes * minute - 1 - fixture.clock.monotonic());
      const served = await witness(fixture, delivery);
      await served();
      expect(session.offers).toHaveLength(pushes + 1);
      fixture.clock.advance(1);
      await until(() => session.offers.length === pushes + 2, `a push after ${minutes} minutes`);
      expect(delivery.stats().rejectingNodes).toBe(1);
      await session.reject(session.take()!);
    }
    fixture.clock.advance(60 * minute);
    await until(() => session.offers.length === 7, 'the last push');
    await session.apply(session.take()!);
    expect(delivery.stats().rejectingNodes).toBe(0);
  });

  it('when its agent was told to reload, and is not pushed as well', async () => {
    const delivery = await start();
    const session = openSession(delivery, 'n1');
    const good = await appliedThenRejected(session);
    const served = await witness(fixture, delivery);
    expect(snapshotOf(await session.ask()).generation).toBe(good.generation);
    await session.nodeSession.reload();
    await served();
    expect(session.offers).toHaveLength(1);
    const again = snapshotOf(await session.ask());
    expect(again.generation).toBe(delivery.generation('n1'));
    expect(delivery.stats().rejectingNodes).toBe(1);
    await session.reject(again);
    expect(snapshotOf(await session.ask()).generation).toBe(good.generation);
  });

  it('on an instance that begins the schedule anew, as it knows only that it was rejected', async () => {
    const before = await start();
    await appliedThenRejected(openSession(before, 'n1'));
    await before.close();
    fixture.clock.advance(4 * minute);
    const delivery = await start();
    const session = openSession(delivery, 'n1');
    await session.ask();
    fixture.clock.advance(minute);
    await until(() => session.offers.length === 1, 'a push a minute after the node came');
    expect(session.offers[0]!.generation).toBe(delivery.generation('n1'));
  });
});

describe('an apply report', () => {
  it('of a session that a newer one has superseded does not count', async () => {
    const delivery = await fixture.start();
    const older = openSession(delivery, 'n1', 'older');
    const push = snapshotOf(await older.ask());
    const newer = openSession(delivery, 'n1', 'newer');
    await newer.apply(push);
    await older.reject(push);
    expect(fixture.facts.map(({ type }) => type)).toEqual(['AgentConfigApplied']);
    expect([delivery.stats().rejectingNodes, delivery.stats().reports.get('ignored')]).toEqual([0, 1]);
  });
});

describe('a ConfigRequest with a version that the service does not have', () => {
  it('raises the generation first, at most once a minute, when it is above the newest', async () => {
    const delivery = await fixture.start();
    const session = openSession(delivery, 'n1');
    const raised = snapshotOf(await session.nodeSession.request(5000n, Buffer.alloc(32, 1)));
    expect(raised.generation).toBeGreaterThan(5000);
    expect(await session.nodeSession.request(9000n, Buffer.alloc(32, 1))).toEqual({
      kind: 'raised_too_soon',
      reported: 9000,
      retryAfterMs: 60_000,
    });
    fixture.clock.advance(60_000);
    expect(snapshotOf(await session.nodeSession.request(9000n, Buffer.alloc(32, 1))).generation).toBeGreaterThan(9000);
  });
});

describe('a restart', () => {
  it('changes neither generation nor checksum nor bytes', async () => {
    await fixture.log.run({ type: 'UpdateConnectivity', ifMatch: undefined, multiplex: true, multiplex_port: 9443 });
    const first = await fixture.start();
    const before = snapshotOf(await openSession(first, 'n1').ask());
    await first.close();
    const second = await fixture.start();
    const after = snapshotOf(await openSession(second, 'n1').ask());
    expect(after.generation).toBe(before.generation);
    expect(Buffer.from(after.payload).equals(Buffer.from(before.payload))).toBe(true);
    expect(
      await openSession(second, 'n1', 's2').nodeSession.request(BigInt(before.generation), before.checksum),
    ).toEqual({
      kind: 'unchanged',
      generation: before.generation,
    });
  });
});

describe('a node that cannot be compiled', () => {
  it('is served its last-good snapshot, and the other nodes are served', async () => {
    await fixture.log.createNode('n2');
    let broken = false;
    const delivery = await fixture.start({
      compile: (fleet, nodeId) => {
        if (broken && nodeId === 'n1') throw new Error('broken');
        return compileNode(fleet, nodeId);
      },
    });
    const [one, two] = [openSession(delivery, 'n1'), openSession(delivery, 'n2')];
    const good = snapshotOf(await one.ask());
    await one.apply(good);
    await two.ask();
    broken = true;
    await fixture.log.run({ type: 'UpdateConnectivity', ifMatch: undefined, multiplex: true, multiplex_port: 9443 });
    await until(() => two.offers.length === 1);
    expect(one.offers).toEqual([]);
    expect(snapshotOf(await openSession(delivery, 'n1', 's2').ask()).generation).toBe(good.generation);
    broken = false;
    await refresh('n1');
    await until(() => one.offers.length === 1);
  });
});
