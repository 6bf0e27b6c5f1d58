/** What a session is answered and offered, on real stores: requests, pushes, rejects, restarts, raised generations. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { compileNode } from '../../src/domain/compile/compile-node.js';
import { ServiceError } from '../../src/kernel/errors.js';
import { lastGoodSnapshots } from '../../src/delivery/last-good.js';
import type { Collection, CollectionSpec, Fields, ReadStore } from '../../src/storage/read-store.js';
import {
  decoded,
  createDeliveryFixture,
  noChecksum,
  openSession,
  snapshotOf,
  until,
} from '../support/delivery-fixture.js';
import type { DeliveryFixture } from '../support/delivery-fixture.js';

let fixture: DeliveryFixture;
beforeEach(async () => {
  fixture = await createDeliveryFixture();
  await fixture.log.createNode('n1');
});
afterEach(() => fixture.close());

const refresh = (id = 'n1'): Promise<number> => fixture.log.run({ type: 'RefreshNodeConfig', id });
const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 20));

/** The sealed bytes kept of a node, once they are written. */
async function kept(nodeId: string): Promise<Uint8Array> {
  const collection = await fixture.stores.readStore.collection(lastGoodSnapshots);
  for (let round = 0; round < 500; round += 1) {
    const sealed = (await collection.get(nodeId))?.fields['sealed'];
    if (sealed instanceof Uint8Array) return sealed;
    await settled();
  }
  throw new Error('nothing was kept');
}

describe('a request', () => {
  it('without a configuration is answered with the full newest snapshot', async () => {
    const delivery = await fixture.start();
    const push = snapshotOf(await openSession(delivery, 'n1').ask());
    expect(push.generation).toBe(delivery.generation('n1'));
    expect(decoded(push)).toMatchObject({ nodeId: 'n1', generation: BigInt(push.generation) });
  });

  it('with the newest generation and checksum is unchanged, and counts as applied, once', async () => {
    const delivery = await fixture.start();
    const session = openSession(delivery, 'n1');
    const push = snapshotOf(await session.ask());
    const again = (): Promise<unknown> => session.attachment.request(BigInt(push.generation), push.checksum);
    expect(await again()).toEqual({ kind: 'unchanged', generation: push.generation });
    await until(() => fixture.facts.length === 1);
    await again();
    await settled();
    expect(fixture.facts.map(({ type }) => type)).toEqual(['AgentConfigApplied']);
  });

  it('with an older generation is answered with the full snapshot', async () => {
    const delivery = await fixture.start();
    const session = openSession(delivery, 'n1');
    const old = snapshotOf(await session.ask());
    await delivery.waitFor(await refresh(), 5000);
    const answer = await session.attachment.request(BigInt(old.generation), old.checksum);
    expect(snapshotOf(answer).generation).toBeGreaterThan(old.generation);
  });

  it('of a node that is gone is drained', async () => {
    const delivery = await fixture.start();
    expect(await openSession(delivery, 'nobody').ask()).toMatchObject({ kind: 'draining' });
  });

  it('is drained while the read store is away, and answered when it is back', async () => {
    let away = true;
    const delivery = await fixture.start({
      nodeFacts: async () => {
        if (away) throw new ServiceError('unavailable', 'away');
        return undefined;
      },
    });
    const session = openSession(delivery, 'n1');
    const answer = await session.ask();
    expect(answer.kind).toBe('draining');
    expect(answer.kind === 'draining' && answer.retryAfterMs).toBeGreaterThan(0);
    away = false;
    expect((await session.ask()).kind).toBe('snapshot');
  });
});

