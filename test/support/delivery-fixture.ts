/** Delivery on real embedded stores in a temporary folder, a log to write to, and sessions that record their offers. */
import { createDelivery, type DeliveryDeps, type DeliveryService } from '../../src/delivery/delivery.js';
import type { ConfigAnswer, NodeSession, SnapshotPush } from '../../src/delivery/port.js';
import type { RecordedApplyReports } from '../../src/delivery/target.js';
import type { AgentEvent } from '../../src/domain/agents/facts.js';
import { evolveAgentFacts, neverConnected } from '../../src/domain/agents/node-agent-facts.js';
import type { RuntimeConfigSnapshot } from '../../src/gen/svc/control/v1/config.js';
import { ServicePayload } from '../../src/gen/svc/control/v1/session.js';
import { timestamp } from '../../src/kernel/clock.js';
import { silentLogger } from '../../src/kernel/logger.js';
import {
  openCommittedFleet,
  type CommittedFleet,
  type CommittedFleetDeps,
} from '../../src/projections/fleet/committed-fleet.js';
import { followInMemory, type LogFold, type LogFollowerDeps } from '../../src/projections/log-follower.js';
import type { Keyring } from '../../src/security/keyring.js';
import { createFleetLog, type FleetLog } from './fleet-log.js';
import { testLogChain } from './log-chain.js';
import { createManualClock, type ManualClock } from './manual-clock.js';
import { testKeyring } from './keyring.js';
import { openTemporaryStores, type TemporaryStores } from './temporary-stores.js';

/** Delivery on a committed fleet of its own; its `close` closes both. */
export interface StartedDelivery extends DeliveryService {
  readonly committed: CommittedFleet;
}

/** What differs from the fixture's, for delivery and the committed fleet. */
export type DeliveryChoices = Partial<DeliveryDeps> &
  Partial<CommittedFleetDeps> &
  Partial<Pick<LogFollowerDeps, 'graceMs' | 'checkpointEvery'>> & {
    /** Folds that follow the log beside the committed fleet. */
    readonly also?: readonly LogFold[];
  };

export interface DeliveryFixture {
  readonly stores: TemporaryStores;
  readonly log: FleetLog;
  readonly clock: ManualClock;
  readonly keyring: Keyring;
  /** Recorded facts, in order. */
  readonly facts: AgentEvent[];
  /** Starts delivery, and waits until it has caught up. */
  start(overrides?: DeliveryChoices): Promise<StartedDelivery>;
  close(): Promise<void>;
}

/** @param opened an opened folder, by default a new one; `storesInMemory()` where nothing is asked of one */
export async function createDeliveryFixture(opened?: TemporaryStores): Promise<DeliveryFixture> {
  const clock = createManualClock();
  const stores = opened ?? (await openTemporaryStores(clock));
  const log = await createFleetLog(stores.eventStore);
  const keyring = testKeyring();
  const facts: AgentEvent[] = [];
  const times = new WeakMap<AgentEvent, string>();
  const started: StartedDelivery[] = [];
  return {
    stores,
    log,
    clock,
    keyring,
    facts,
    async start(overrides = {}) {
      const delivery = await startDelivery({
        eventStore: stores.eventStore,
        readStore: stores.readStore,
        keyring,
        clock,
        logger: silentLogger,
        logChain: testLogChain(),
        raiseGeneration: async (nodeId, reported) => {
          await log.run({ type: 'RaiseNodeGeneration', id: nodeId, reported }, new Date(clock.now()).toISOString());
        },
        recordFact: async (_nodeId, event) => {
          facts.push(event);
          times.set(event, timestamp(clock.now()));
          return 'recorded';
        },
        nodeFacts: (nodeId) => recordedReportsOf(facts, nodeId, (fact) => times.get(fact) ?? timestamp(clock.now())),
        compileEarlier: () => Promise.reject(new Error('this fixture looks at nothing earlier')),
        ...overrides,
      });
      started.push(delivery);
      await until(() => delivery.state().kind === 'ready' && delivery.generation('nobody') === undefined);
      await delivery.committed.passed(log.fleet.revision.value, 10_000);
      return delivery;
    },
    async close() {
      for (const delivery of started) await delivery.close();
      await stores.close();
    },
  };
}

/** What the read models would have of the facts. @param at when each was recorded, RFC 3339 */
function recordedReportsOf(
  facts: readonly AgentEvent[],
  nodeId: string,
  at: (fact: AgentEvent) => string,
): RecordedApplyReports {
  return facts
    .filter(({ data }) => data.node_id === nodeId)
    .reduce((before, fact) => evolveAgentFacts(before, fact, at(fact), ''), neverConnected);
}

