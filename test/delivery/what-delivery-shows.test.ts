/** What delivery and the committed fleet show and count, and what delivery says when something in it fails. */
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { compileNode } from '../../src/domain/compile/compile-node.js';
import { ServiceError } from '../../src/kernel/errors.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { fleetQueries } from '../../src/projections/fleet/fleet-queries.js';
import type { LogItem } from '../../src/storage/event-store.js';
import type { Collection, Fields, ReadStore } from '../../src/storage/read-store.js';
import {
  createBareDelivery,
  createDeliveryFixture,
  openSession,
  snapshotOf,
  until,
  type DeliveryChoices,
  type DeliveryFixture,
  type StartedDelivery,
} from '../support/delivery-fixture.js';
import * as f from '../support/fleet.js';
import { shortSleeps } from '../support/short-sleeps.js';
import { storesInMemory } from '../support/stores-in-memory.js';

let fixture: DeliveryFixture;
let lines: string[];
beforeEach(async () => {
  lines = [];
  fixture = await createDeliveryFixture(storesInMemory());
  for (const command of [
    f.createNode('b'),
    f.createNode('a', { psk: { fingerprint: 'SHA256:x', verifier: f.sealed } }),
    f.createUpstream('up'),
    f.createChain('c', [f.hop('a', 8000), f.hop('b', 9000)]),
    f.createX25519('keys'),
  ]) {
    await fixture.log.run(command);
  }
});
afterEach(() => fixture.close());

const [a, b] = [f.nodeId('a'), f.nodeId('b')];
const logger = {
  ...silentLogger,
  warn: (fields: object, message: string) => void lines.push(`${message} ${JSON.stringify(fields)}`),
  error: (fields: object, message: string) => void lines.push(`${message} ${JSON.stringify(fields)}`),
};
const start = (over: DeliveryChoices = {}): Promise<StartedDelivery> => fixture.start({ logger, ...over });
const run = (command: Parameters<typeof fixture.log.run>[0]): Promise<number> => fixture.log.run(command);
const passed = async (delivery: StartedDelivery, revision: number): Promise<void> =>
  expect(await delivery.committed.passed(revision, 5_000)).toBe(true);

const queriesOf = ({ committed }: StartedDelivery) => fleetQueries(committed, fixture.clock);

describe('delivery and the committed fleet show', () => {
  it('each resource as the log has it', async () => {
    const delivery = await start();
    const queries = queriesOf(delivery);
    expect([delivery.node(a)?.name, delivery.node('nobody'), delivery.generation('nobody')]).toEqual([
      'a',
      undefined,
      undefined,
    ]);
    expect([queries.chain(f.chainId('c'))?.name, queries.chain('none')]).toEqual(['c', undefined]);
    expect(delivery.settings().multiplex).toBe(fixture.log.fleet.singletons.connectivity.value.multiplex);
    expect([...queries.credentials()].map(({ name }) => name)).toEqual(['keys']);
    expect([...queries.nodeIds()].sort()).toEqual([a, b].sort());
    expect(queries.allNodes().map(({ name }) => name)).toEqual(['a', 'b']);
    expect([a, b, 'nobody'].map((id) => delivery.psks(id)[0]?.verifier)).toEqual([f.sealed, undefined, undefined]);
    expect(queries.referrers('node', a).map(({ name }) => name)).toEqual(['c']);
    expect((await queries.resourceCounts()).l4_chains.total).toBe(1);
  });

  it('what a chain would change, and after its deploy where nodes listen and whom they dial', async () => {
    const delivery = await start();
    const queries = queriesOf(delivery);
    expect(
      queries
        .plan(f.chainId('c'))
        ?.nodes.map(({ node_id }) => node_id)
        .sort(),
    ).toEqual([a, b].sort());
    expect(queries.plan('none')).toBeUndefined();
    expect([...queries.liveListeners(a)]).toEqual([]);
    await passed(delivery, await run(f.deployChain('c')));
    expect([queries.liveListeners(a).size, queries.liveListeners('nobody').size]).toEqual([1, 0]);
    expect([queries.portRows(a).length, queries.portRows('nobody')]).toEqual([1, []]);
    expect([queries.links(a).length, queries.links('nobody')]).toEqual([1, []]);
  });

  it('its counts: sessions, offers, reports and rejects', async () => {
    const delivery = await start();
    const zero = { sessions: 0, waitingNodes: 0, rejectingNodes: 0, offered: 0 };
    expect(delivery.stats()).toMatchObject(zero);
    const session = openSession(delivery, a);
    const push = snapshotOf(await session.ask());
    expect(delivery.stats()).toMatchObject({ ...zero, sessions: 1 });
    await session.reject(push);
    expect(delivery.stats().rejectingNodes).toBe(1);
    expect([...delivery.stats().reports.values()].reduce((sum, count) => sum + count, 0)).toBe(1);
    await run({ type: 'RefreshNodeConfig', id: a });
    await until(() => session.offers.length === 1);
    expect(delivery.stats()).toMatchObject({ ...zero, sessions: 1, offered: 1 });
    await session.apply(session.offers[0]!);
    const { values } = await delivery.timeToApplied.get();
    expect(values.find(({ metricName }) => metricName?.endsWith('_count') === true)?.value).toBe(1);
    session.nodeSession.close();
    expect(delivery.stats().sessions).toBe(0);
  });
});