describe('a push', () => {
  it('is not offered before the first request', async () => {
    const delivery = await fixture.start();
    const session = openSession(delivery, 'n1');
    await delivery.waitFor(await refresh(), 5000);
    await settled();
    expect(session.offers).toEqual([]);
    await session.ask();
    await delivery.waitFor(await refresh(), 5000);
    await until(() => session.offers.length === 1);
  });

  it('follows a change, and carries the newest state only', async () => {
    const delivery = await fixture.start();
    const session = openSession(delivery, 'n1');
    await session.ask();
    await fixture.log.run({ type: 'UpdateConnectivity', ifMatch: undefined, multiplex: true, multiplex_port: 9443 });
    await until(() => session.offers.length === 1);
    expect(decoded(session.offers[0]!).node).toEqual({ multiplex: true, multiplexPort: 9443 });
  });

  it('in a slow slot is replaced by the newest', async () => {
    const delivery = await fixture.start();
    const session = openSession(delivery, 'n1');
    await session.ask();
    for (let round = 0; round < 5; round += 1) await refresh();
    const newest = 1 + fixture.log.fleet.revision.value;
    await until(() => session.offers.at(-1)?.generation === newest);
    expect(session.take()?.generation).toBe(newest);
    expect(session.take()).toBeUndefined();
  });

  it('reaches nobody after the session is closed', async () => {
    const delivery = await fixture.start();
    const session = openSession(delivery, 'n1');
    await session.ask();
    session.attachment.close();
    await delivery.waitFor(await refresh(), 5000);
    await settled();
    expect(session.offers).toEqual([]);
    expect(delivery.stats().sessions).toBe(0);
  });

  it('does not reach nodes that the command did not touch', async () => {
    await fixture.log.createNode('n2');
    const delivery = await fixture.start();
    const [one, two] = [openSession(delivery, 'n1'), openSession(delivery, 'n2')];
    await one.ask();
    await two.ask();
    await delivery.waitFor(await refresh('n1'), 5000);
    await until(() => one.offers.length === 1);
    await settled();
    expect(two.offers).toEqual([]);
  });

  it('is offered to both sessions of a node during a rekey', async () => {
    const delivery = await fixture.start();
    const [old, next] = [openSession(delivery, 'n1', 's1'), openSession(delivery, 'n1', 's2')];
    await old.ask();
    await next.ask();
    await refresh();
    await until(() => old.offers.length === 1 && next.offers.length === 1);
    expect(old.offers[0]).toBe(next.offers[0]);
  });

  it('counts as pushed once it was handed to the network as a whole', async () => {
    const delivery = await fixture.start();
    const session = openSession(delivery, 'n1');
    const push = snapshotOf(await session.ask());
    expect(delivery.pushed('n1')).toBeUndefined();
    session.attachment.sent(push);
    expect(delivery.pushed('n1')).toEqual({ generation: push.generation, at: fixture.clock.now() });
    session.attachment.close();
    expect(delivery.pushed('n1')).toBeUndefined();
  });

  it('that an answer carries is not offered as well', async () => {
    const delivery = await fixture.start();
    const session = openSession(delivery, 'n1');
    await session.ask();
    const raised = snapshotOf(await session.attachment.request(5000n, Buffer.alloc(32, 1)));
    await settled();
    expect(raised.generation).toBe(delivery.generation('n1'));
    expect(session.offers).toEqual([]);
  });

  it('committed while an answer is made comes after the answer', async () => {
    let hold = false;
    let release: (() => void) | undefined;
    const readStore: ReadStore = {
      ...fixture.stores.readStore,
      async collection<F extends Fields>(spec: CollectionSpec): Promise<Collection<F>> {
        const collection = await fixture.stores.readStore.collection<F>(spec);
        return {
          ...collection,
          async get(id) {
            if (hold) await new Promise<void>((resolve) => (release = resolve));
            return collection.get(id);
          },
        };
      },
    };
    const delivery = await fixture.start({ readStore });
    const session = openSession(delivery, 'n1');
    const good = snapshotOf(await session.ask());
    await session.apply(good);
    await refresh();
    await until(() => session.offers.length === 1);
    await session.reject(session.take()!);
    await kept('n1');

    hold = true;
    // What is kept may still be on its way to the store and be answered from memory: then nothing is held yet.
    let asked = session.ask();
    const isHeld = until(() => release !== undefined).then(() => true);
    while (!(await Promise.race([isHeld, asked.then(() => release !== undefined)]))) asked = session.ask();
    await delivery.waitFor(await refresh(), 5000);
    await settled();
    expect(session.offers).toHaveLength(1);
    hold = false;
    release?.();
    expect(snapshotOf(await asked).generation).toBe(good.generation);
    expect(session.offers).toHaveLength(1);
    await until(() => session.offers.length === 2);
    expect(session.offers[1]!.generation).toBe(1 + fixture.log.fleet.revision.value);
  });
});

