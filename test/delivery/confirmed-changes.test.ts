/**
 * What is sent to agents that confirm, and when the service confirms: over restarts, sessions and kept bytes. Implements
 * `docs/contract/rollouts.md#confirmed-changes`, "By the node".
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { SnapshotPush } from '../../src/delivery/port.js';
import { uuidFromName } from '../../src/kernel/ids.js';
import {
  createDeliveryFixture,
  decoded,
  openSession,
  snapshotOf,
  witness,
  type DeliveryFixture,
  type StartedDelivery,
  type TestSession,
} from '../support/delivery-fixture.js';
import { nothingSeen, rolloutId } from '../support/rollouts.js';
import { storesInMemory } from '../support/stores-in-memory.js';

const node = uuidFromName('node');

let fixture: DeliveryFixture;
let delivery: StartedDelivery;
let served: () => Promise<void>;
/** The generations that the service has confirmed, over all sessions. */
let confirmed: number[];
let session: TestSession;
let first: SnapshotPush;

beforeEach(async () => {
  fixture = await createDeliveryFixture(storesInMemory());
  await fixture.log.createNode(node, 'a');
  confirmed = [];
  await start();
  session = open('one');
  first = snapshotOf(await session.ask());
  await session.apply(first);
});
afterEach(() => fixture.close());

async function start(): Promise<void> {
  delivery = await fixture.start();
  served = await witness(fixture, delivery);
}
const open = (id: string): TestSession =>
  openSession(delivery, node, id, (generation) => void confirmed.push(generation));

async function change(secs?: number): Promise<void> {
  await fixture.log.run({
    type: 'WithRollout',
    command: { type: 'RefreshNodeConfig', id: node },
    policy: undefined,
    rolloutId: rolloutId(`${fixture.log.fleet.revision.value}`),
    confirm: secs === undefined ? undefined : { by: 'node', secs },
    observe: nothingSeen,
    planned: () => undefined,
  });
  await served();
}
const taken = (from: TestSession): SnapshotPush => {
  const push = from.take();
  if (push === undefined) throw new Error('nothing was pushed');
  return push;
};
const secsOf = (push: SnapshotPush): number | undefined => decoded(push).confirmWithinSecs;
const typesOf = (): readonly string[] => fixture.facts.map(({ type }) => type);
/** What an agent says once it has gone back. */
const wentBack = ({ nodeSession }: TestSession, { generation, checksum }: SnapshotPush): Promise<void> => {
  const errors = [{ resource_type: '', resource_id: '', path: '', message: 'not confirmed in 60 s' }];
  return nodeSession.report({ generation: BigInt(generation), checksum, status: 'rejected', errors, durationMs: 0 }, 0);
};
const asks = ({ nodeSession }: TestSession, { generation, checksum }: SnapshotPush) =>
  nodeSession.request(BigInt(generation), checksum);

describe('a snapshot that is to be confirmed', () => {
  it('has the seconds, as has every later one until one is confirmed, and the same generation and checksum', async () => {
    await change(60);
    const push = taken(session);
    expect([secsOf(first), secsOf(push)]).toEqual([undefined, 60]);
    expect(decoded(push)).toMatchObject({ generation: BigInt(push.generation), checksum: Buffer.from(push.checksum) });
    const plain = snapshotOf(await openSession(delivery, node, 'plain').ask());
    expect({ ...decoded(push), confirmWithinSecs: undefined }).toEqual(decoded(plain));

    session = open('two');
    await asks(session, first);
    await change();
    const later = taken(session);
    expect(secsOf(later)).toBe(60);
    await session.apply(later);
    expect(session.nodeSession.beat()).toBe(true);
    await change();
    expect(secsOf(taken(session))).toBeUndefined();
  });

  it('is confirmed by a heartbeat after its report, once, and by that of nothing before', async () => {
    await change(60);
    session.nodeSession.beat();
    const push = taken(session);
    await session.apply(push);
    expect(confirmed).toEqual([]);
    session.nodeSession.beat();
    session.nodeSession.beat();
    expect(confirmed).toEqual([push.generation]);
    expect(typesOf().slice(-2)).toEqual(['AgentConfigApplied', 'AgentConfigConfirmed']);
  });

  it('is confirmed at once by a report, or a request, that begins a session', async () => {
    await change(60);
    const push = taken(session);
    await session.apply(push);
    session = open('two');
    await session.apply(push);
    expect(confirmed).toEqual([push.generation]);
    // The message may have been lost with the session.
    session = open('three');
    await asks(session, push);
    expect(confirmed).toEqual([push.generation, push.generation]);
    expect(typesOf().filter((type) => type === 'AgentConfigConfirmed')).toHaveLength(1);
  });

  it('is still to be confirmed after a restart of the service, and no more once it was', async () => {
    await change(60);
    await delivery.close();
    await start();
    session = open('two');
    const push = snapshotOf(await session.ask());
    expect(secsOf(push)).toBe(60);
    await session.apply(push);
    session.nodeSession.beat();
    await delivery.close();
    await start();
    expect(secsOf(snapshotOf(await open('three').ask()))).toBeUndefined();
  });

  it('is an ordinary one to an agent without the feature, which is told nothing', async () => {
    session = openSession(delivery, node, 'plain');
    await session.ask();
    await change(60);
    const push = taken(session);
    expect(secsOf(push)).toBeUndefined();
    await session.apply(push);
    session.nodeSession.beat();
    expect([confirmed, typesOf().includes('AgentConfigConfirmed')]).toEqual([[], false]);
    // Nothing has been confirmed, so an agent with the feature gets the seconds.
    expect(secsOf(snapshotOf(await open('later').ask()))).toBe(60);
  });

  it('that nobody confirmed is not tried again: the one before is the target, from its own bytes', async () => {
    await change(60);
    const push = taken(session);
    await session.apply(push);
    // Cut off, and back.
    session.nodeSession.close();
    session = open('two');
    await wentBack(session, push);
    expect(await asks(session, first)).toEqual({ kind: 'unchanged', generation: first.generation });
    for (let days = 0; days < 3; days += 1) {
      fixture.clock.advance(24 * 3_600_000);
      expect(await asks(session, first)).toEqual({ kind: 'unchanged', generation: first.generation });
    }
    expect(session.offers).toEqual([]);
    const restarted = snapshotOf(await open('three').ask());
    expect(decoded(restarted)).toEqual(decoded(first));
    await delivery.close();
    await start();
    session = open('four');
    expect(decoded(snapshotOf(await session.ask()))).toEqual(decoded(first));
    await session.apply(first);

    // A person may try it again, and a newer one is tried.
    await session.nodeSession.reload();
    const again = snapshotOf(await session.ask());
    expect([again.generation, secsOf(again)]).toEqual([push.generation, 60]);
    await wentBack(session, push);
    await change();
    expect(secsOf(taken(session))).toBe(60);
  });

  it('does not come again when nothing else could be served', async () => {
    const other = uuidFromName('other');
    await fixture.log.createNode(other, 'b');
    await served();
    session = openSession(delivery, other, 'other', (generation) => void confirmed.push(generation));
    const push = snapshotOf(await session.ask());
    await wentBack(session, push);
    const running = { generation: push.generation - 1, checksum: Buffer.alloc(32, 1), payload: Buffer.alloc(0) };
    expect(await asks(session, running)).toEqual({ kind: 'unchanged', generation: 0 });
    expect(snapshotOf(await session.ask()).generation).toBe(push.generation);
  });
});