it('how long a session has not taken what it is offered is shown, and nothing where nothing waits', async () => {
  fixture.clock.advance(1_000);
  const delivery = await start();
  const session = openSession(delivery, b);
  await session.ask();
  expect([delivery.unsentMs(b), delivery.unsentMs('nobody')]).toEqual([0, 0]);
  await run({ type: 'RefreshNodeConfig', id: b });
  await until(() => session.offers.length === 1);
  fixture.clock.advance(700);
  expect(delivery.unsentMs(b)).toBe(700);
});

describe('a listener of delivery', () => {
  it('that fails is told in the log, and the others are called', async () => {
    const delivery = await start();
    const heard: unknown[] = [];
    delivery.onRevoked(() => {
      throw new Error('a fault in the listener');
    });
    const stop = delivery.onRevoked((nodeId) => void heard.push(nodeId));
    const issue = (id: string) =>
      run({ type: 'IssueNodePsk', id, fingerprint: 'SHA256:y', verifier: { ...f.sealed, ct: 'new' } });
    await passed(delivery, await issue(a));
    expect(heard).toEqual([a]);
    expect(lines).toEqual([expect.stringMatching(/^a listener of delivery failed .*a fault in the listener/)]);
    stop();
    await passed(delivery, await issue(b));
    expect(heard).toHaveLength(1);
  });
});

describe('delivery drains a session', () => {
  /** Delivery on a log that never reaches its end. */
  const behind = (random: number) =>
    createBareDelivery(fixture, {
      eventStore: {
        ...fixture.stores.eventStore,
        async *subscribe(options): AsyncGenerator<LogItem> {
          for await (const item of fixture.stores.eventStore.subscribe(options))
            if (item.kind !== 'caught_up') yield item;
        },
      },
      random: () => random,
      requestWaitMs: 20,
    });

  it.each([
    [0, 1_000],
    [0.5, 2_000],
    [1, 3_000],
  ])('with a time to come back that is spread (%d: %i ms)', async (random, retryAfterMs) => {
    const delivery = await behind(random);
    await until(() => delivery.node(a) !== undefined);
    expect(await openSession(delivery, a).ask()).toEqual({ kind: 'draining', retryAfterMs });
    await delivery.close();
  });
});

describe('what fails in delivery', () => {
  it('a generation that cannot be raised is told, and the agent is drained', async () => {
    const delivery = await start({
      raiseGeneration: () => Promise.reject(new ServiceError('unavailable', 'the log is away')),
      requestWaitMs: 50,
    });
    const answer = await openSession(delivery, a).nodeSession.request(500n, Buffer.alloc(32));
    expect(answer.kind).toBe('draining');
    expect(lines).toEqual([expect.stringMatching(new RegExp(`^a generation was not raised .*${a}.*the log is away`))]);
  });

  it('a node that cannot be served now is told, and served later', async () => {
    let fails = false;
    const delivery = await start({
      compile(...args) {
        if (fails) throw new ServiceError('unavailable', 'not now');
        return compileNode(...args);
      },
    });
    const session = openSession(delivery, a);
    await session.ask();
    fails = true;
    await run({ type: 'RefreshNodeConfig', id: a });
    await until(() => lines.length > 0);
    expect(lines[0]).toMatch(new RegExp(`^a node was not served yet .*${a}.*not now`));
    expect(delivery.stats().waitingNodes).toBe(1);
    fails = false;
    await until(() => session.offers.length === 1);
    expect(delivery.stats().waitingNodes).toBe(0);
  });

  it('a last-good snapshot that cannot be removed with its node is told', async () => {
    onTestFinished(shortSleeps().restore);
    const inner = fixture.stores.readStore;
    let fails = false;
    const readStore: ReadStore = {
      ...inner,
      async collection<F extends Fields>(spec: Parameters<ReadStore['collection']>[0]) {
        const collection: Collection<F> = await inner.collection<F>(spec);
        return {
          ...collection,
          async get(id) {
            if (fails) throw new ServiceError('unavailable', 'the store is away');
            return collection.get(id);
          },
          async remove(ids) {
            if (fails) throw new ServiceError('unavailable', 'the store is away');
            return collection.remove(ids);
          },
        };
      },
    };
    const delivery = await start({ readStore });
    const session = openSession(delivery, a);
    await session.apply(snapshotOf(await session.ask()));
    await run({ type: 'DeleteChain', id: f.chainId('c'), ifMatch: undefined });
    fails = true;
    await run({ type: 'DeleteNode', id: a, ifMatch: undefined });
    await until(() => lines.length > 0);
    expect(lines[0]).toMatch(new RegExp(`^the last-good snapshot of a deleted node was not removed .*${a}`));
  });
});
