/**
 * Several releases on one log. An instance serves configuration only while the log is at its compiler version, whether
 * that is raised or lowered while the instance runs, and never writes the version itself. A node that rejected the
 * newer compiler's output is served its last-good snapshot, which an earlier compiler made.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { DeliveryDeps, DeliveryService } from '../../src/delivery/delivery.js';
import type { ServingState } from '../../src/delivery/port.js';
import { compileNode } from '../../src/domain/compile/compile-node.js';
import { compilerVersion } from '../../src/kernel/release.js';
import { streams } from '../../src/kernel/event.js';
import {
  createDeliveryFixture,
  decoded,
  openSession,
  snapshotOf,
  until,
  type DeliveryFixture,
} from '../support/delivery-fixture.js';
import { storesInMemory } from '../support/stores-in-memory.js';
import { readsBehind } from '../support/switched-read-store.js';

const newer = compilerVersion + 1;
/** The newer release's compiler: it gives another output for the same fleet. */
const newerCompiler: typeof compileNode = (fleet, nodeId) => ({
  ...compileNode(fleet, nodeId),
  node: { multiplex: false, multiplex_port: 4242 },
});

let fixture: DeliveryFixture;
beforeEach(async () => {
  fixture = await createDeliveryFixture(storesInMemory());
  await fixture.log.createNode('n1');
});
afterEach(() => fixture.close());

const raise = (version = newer): Promise<number> => fixture.log.run({ type: 'RaiseCompilerVersion', version });
const lower = (version = compilerVersion): Promise<number> =>
  fixture.log.run({ type: 'LowerCompilerVersion', version });
const startOlder = (): Promise<DeliveryService> => fixture.start();
/** Starts the newer release as its own start does: the version is raised first. */
async function startNewer(overrides: Partial<DeliveryDeps> = {}): Promise<DeliveryService> {
  await raise();
  return fixture.start({ compilerVersion: newer, compile: newerCompiler, ...overrides });
}
const becomes = (delivery: DeliveryService, kind: ServingState['kind']): Promise<void> =>
  until(() => delivery.state().kind === kind, `the state ${kind}`);

describe('a running instance, after the log is lowered to an earlier compiler version', () => {
  it('stops serving, reports the mismatch, and does not write the version', async () => {
    const delivery = await startNewer();
    const states: ServingState[] = [];
    delivery.onStateChange((state) => states.push(state));
    const session = openSession(delivery, 'n1');
    const before = snapshotOf(await session.ask());
    const revision = await lower();
    await until(() => states.length === 1);
    expect(states).toEqual([{ kind: 'newer_compiler', logVersion: compilerVersion, ownVersion: newer }]);
    expect(session.offers).toEqual([]);
    await expect(delivery.snapshotJson('n1')).rejects.toMatchObject({ code: 'unavailable' });
    // A later change is folded, and still not served by this instance.
    await fixture.log.run({ type: 'RefreshNodeConfig', id: 'n1' });
    await until(() => delivery.generation('n1') === revision + 2);
    expect(delivery.generation('n1')).toBeGreaterThan(before.generation);
    expect(delivery.state().kind).toBe('newer_compiler');
    expect(session.offers).toEqual([]);
    const written: string[] = [];
    for await (const event of fixture.stores.eventStore.read(streams.fleet, {
      direction: 'forward',
      from: revision,
      maxCount: 10,
    })) {
      written.push(event.type);
    }
    expect(written).toEqual(['CompilerVersionLowered', 'NodeConfigRefreshed']);
  });

  it('serves again once the version is raised again', async () => {
    const delivery = await startNewer();
    const session = openSession(delivery, 'n1');
    const before = snapshotOf(await session.ask());
    await lower();
    await becomes(delivery, 'newer_compiler');
    const revision = await raise();
    await becomes(delivery, 'ready');
    // Without a request: the snapshots that changed meanwhile are offered.
    await until(() => session.offers.length > 0);
    expect(session.offers.map(({ generation }) => generation)).toEqual([1 + revision]);
    expect(1 + revision).toBeGreaterThan(before.generation);
  });
});

describe('an instance of the older release', () => {
  it('stops while the version is raised, serves once it is lowered, and no generation falls', async () => {
    const delivery = await startOlder();
    const states: ServingState['kind'][] = [];
    delivery.onStateChange((state) => states.push(state.kind));
    const session = openSession(delivery, 'n1');
    const first = snapshotOf(await session.ask());
    const raised = await raise();
    await becomes(delivery, 'older_compiler');
    expect(delivery.generation('n1')).toBe(1 + raised);
    await expect(delivery.snapshotJson('n1')).rejects.toMatchObject({ code: 'unavailable' });
    const lowered = await lower();
    await becomes(delivery, 'ready');
    expect(states).toEqual(['older_compiler', 'ready']);
    await until(() => session.offers.length > 0);
    expect(session.offers.map(({ generation }) => generation)).toEqual([1 + lowered]);
    expect(1 + raised).toBeGreaterThan(first.generation);
    expect(lowered).toBeGreaterThan(raised);
  });

  it('does not send its own output for a generation of the newer compiler, even when asked before the raise', async () => {
    let release: (() => void) | undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    let answering = false;
    const delivery = await fixture.start({
      // The answer waits here, after it was begun and before it reads the fleet.
      readStore: readsBehind(fixture.stores.readStore, async () => {
        answering = true;
        await held;
      }),
    });
    const answer = openSession(delivery, 'n1').ask();
    await until(() => answering);
    await raise();
    await becomes(delivery, 'older_compiler');
    release?.();
    expect(await answer).toMatchObject({ kind: 'draining' });
  });
});

describe("a node that rejected the newer compiler's output", () => {
  it('is served its last-good bytes, which no running release can compile any more', async () => {
    const older = await startOlder();
    const session = openSession(older, 'n1');
    const good = snapshotOf(await session.ask());
    await session.apply(good);
    await older.close();

    const delivery = await startNewer();
    const later = openSession(delivery, 'n1', 'later');
    const bad = snapshotOf(await later.ask());
    expect(decoded(bad).node?.multiplexPort).toBe(4242);
    await later.reject(bad);
    const lastGood = snapshotOf(await later.ask());
    expect([lastGood.generation, Buffer.from(lastGood.payload).equals(Buffer.from(good.payload))]).toEqual([
      good.generation,
      true,
    ]);
    expect(decoded(lastGood).node?.multiplexPort).toBe(0);

    // Going back makes a generation that is newer than the rejected one, so the node gets the newest again.
    const lowered = await lower();
    await delivery.close();
    const back = snapshotOf(await openSession(await startOlder(), 'n1', 'back').ask());
    expect(back.generation).toBe(1 + lowered);
    expect(decoded(back).node?.multiplexPort).toBe(0);
  });
});
