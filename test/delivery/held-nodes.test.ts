/** Nodes that wait for their wave of a rollout: what they are answered and offered. Implements `docs/contract/rollouts.md#hold`. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { lastGoodSnapshots } from '../../src/delivery/last-good.js';
import type { SnapshotPush } from '../../src/delivery/port.js';
import { uuidFromName } from '../../src/kernel/ids.js';
import {
  createDeliveryFixture,
  openSession,
  snapshotOf,
  witness,
  type DeliveryFixture,
  type StartedDelivery,
  type TestSession,
} from '../support/delivery-fixture.js';
import { createRolloutPolicy, nothingSeen, rolloutId, rolloutOf } from '../support/rollouts.js';
import { storesInMemory } from '../support/stores-in-memory.js';

const [first, second] = [uuidFromName('first'), uuidFromName('second')];

let fixture: DeliveryFixture;
let delivery: StartedDelivery;
/** Resolves once every change so far is served. */
let served: () => Promise<void>;
let a: TestSession;
let b: TestSession;
let applied: SnapshotPush;

beforeEach(async () => {
  fixture = await createDeliveryFixture(storesInMemory());
  await fixture.log.createNode(first, 'a');
  await fixture.log.createNode(second, 'b');
  await fixture.log.run(createRolloutPolicy('one-by-one'));
  delivery = await fixture.start();
  served = await witness(fixture, delivery);
  [a, b] = [openSession(delivery, first), openSession(delivery, second)];
  for (const session of [a, b]) {
    applied = snapshotOf(await session.ask());
    await session.apply(applied);
  }
});
afterEach(() => fixture.close());

/** A change of all nodes, by waves of one node. */
async function rollOut(): Promise<void> {
  await fixture.log.run({
    type: 'WithRollout',
    command: { type: 'UpdateConnectivity', ifMatch: undefined, multiplex: true, multiplex_port: 9000 },
    policy: 'one-by-one',
    rolloutId: rolloutId('one'),
    observe: nothingSeen,
    planned: () => undefined,
  });
  await served();
}
async function advance(): Promise<void> {
  const { id, version } = rolloutOf(fixture.log.fleet);
  await fixture.log.run({ type: 'ConvergeWave', id, version, failed: [], lost: [] });
  await fixture.log.run({ type: 'AdvanceRollout', id, observe: nothingSeen });
  await served();
}
const newest = (nodeId: string): number => delivery.generation(nodeId) ?? 0;
const request = ({ nodeSession }: TestSession, { generation, checksum }: SnapshotPush) =>
  nodeSession.request(BigInt(generation), checksum);

describe('a node that waits for its wave', () => {
  it('is pushed nothing, keeps what it applied over a restart, and gets the newest when its wave is released', async () => {
    await rollOut();
    expect(a.offers.map(({ generation }) => generation)).toEqual([newest(first)]);
    expect(b.offers).toEqual([]);
    expect(newest(second)).toBeGreaterThan(applied.generation);
    expect(await request(b, applied)).toEqual({ kind: 'unchanged', generation: applied.generation });

    const again = openSession(delivery, second, 'again');
    expect(snapshotOf(await again.ask())).toEqual(applied);
    await again.apply(applied);

    // A later command reaches it with its wave too.
    await fixture.log.run({ type: 'RefreshNodeConfig', id: second });
    await served();
    expect(again.offers).toEqual([]);

    await advance();
    expect(again.offers.map(({ generation }) => generation)).toEqual([newest(second)]);
  });

  it('that never applied anything is not held', async () => {
    const third = uuidFromName('third');
    await fixture.log.createNode(third, 'c');
    await served();
    const c = openSession(delivery, third);
    await c.ask();
    await rollOut();
    expect(c.offers.map(({ generation }) => generation)).toEqual([newest(third)]);
  });

  it('keeps the push that it has not reported on as its target, and its report counts', async () => {
    await fixture.log.run({ type: 'RefreshNodeConfig', id: second });
    await served();
    const pushed = b.take();
    expect(pushed?.generation).toBe(newest(second));
    await rollOut();
    expect(snapshotOf(await request(b, applied))).toBe(pushed);
    await b.apply(pushed as SnapshotPush);
    expect(await request(b, pushed as SnapshotPush)).toEqual({ kind: 'unchanged', generation: pushed?.generation });
    expect(fixture.facts.at(-1)).toMatchObject({
      type: 'AgentConfigApplied',
      data: { generation: pushed?.generation },
    });
    // These bytes are kept now, as those of any apply.
    expect(snapshotOf(await openSession(delivery, second, 'again').ask())).toEqual(pushed);
  });

  it('whose kept bytes are gone is left alone, and gets the newest once it asks with anything else', async () => {
    await rollOut();
    await delivery.close();
    await (await fixture.stores.readStore.collection(lastGoodSnapshots)).remove([second]);
    delivery = await fixture.start();
    b = openSession(delivery, second, 'after');
    expect(await request(b, applied)).toEqual({ kind: 'unchanged', generation: applied.generation });
    const answer = snapshotOf(await b.ask());
    expect(answer.generation).toBe(newest(second));
    await b.apply(answer);
    served = await witness(fixture, delivery);
    // It counts as released, so a later command reaches it at once.
    await fixture.log.run({ type: 'RefreshNodeConfig', id: second });
    await served();
    expect(b.offers.map(({ generation }) => generation)).toEqual([newest(second)]);
    await b.apply(b.take() as SnapshotPush);
    const { length } = b.offers;
    await advance();
    // It has the newest, which is not pushed twice.
    expect(b.offers).toHaveLength(length);
  });

  it('gets its newest when the rollout is completed by hand', async () => {
    await rollOut();
    await fixture.log.run({ type: 'CompleteRollout', id: rolloutId('one') });
    await served();
    expect(b.offers.map(({ generation }) => generation)).toEqual([newest(second)]);
  });
});