describe('a reject', () => {
  it('makes the kept generation the target, pushes nothing, and ends with a new generation', async () => {
    const delivery = await fixture.start();
    const session = openSession(delivery, 'n1');
    const good = snapshotOf(await session.ask());
    await session.apply(good);
    await refresh();
    await until(() => session.offers.length === 1);
    const bad = session.take()!;
    await session.reject(bad);
    await settled();
    expect(session.offers).toHaveLength(1);

    const later = openSession(delivery, 'n1', 'later');
    const kept = snapshotOf(await later.ask());
    expect(kept.generation).toBe(good.generation);
    expect(Buffer.from(kept.payload).equals(Buffer.from(good.payload))).toBe(true);
    expect(await later.attachment.request(BigInt(good.generation), good.checksum)).toEqual({
      kind: 'unchanged',
      generation: good.generation,
    });

    await refresh();
    const newest = 1 + fixture.log.fleet.revision.value;
    await until(() => later.offers.at(-1)?.generation === newest && session.offers.at(-1)?.generation === newest);
    expect(fixture.facts.map(({ type }) => type)).toEqual(['AgentConfigApplied', 'AgentConfigRejected']);
  });

  it('is counted while it is the node’s newest generation and the node has a session', async () => {
    const delivery = await fixture.start();
    const session = openSession(delivery, 'n1');
    await session.apply(snapshotOf(await session.ask()));
    await refresh();
    await until(() => session.offers.length === 1);
    expect(delivery.stats().rejectingNodes).toBe(0);
    await session.reject(session.take()!);
    expect(delivery.stats().rejectingNodes).toBe(1);
    await refresh();
    await until(() => session.offers.length === 2);
    expect(delivery.stats().rejectingNodes).toBe(0);
    await session.reject(session.take()!);
    expect(delivery.stats().rejectingNodes).toBe(1);
    session.attachment.close();
    expect(delivery.stats().rejectingNodes).toBe(0);
  });

  it('of the first generation gives it once more, then nothing until there is a new one', async () => {
    const delivery = await fixture.start();
    const session = openSession(delivery, 'n1');
    const bad = snapshotOf(await session.ask());
    await session.reject(bad);
    expect(snapshotOf(await session.ask()).generation).toBe(bad.generation);
    await session.reject(bad);
    expect(await session.ask()).toEqual({ kind: 'unchanged', generation: 0 });
    session.attachment.close();
    const other = openSession(delivery, 'n1', 'other');
    expect(await other.ask()).toEqual({ kind: 'unchanged', generation: 0 });
    await refresh();
    await until(() => other.offers.length === 1);
    expect(other.offers[0]!.generation).toBeGreaterThan(bad.generation);
  });

  it('whose second chance was never delivered is not used up', async () => {
    const delivery = await fixture.start();
    const first = openSession(delivery, 'n1', 's1');
    await first.reject(snapshotOf(await first.ask()));
    await first.ask();
    first.attachment.close();
    const second = openSession(delivery, 'n1', 's2');
    const once = snapshotOf(await second.ask());
    second.attachment.sent(once);
    second.attachment.close();
    expect(await openSession(delivery, 'n1', 's3').ask()).toEqual({ kind: 'unchanged', generation: 0 });
  });

  it('of the kept one as well gives the newest once more, then nothing', async () => {
    const delivery = await fixture.start();
    const session = openSession(delivery, 'n1');
    const good = snapshotOf(await session.ask());
    await session.apply(good);
    await refresh();
    await until(() => session.offers.length === 1);
    const bad = session.take()!;
    await session.reject(bad);
    await session.reject(good);
    expect(snapshotOf(await session.ask()).generation).toBe(bad.generation);
    expect(await session.ask()).toEqual({ kind: 'unchanged', generation: 0 });
  });

  it('is believed by the next instance, which serves the kept bytes', async () => {
    const first = await fixture.start();
    const session = openSession(first, 'n1');
    const good = snapshotOf(await session.ask());
    await session.apply(good);
    await refresh();
    await until(() => session.offers.length === 1);
    await session.reject(session.take()!);
    await first.close();

    const second = await fixture.start();
    const kept = snapshotOf(await openSession(second, 'n1').ask());
    expect(kept.generation).toBe(good.generation);
    expect(Buffer.from(kept.payload).equals(Buffer.from(good.payload))).toBe(true);
    expect(Buffer.from(kept.checksum).equals(Buffer.from(good.checksum))).toBe(true);
  });

  it('lies sealed in the read store, and is gone with its node', async () => {
    const delivery = await fixture.start();
    const session = openSession(delivery, 'n1');
    const good = snapshotOf(await session.ask());
    await session.apply(good);
    const collection = await fixture.stores.readStore.collection(lastGoodSnapshots);
    const stored = await kept('n1');
    expect(Buffer.from(stored).includes(Buffer.from(good.payload.subarray(8, 40)))).toBe(false);
    await fixture.log.run({ type: 'DeleteNode', id: 'n1', ifMatch: undefined });
    for (let round = 0; round < 200 && (await collection.get('n1')) !== undefined; round += 1) await settled();
    expect(await collection.get('n1')).toBeUndefined();
  });
});

