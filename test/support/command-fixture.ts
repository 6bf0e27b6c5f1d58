/**
 * Gateways on a real embedded log in a temporary folder: what runs commands, without REST, projections or delivery.
 * Several gateways may share the log, as instances do.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fleetAggregate } from '../../src/commands/aggregate.js';
import type { GatewayOptions } from '../../src/commands/gateway.js';
import { createGateway } from '../../src/commands/gateway.js';
import type { CommandContext, CommandOutcome, Gateway, ProjectionWait } from '../../src/commands/port.js';
import { applyCommand } from '../../src/domain/fleet/apply.js';
import { captureFleet, encodeFleet } from '../../src/domain/fleet/checkpoint.js';
import type { FleetCommand } from '../../src/domain/fleet/events.js';
import type { Fleet } from '../../src/domain/fleet/fleet.js';
import { emptyFleet } from '../../src/domain/fleet/fleet.js';
import { readCommand } from '../../src/domain/log/upcast.js';
import type { Clock } from '../../src/kernel/clock.js';
import { ServiceError } from '../../src/kernel/errors.js';
import type { RecordedEvent } from '../../src/kernel/event.js';
import { streams } from '../../src/kernel/event.js';
import { randomIds } from '../../src/kernel/ids.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { openEmbedded } from '../../src/storage/embedded/open-embedded.js';
import type { EmbeddedStores } from '../../src/storage/embedded/open-embedded.js';
import type { EventStore } from '../../src/storage/event-store.js';
import { createCommandAssembler } from '../../src/storage/follow.js';
import { dumpIndexes } from './fleet-dump.js';
import { createManualClock } from './manual-clock.js';
import type { ManualClock } from './manual-clock.js';
import { scriptedEventStore } from './scripted-event-store.js';
import type { ScriptedEventStore } from './scripted-event-store.js';

/** Read models that have always followed already: commands are not held up. */
export const atOnce: ProjectionWait = { applied: () => Promise.resolve(true) };

export type FleetGateway = Gateway<Fleet, FleetCommand> & {
  /** The deciding fold. */
  readonly fleet: Fleet;
  run(command: FleetCommand, context?: Partial<CommandContext>): Promise<CommandOutcome<undefined>>;
};

export interface CommandFixture<C extends Clock = ManualClock> {
  readonly dataDir: string;
  readonly stores: EmbeddedStores;
  readonly clock: C;
  /** The store as the first gateway sees it. */
  readonly store: ScriptedEventStore;
  /** What a gateway needs, on the scripted store. */
  readonly options: GatewayOptions;
  gateway(options?: Partial<GatewayOptions>): Promise<FleetGateway>;
  /** Another instance: a gateway that no script disturbs. */
  other(): Promise<FleetGateway>;
  log(stream?: string): Promise<readonly RecordedEvent[]>;
  /** A fresh fold of the log. */
  fold(): Promise<Fleet>;
  /** Closes everything and opens the same folder again. */
  reopened(): Promise<CommandFixture<C>>;
  close(): Promise<void>;
}

export function createCommandFixture(): Promise<CommandFixture> {
  return openCommandFixture(createManualClock());
}

export async function openCommandFixture<C extends Clock>(
  clock: C,
  dataDir = mkdtempSync(join(tmpdir(), 'commands-')),
): Promise<CommandFixture<C>> {
  const stores = await openEmbedded({ dataDir, clock, logger: silentLogger });
  const store = scriptedEventStore(stores.eventStore);
  const options: GatewayOptions = {
    eventStore: store,
    projections: atOnce,
    clock,
    ids: randomIds,
    logger: silentLogger,
    readOnly: () => undefined,
  };
  const gateways: FleetGateway[] = [];
  const closeStores = async (): Promise<void> => {
    for (const gateway of gateways) await gateway.close();
    await stores.close();
  };
  const fixture: CommandFixture<C> = {
    dataDir,
    stores,
    clock,
    store,
    options,
    async gateway(overrides = {}) {
      const fleet = emptyFleet();
      const gateway = await createGateway(fleetAggregate(fleet), { ...options, ...overrides });
      const run: FleetGateway['run'] = (command, context = {}) =>
        gateway.execute(command, { actor, requestId: 'test', ...context }, () => undefined);
      const made = { ...gateway, fleet, run };
      gateways.push(made);
      return made;
    },
    other: () => fixture.gateway({ eventStore: stores.eventStore }),
    log: (stream = streams.fleet) => readAll(stores.eventStore, stream),
    async fold() {
      const fleet = emptyFleet();
      for (const command of createCommandAssembler().add(await fixture.log())) {
        applyCommand(fleet, readCommand(command));
        fleet.journal.commit();
      }
      return fleet;
    },
    async reopened() {
      await closeStores();
      return openCommandFixture(clock, dataDir);
    },
    async close() {
      await closeStores();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
  return fixture;
}

export const actor = { type: 'user', id: 'u-1', name: 'tester' } as const;

export async function readAll(store: EventStore, stream: string): Promise<readonly RecordedEvent[]> {
  const events: RecordedEvent[] = [];
  for await (const event of store.read(stream, { direction: 'forward', from: 'start', maxCount: 1_000_000 })) {
    events.push(event);
  }
  return events;
}

/**
 * A fold as text, checkpoint and indexes. Without the log position: a deciding fold applies its own events before they
 * have one.
 */
export function bytesOf(fleet: Fleet): string {
  const capture = captureFleet(fleet);
  const lines = capture.lines.map((line) =>
    line[0] === 'head' ? (['head', { ...line[1], position: 0 }] as const) : line,
  );
  return `${Buffer.concat([...encodeFleet({ ...capture, lines })]).toString('utf8')}${dumpIndexes(fleet)}`;
}

/** What a call was refused with. Fails when it was not, or not by a ServiceError. */
export async function refusalOf(call: Promise<unknown>): Promise<ServiceError> {
  const error = await call.then(
    (value) => new Error(`expected a refusal, got ${JSON.stringify(value)}`),
    (thrown: unknown) => thrown,
  );
  if (error instanceof ServiceError) return error;
  throw error;
}