async function startDelivery(
  deps: Omit<DeliveryDeps, 'committed'> &
    CommittedFleetDeps &
    Pick<DeliveryChoices, 'committed' | 'also' | 'graceMs' | 'checkpointEvery'>,
): Promise<StartedDelivery> {
  const committed = deps.committed ?? (await openCommittedFleet(deps));
  const delivery = await createDelivery({ ...deps, committed });
  const follower = followInMemory({ ...deps, folds: [committed, ...(deps.also ?? [])] });
  return {
    ...delivery,
    committed,
    async close() {
      await follower.close();
      await delivery.close();
      committed.close();
    },
  };
}

/** Delivery that records nothing and raises nothing, and is not waited for. @param differing for example another event store */
export function createBareDelivery(
  { stores, keyring, clock }: DeliveryFixture,
  differing: DeliveryChoices,
): Promise<StartedDelivery> {
  return startDelivery({
    eventStore: stores.eventStore,
    readStore: stores.readStore,
    keyring,
    clock,
    logger: silentLogger,
    logChain: testLogChain(),
    raiseGeneration: () => Promise.resolve(),
    recordFact: () => Promise.resolve('recorded'),
    nodeFacts: () => neverConnected,
    compileEarlier: () => Promise.resolve(undefined),
    ...differing,
  });
}

export interface TestSession {
  readonly nodeSession: NodeSession;
  /** Every offer, in order. */
  readonly offers: SnapshotPush[];
  /** The slot: the newest offer that was not taken. */
  take(): SnapshotPush | undefined;
  /** Sends a ConfigRequest of a process without configuration. */
  ask(): Promise<ConfigAnswer>;
  apply(push: SnapshotPush): Promise<void>;
  reject(push: SnapshotPush): Promise<void>;
}

const noChecksum = Buffer.alloc(0);

export function openSession(
  delivery: Pick<DeliveryService, 'openNodeSession'>,
  nodeId: string,
  sessionId = `${nodeId}-session`,
  confirm?: (generation: number) => void,
): TestSession {
  const offers: SnapshotPush[] = [];
  let slot: SnapshotPush | undefined;
  const nodeSession = delivery.openNodeSession(
    nodeId,
    sessionId,
    {
      offer(push) {
        offers.push(push);
        slot = push;
      },
    },
    confirm,
  );
  const report = (push: SnapshotPush, status: 'applied' | 'rejected'): Promise<void> =>
    nodeSession.report(
      {
        generation: BigInt(push.generation),
        checksum: push.checksum,
        status,
        errors:
          status === 'applied' ? [] : [{ resource_type: 'l4_chain', resource_id: 'c', path: 'hops[0]', message: 'no' }],
        durationMs: 3,
      },
      0,
    );
  return {
    nodeSession,
    offers,
    take() {
      const taken = slot;
      slot = undefined;
      return taken;
    },
    ask: () => nodeSession.request(0n, noChecksum),
    apply: (push) => report(push, 'applied'),
    reject: (push) => report(push, 'rejected'),
  };
}

export function snapshotOf(answer: ConfigAnswer): SnapshotPush {
  if (answer.kind !== 'snapshot') throw new Error(`expected a snapshot, got ${JSON.stringify(answer)}`);
  return answer.push;
}

/** The snapshot in the bytes of a push. */
export function decoded(push: Pick<SnapshotPush, 'payload'>): RuntimeConfigSnapshot {
  const { payload } = ServicePayload.decode(push.payload);
  if (payload?.$case !== 'configUpdate' || payload.value.update?.$case !== 'snapshot') throw new Error('no snapshot');
  return payload.value.update.value;
}

/**
 * A session of a node of its own that waits behind all others.
 * @returns a function that resolves once every change before its call has been served, or was not to be served
 */
export async function witness(fixture: DeliveryFixture, delivery: StartedDelivery): Promise<() => Promise<void>> {
  const id = 'witness';
  if (!fixture.log.fleet.tables.node.has(id)) await fixture.log.createNode(id);
  await delivery.committed.passed(fixture.log.fleet.revision.value, 10_000);
  const session = openSession(delivery, id);
  snapshotOf(await session.ask());
  return async () => {
    // Changed nodes are served in the order of their changes.
    await fixture.log.run({ type: 'RefreshNodeConfig', id });
    const newest = 1 + fixture.log.fleet.revision.value;
    await until(() => session.offers.at(-1)?.generation === newest, 'the offer to the witness');
  };
}

/** Gives the event loop so many turns that whatever is ready has been done: work in memory takes turns, not time. */
export async function turns(count = 100): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** Waits until the condition holds; throws after 20 s. */
export async function until(condition: () => boolean, what = 'the condition'): Promise<void> {
  const deadline = Date.now() + 20_000;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error(`${what} did not come true`);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}