describe('a report', () => {
  it('above the node, or of a foreign checksum, is counted and ignored', async () => {
    const delivery = await fixture.start();
    const session = openSession(delivery, 'n1');
    const push = snapshotOf(await session.ask());
    await session.apply({ ...push, generation: push.generation + 1 });
    await session.apply({ ...push, checksum: Buffer.alloc(32, 9) });
    await session.reject({ ...push, generation: push.generation - 1 });
    await session.attachment.report({
      generation: 2n ** 64n - 1n,
      checksum: push.checksum,
      status: 'applied',
      errors: [],
      durationMs: 0,
    });
    expect(fixture.facts).toEqual([]);
    expect(delivery.stats().ignoredReports).toBe(4);
  });

  it('that is repeated on the next session is no second fact', async () => {
    const delivery = await fixture.start();
    const session = openSession(delivery, 'n1');
    const push = snapshotOf(await session.ask());
    await session.apply(push);
    session.attachment.close();
    await openSession(delivery, 'n1', 's2').apply(push);
    expect(fixture.facts).toHaveLength(1);
    expect(fixture.facts[0]).toEqual({
      type: 'AgentConfigApplied',
      data: {
        node_id: 'n1',
        generation: push.generation,
        checksum: Buffer.from(push.checksum).toString('hex'),
        duration_ms: 3,
      },
    });
  });

  it('whose fact was not recorded counts when it is repeated', async () => {
    let failing = true;
    const delivery = await fixture.start({
      recordFact: async (_nodeId, event) => {
        if (failing) throw new ServiceError('unavailable', 'away');
        fixture.facts.push(event);
      },
    });
    const session = openSession(delivery, 'n1');
    const push = snapshotOf(await session.ask());
    await expect(session.apply(push)).rejects.toThrow('away');
    failing = false;
    await session.apply(push);
    expect(fixture.facts).toHaveLength(1);
  });
});

describe('a version that the service does not have', () => {
  it('above the newest raises the generation first, at most once a minute', async () => {
    const delivery = await fixture.start();
    const session = openSession(delivery, 'n1');
    const raised = snapshotOf(await session.attachment.request(5000n, Buffer.alloc(32, 1)));
    expect(raised.generation).toBeGreaterThan(5000);
    expect(await session.attachment.request(9000n, Buffer.alloc(32, 1))).toEqual({
      kind: 'overloaded',
      retryAfterMs: 60_000,
    });
    fixture.clock.advance(60_000);
    expect(snapshotOf(await session.attachment.request(9000n, Buffer.alloc(32, 1))).generation).toBeGreaterThan(9000);
  });

  it('of the same generation with another checksum raises it too', async () => {
    const delivery = await fixture.start();
    const generation = delivery.generation('n1')!;
    const answer = await openSession(delivery, 'n1').attachment.request(BigInt(generation), Buffer.alloc(32, 1));
    expect(snapshotOf(answer).generation).toBeGreaterThan(generation);
  });

  it('raised by another instance a moment ago is too soon here as well', async () => {
    const delivery = await fixture.start();
    await delivery.waitFor(
      await fixture.log.run(
        { type: 'RaiseNodeGeneration', id: 'n1', reported: 700 },
        new Date(fixture.clock.now()).toISOString(),
      ),
      5000,
    );
    expect((await openSession(delivery, 'n1').attachment.request(5000n, Buffer.alloc(32, 1))).kind).toBe('overloaded');
  });

  it.each([2n ** 53n, 2n ** 64n - 1n, 2n ** 32n + 1000n])('%s is absurd, and a fact once a minute', async (version) => {
    const delivery = await fixture.start();
    const session = openSession(delivery, 'n1');
    expect(await session.attachment.request(version, noChecksum)).toEqual({ kind: 'absurd_version' });
    await session.attachment.request(version, noChecksum);
    expect(fixture.facts).toEqual([
      { type: 'AgentVersionConflict', data: { node_id: 'n1', reported: String(version) } },
    ]);
    expect(fixture.log.fleet.nodes.get('n1')?.generation_offset).toBe(0);
  });
});

describe('a restart', () => {
  it('keeps generation, checksum and bytes', async () => {
    await fixture.log.run({ type: 'UpdateConnectivity', ifMatch: undefined, multiplex: true, multiplex_port: 9443 });
    const first = await fixture.start();
    const before = snapshotOf(await openSession(first, 'n1').ask());
    await first.close();
    const second = await fixture.start();
    const after = snapshotOf(await openSession(second, 'n1').ask());
    expect(after.generation).toBe(before.generation);
    expect(Buffer.from(after.payload).equals(Buffer.from(before.payload))).toBe(true);
    expect(
      await openSession(second, 'n1', 's2').attachment.request(BigInt(before.generation), before.checksum),
    ).toEqual({
      kind: 'unchanged',
      generation: before.generation,
    });
  });
});

describe('a node that can not be compiled', () => {
  it('is withheld, and the others are served', async () => {
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

describe('what operators see', () => {
  it('is the newest snapshot with its checksum in hex', async () => {
    const delivery = await fixture.start();
    const push = snapshotOf(await openSession(delivery, 'n1').ask());
    expect(await delivery.snapshotJson('n1')).toMatchObject({
      generation: push.generation,
      checksum: Buffer.from(push.checksum).toString('hex'),
      snapshot: { node_id: 'n1', generation: String(push.generation) },
    });
    expect(await delivery.snapshotJson('nobody')).toBeUndefined();
  });
});
