/**
 * Gateways on a real embedded log in a temporary folder, or on one in memory, without REST, projections and delivery.
 * Several gateways may share the log, as instances do. No subscription: a gateway reads the log when it has to.
 */
import { fleetAggregate, type DecidedOnFleet } from '../../src/commands/aggregate.js';
import { openCommittedFleet, type CommittedFleet } from '../../src/projections/fleet/committed-fleet.js';
import { createGateway, type GatewayOptions } from '../../src/commands/gateway.js';
import type { CommandContext, CommandOutcome, Gateway } from '../../src/commands/port.js';
import { applyCommand } from '../../src/domain/fleet/apply.js';
import { captureFleet, encodeFleet } from '../../src/domain/fleet/checkpoint.js';
import { emptyFleet, type Fleet } from '../../src/domain/fleet/fleet.js';
import { readCommand } from '../../src/domain/log/upcast.js';
import { ServiceError } from '../../src/kernel/errors.js';
import { streams, type RecordedEvent } from '../../src/kernel/event.js';
import { randomIds } from '../../src/kernel/ids.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { createCommandAssembler } from '../../src/storage/follow.js';
import { readAll } from '../storage/contract/appending.js';
import { dumpIndexes } from './fleet-dump.js';
import { testLogChain } from './log-chain.js';
import { createManualClock, type ManualClock } from './manual-clock.js';
import { scriptedEventStore, type ScriptedEventStore } from './scripted-event-store.js';
import { openTemporaryStores, type TemporaryStores } from './temporary-stores.js';

export type FleetGateway = Gateway<Fleet, DecidedOnFleet> & {
  /** What it decides on. */
  readonly fleet: Fleet;
  run(command: DecidedOnFleet, context?: Partial<CommandContext>): Promise<CommandOutcome<undefined>>;
};

export interface CommandFixture {
  readonly stores: TemporaryStores;
  readonly clock: ManualClock;
  /** The store as the first gateway sees it. */
  readonly store: ScriptedEventStore;
  /** What a gateway needs, on the scripted store. */
  readonly options: GatewayOptions;
  gateway(options?: Partial<GatewayOptions>, aggregate?: typeof fleetAggregate): Promise<FleetGateway>;
  /** Another instance: a gateway on the store without its script. */
  other(): Promise<FleetGateway>;
  log(stream?: string): Promise<readonly RecordedEvent[]>;
  /** A fresh fold of the log. */
  fold(): Promise<Fleet>;
  /** Closes everything and opens the same folder again. */
  reopened(): Promise<CommandFixture>;
  close(): Promise<void>;
}

/** A gateway on a committed fleet that the caller closes. */
export const fleetGatewayOn = (
  committed: CommittedFleet,
  options: GatewayOptions,
  aggregate: typeof fleetAggregate = fleetAggregate,
): FleetGateway =>
  fleetGatewayOf(createGateway(aggregate, { ...committed, state: committed.fleet }, options), committed);

/** A gateway with what tests read of it. */
export function fleetGatewayOf(gateway: Gateway<Fleet, DecidedOnFleet>, committed: CommittedFleet): FleetGateway {
  return {
    ...gateway,
    get fleet() {
      return committed.fleet();
    },
    run: (command, context = {}) => gateway.execute(command, { actor, requestId: 'test', ...context }, () => undefined),
  };
}

/** @param opened an opened folder, by default a new one; `storesInMemory()` where nothing is asked of one */
export async function createCommandFixture(
  opened?: TemporaryStores,
  clock: ManualClock = createManualClock(),
): Promise<CommandFixture> {
  const stores = opened ?? (await openTemporaryStores(clock));
  const store = scriptedEventStore(stores.eventStore);
  const options: GatewayOptions = {
    eventStore: store,
    clock,
    ids: randomIds,
    logger: silentLogger,
    logChain: testLogChain(),
    readOnly: () => undefined,
    sharedTime: clock.now,
  };
  const gateways: FleetGateway[] = [];
  const closeGateways = async (): Promise<void> => {
    for (const gateway of gateways) await gateway.close();
  };
  const fixture: CommandFixture = {
    stores,
    clock,
    store,
    options,
    async gateway(overrides = {}, aggregate = fleetAggregate) {
      const { eventStore, logger, logChain } = { ...options, ...overrides };
      const committed = await openCommittedFleet({ eventStore, logger, logChain });
      await committed.catchUp();
      const gateway = fleetGatewayOn(committed, { ...options, ...overrides }, aggregate);
      const made: FleetGateway = {
        ...gateway,
        // A getter does not survive a spread.
        get fleet() {
          return gateway.fleet;
        },
        async close() {
          await gateway.close();
          await committed.close();
        },
      };
      gateways.push(made);
      return made;
    },
    other: () => fixture.gateway({ eventStore: stores.eventStore }),
    log: (stream = streams.fleet) => readAll(stores.eventStore, stream),
    async fold() {
      const fleet = emptyFleet();
      for (const command of createCommandAssembler().add(await fixture.log())) {
        fleet.logChain.set(options.logChain.follow(fleet.logChain.value, command));
        applyCommand(fleet, readCommand(command));
      }
      return fleet;
    },
    async reopened() {
      await closeGateways();
      return createCommandFixture(await stores.reopened(), clock);
    },
    async close() {
      await closeGateways();
      await stores.close();
    },
  };
  return fixture;
}

export const actor = { type: 'user', id: 'u-1', name: 'tester' } as const;

/**
 * A fold as text, checkpoint and indexes. Without the log position: a gateway folds the commands of one append at the
 * position of its end.
 */
export function bytesOf(fleet: Fleet): string {
  const capture = captureFleet(fleet);
  const head = { ...capture.head, position: 0 };
  return `${Buffer.concat([...encodeFleet({ ...capture, head })]).toString('utf8')}${dumpIndexes(fleet)}`;
}

/** The ServiceError that the call was refused with; fails unless there is one. */
export async function refusalOf(call: Promise<unknown>): Promise<ServiceError> {
  const error = await call.then(
    (value) => new Error(`expected a refusal, got ${JSON.stringify(value)}`),
    (thrown: unknown) => thrown,
  );
  if (error instanceof ServiceError) return error;
  throw error;
}
