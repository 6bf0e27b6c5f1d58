/**
 * The followers of the log on a node that is cut off from its leader: commands are durable, and neither delivery nor the
 * read models hear of them. The instance notices, is not ready until both have them, and needs no restart.
 */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { silentLogger } from '../../src/kernel/logger.js';
import { openAgentFacts } from '../../src/reports/facts.js';
import { openAccounts } from '../../src/projections/accounts.js';
import { startProjections } from '../../src/projections/projections.js';
import { createFollowers } from '../../src/projections/followers.js';
import type { EventStore } from '../../src/storage/event-store.js';
import { openEventStoreDb } from '../../src/storage/eventstoredb/open.js';
import { startCluster, type EventStoreDbCluster } from '../servers/eventstoredb/cluster.js';
import { createDeliveryFixture, type DeliveryFixture } from '../support/delivery-fixture.js';
import { testLogChain } from '../support/log-chain.js';
import { eventually } from '../support/eventually.js';
import { createFleetLog } from '../support/fleet-log.js';
import { createNode } from '../support/fleet.js';

let cluster: EventStoreDbCluster;
let eventStore: EventStore;
let fixture: DeliveryFixture;
beforeEach(async () => {
  cluster = await startCluster();
  const tuning = { headEveryMs: 40, starvedMs: 150, starvedCatchingUpMs: 150 };
  eventStore = openEventStoreDb({ url: cluster.url, logger: silentLogger, tuning });
  fixture = await createDeliveryFixture();
});
afterEach(async () => {
  await fixture.close();
  await eventStore.close();
  await cluster.close();
});

it('are found behind, make the instance unready, and follow again by another node', async () => {
  const log = await createFleetLog(eventStore);
  const accounts = openAccounts(eventStore, testLogChain(), silentLogger);
  const agentFacts = await openAgentFacts({ eventStore, sealing: testLogChain(), logger: silentLogger });
  const delivery = await fixture.start({ eventStore, also: [accounts, agentFacts] });
  const { readStore } = fixture.stores;
  const projections = await startProjections({
    eventStore,
    readStore,
    logger: silentLogger,
    deletionTime: () => undefined,
  });
  const logChain = testLogChain();
  const followers = createFollowers({
    eventStore,
    committed: delivery.committed,
    projections,
    accounts,
    agentFacts,
    logChain,
    clock: fixture.clock,
  });
  try {
    await followers.caughtUp(silentLogger);
    await eventually(followers.notReady).toEqual([]);

    const [, node] = cluster.nodes;
    node!.faults.cutOffAt = node!.log.head();
    cluster.lead(0);
    await log.run(createNode('one'));
    const written = log.fleet.revision.value;
    /** Reasons for being unready, and what the followers hold whenever one of them changes its mind. */
    const reasons = new Set<string>();
    const readyAt: object[] = [];
    const look = (): void => {
      const now = followers.notReady();
      for (const reason of now) reasons.add(reason);
      if (now.length > 0) return;
      const { revision, position } = delivery.committed.fleet();
      readyAt.push({ revision: revision.value, isStored: projections.status().position >= position.value });
    };
    delivery.onStateChange(look);
    projections.onStatusChange(look);

    await eventually(() => readyAt.length).toBeGreaterThan(0);
    expect(reasons).toContain('the projections are catching up with the log');
    expect(readyAt[0]).toEqual({ revision: written, isStored: true });
    expect(eventStore.starved()).toBeGreaterThan(0);
    expect(followers.notReady()).toEqual([]);
  } finally {
    accounts.close();
    await projections.close();
  }
});
