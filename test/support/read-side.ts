/**
 * The read side on real embedded stores in a temporary folder, for tests of `src/projections`: random logs of every
 * stream that read models use, a way to append them, and a dump of all documents.
 */
import fc from 'fast-check';
import type { SigninEvent } from '../../src/domain/accounts/signin.js';
import type { AgentEvent } from '../../src/domain/agents/facts.js';
import type { AccountEvent } from '../../src/domain/accounts/declaration.js';
import { applyCommand } from '../../src/domain/fleet/apply.js';
import { emptyFleet, type Fleet } from '../../src/domain/fleet/fleet.js';
import { schemaVersions } from '../../src/domain/log/upcast.js';
import {
  agentsStream,
  streams,
  type Actor,
  type EventMetadata,
  type ProposedEvent,
  type RecordedCommand,
  type RecordedEvent,
} from '../../src/kernel/event.js';
import { uuidFromName } from '../../src/kernel/ids.js';
import type { JsonObject } from '../../src/kernel/json.js';
import { silentLogger, type Logger } from '../../src/kernel/logger.js';
import { startProjections, type ProjectionsOptions } from '../../src/projections/projections.js';
import type { Projections } from '../../src/projections/port.js';
import type { ReadModel } from '../../src/projections/read-model.js';
import { groupVersion, readModels } from '../../src/projections/read-models.js';
import type { EmbeddedStores } from '../../src/storage/embedded/open-embedded.js';
import type { EventStore } from '../../src/storage/event-store.js';
import type { ReadStore, StoredDocument } from '../../src/storage/read-store.js';
import { sealed } from './fleet.js';
import { histories } from './fleet-histories.js';
import { play } from './fleet-play.js';
import { createDice } from './hostile.js';
import { createManualClock, type ManualClock } from './manual-clock.js';
import { storesInMemory } from './stores-in-memory.js';
import { openTemporaryStores } from './temporary-stores.js';

/** A command that is not in the log yet. */
export interface Planned {
  readonly stream: string;
  readonly id: string;
  readonly actor: Actor;
  readonly at: string;
  readonly events: readonly { readonly type: string; readonly data: object }[];
  readonly revertOf?: string | undefined;
  readonly schema?: number;
}

const epoch = Date.UTC(2025, 0, 1);
export const someUsers = ['ada', 'grace', 'linus'].map((name) => ({ id: uuidFromName(`user ${name}`), name }));
const system: Actor = { type: 'system', id: 'system', name: 'system' };

let counter = 0;

/** One command of one stream, by default of the system. */
export function planned(stream: string, events: Planned['events'], more: Partial<Planned> = {}): Planned {
  counter += 1;
  const at = new Date(epoch + counter * 1000).toISOString();
  return { stream, id: uuidFromName(`planned ${counter}`), actor: system, at, events, ...more };
}

/** A node is created under a name. */
export function nodeCreated(node_id: string, name: string = node_id): Planned {
  const data = { node_id, name, description: null, address: null, labels: {} };
  return planned(streams.fleet, [{ type: 'NodeCreated', data }]);
}

export function nodeRenamed(node_id: string, to: string, from = 'before'): Planned {
  return planned(streams.fleet, [{ type: 'NodeUpdated', data: { node_id, changes: { name: { from, to } } } }]);
}

/** The newest name of a node that the read models hold. @throws ServiceError `unavailable` */
export async function nameOf(projections: Pick<Projections, 'names'>, id: string): Promise<string | null> {
  const lookup = { type: 'node', id, position: Number.MAX_SAFE_INTEGER };
  return (await projections.names([lookup]))(lookup);
}

function agentFact(event: AgentEvent, more: Partial<Planned> = {}): Planned {
  const { node_id } = event.data;
  return planned(agentsStream(node_id), [event], { actor: { type: 'agent', id: node_id, name: node_id }, ...more });
}

export function sessionOpened(nodeId: string, agentVersion = '1.0.0'): Planned {
  const data = {
    node_id: nodeId,
    session_id: 'ab',
    instance_id: 'i',
    agent_version: agentVersion,
    public_ipv4: '203.0.113.9',
    public_ipv6: '',
    detected_addresses: ['10.0.0.1'],
    multiplex: true,
    multiplex_port: 9000,
  };
  return agentFact({ type: 'AgentSessionOpened', data });
}

export function configApplied(nodeId: string, generation: number): Planned {
  const data = { node_id: nodeId, generation, checksum: `c${generation}`, duration_ms: 1 };
  return agentFact({ type: 'AgentConfigApplied', data });
}

function configRejected(nodeId: string, generation: number): Planned {
  const errors = [{ resource_type: 'l4_chain', resource_id: 'c', path: 'hops[0]', message: 'no' }];
  const data = { node_id: nodeId, generation, checksum: `c${generation}`, errors };
  return agentFact({ type: 'AgentConfigRejected', data });
}

export function signedIn(user: { readonly id: string; readonly name: string } | null): Planned {
  const data = { user_id: user?.id ?? null, username: user?.name ?? null, address: '192.0.2.9' };
  const event: SigninEvent =
    user === null
      ? { type: 'SignInRefused', data }
      : { type: 'SignedIn', data: { user_id: user.id, username: user.name, address: data.address } };
  return planned(streams.signins, [event]);
}

export function userCreated(user: { readonly id: string; readonly name: string }): Planned {
  const event: AccountEvent = {
    type: 'UserCreated',
    data: {
      user_id: user.id,
      username: user.name,
      role: 'operator',
      display_name: null,
      email: null,
      password: sealed,
    },
  };
  return planned(streams.accounts, [event]);
}

function apiTokenMade(user_id: string, api_token_id: string): AccountEvent {
  const marks = { prefix: 'svcat_AAAAAA', token_sha256: api_token_id };
  const fields = { name: api_token_id, role: 'viewer', from: [], expires_at: null } as const;
  return { type: 'ApiTokenCreated', data: { user_id, api_token_id, ...fields, ...marks } };
}

/** A random log: a fleet's history with facts about agents and users between its commands. Times sometimes go back. */
export function randomLog(seed: number, length = 40): readonly Planned[] {
  const dice = createDice(seed);
  const moves = fc.sample(histories(length), { seed, numRuns: 20 }).flat().slice(0, length);
  const log: Planned[] = someUsers.map(userCreated);
  const nodeIds = new Set<string>();
  const fleetCommands: string[] = [];
  const of = <T>(list: readonly T[]): T => list[dice.below(list.length)] as T;
  const add = (one: Planned): void => {
    const at = new Date(epoch + (log.length - dice.below(3)) * 1000).toISOString();
    log.push({ ...one, id: uuidFromName(`command ${seed} ${log.length}`), at });
  };
  const interlude = (): void => {
    const nodes = [...nodeIds];
    while (dice.chance(0.5)) {
      if (nodes.length > 0 && dice.chance(0.8)) {
        const node = of(nodes);
        const generation = 1 + dice.below(20);
        const until = new Date(epoch + dice.below(100_000)).toISOString();
        add(
          of([
            () => sessionOpened(node, of(['1.0.0', '2.0.0'])),
            () => configApplied(node, generation),
            () => configRejected(node, generation),
            () => agentFact({ type: 'AgentVersionConflict', data: { node_id: node, reported: '9'.repeat(20) } }),
            () => agentFact({ type: 'AgentDuplicateSeen', data: { node_id: node, until } }),
          ])(),
        );
      } else if (dice.chance(0.7)) add(signedIn(dice.chance(0.3) ? null : of(someUsers)));
      else {
        const user_id = of(someUsers).id;
        const event: AccountEvent = dice.chance(0.5)
          ? { type: 'UserPasswordChanged', data: { user_id, password: sealed } }
          : apiTokenMade(user_id, uuidFromName(`token ${seed} ${log.length}`));
        add(planned(streams.accounts, [event]));
      }
    }
  };
  play(moves, {
    after(now, { performed }) {
      if (performed.kind !== 'written') return;
      for (const id of now.tables.node.ids()) nodeIds.add(id);
      const actor: Actor = dice.chance(0.2) ? system : { type: 'user', ...of(someUsers) };
      const revertOf = fleetCommands.length > 0 && dice.chance(0.2) ? of(fleetCommands) : undefined;
      add(planned(streams.fleet, performed.events, { actor, revertOf }));
      fleetCommands.push(log.at(-1)!.id);
      interlude();
    },
  });
  return log;
}

export function proposedEvents({ id, actor, at, events, revertOf, schema }: Planned): readonly ProposedEvent[] {
  return events.map(({ type, data }, index) => {
    const metadata: EventMetadata = {
      command: { id, index, count: events.length },
      actor,
      request_id: `request ${id}`,
      occurred_at: at,
      schema_version: schema ?? (schemaVersions as { readonly [type: string]: number | undefined })[type] ?? 1,
      ...(revertOf === undefined ? {} : { revert_of: revertOf }),
    };
    return { id: uuidFromName(`${id} ${index}`), type, data: JSON.parse(JSON.stringify(data)) as JsonObject, metadata };
  });
}

/** The log as if it were appended: revisions from 0 per stream, positions with gaps. */
export function asRecorded(log: readonly Planned[]): readonly RecordedCommand[] {
  const revisions = new Map<string, number>();
  let position = 0;
  return log.map((one) => {
    const [first, ...rest] = proposedEvents(one).map((event): RecordedEvent => {
      const revision = revisions.get(one.stream) ?? 0;
      revisions.set(one.stream, revision + 1);
      position += 3;
      return { ...event, stream: one.stream, revision, position };
    });
    return { stream: one.stream, events: [first!, ...rest] };
  });
}

/** The fleet after a log, by the domain's own fold. */
export function fleetAfter(commands: readonly RecordedCommand[]): Fleet {
  const fleet = emptyFleet();
  for (const command of commands) if (command.stream === streams.fleet) applyCommand(fleet, command);
  return fleet;
}

/** Appends commands of one stream together. @returns their last revision and position */
export async function append(
  store: EventStore,
  first: Planned,
  ...more: readonly Planned[]
): Promise<{ readonly revision: number; readonly position: number | undefined }> {
  const outcome = await store.append(first.stream, 'any', [first, ...more].flatMap(proposedEvents));
  if (outcome.kind !== 'appended') throw new Error(`not appended: ${JSON.stringify(outcome)}`);
  return outcome;
}

export type Dump = Readonly<Record<string, readonly StoredDocument[]>>;

/** Every document of every read model, by id. */
export async function dump(
  readStore: ReadStore,
  version = groupVersion,
  models: readonly ReadModel[] = readModels,
): Promise<Dump> {
  const all: Record<string, readonly StoredDocument[]> = {};
  for (const { name, index } of models) {
    const collection = await readStore.collection({ name, index, version });
    const items = await collection.list(undefined, 100_000);
    all[name] = [...items].sort((a, b) => (a.id < b.id ? -1 : 1));
  }
  return all;
}

export interface ReadSide {
  readonly stores: EmbeddedStores;
  readonly clock: ManualClock;
  append(log: readonly Planned[]): Promise<void>;
  /** Starts projections; `close` closes them too. */
  start(options?: Partial<ProjectionsOptions>): Promise<Projections>;
  /** Starts projections and waits until they have caught up. */
  started(options?: Partial<ProjectionsOptions>): Promise<Projections>;
  close(): Promise<void>;
}

/** Resolves once the projections have caught up; the test's own timeout bounds it. */
export function caughtUp(projections: Projections): Promise<void> {
  return new Promise((resolve) => {
    const stop = projections.onStatusChange((status) => {
      if (status.caughtUp) done();
    });
    const done = (): void => {
      stop();
      resolve();
    };
    if (projections.status().caughtUp) done();
  });
}

/** @param inMemory where nothing is asked of a store but its answers: no retention, nothing durable */
export async function openReadSide(
  logger: Logger = silentLogger,
  { inMemory = false }: { readonly inMemory?: boolean } = {},
): Promise<ReadSide> {
  const clock = createManualClock();
  const stores = inMemory ? storesInMemory() : await openTemporaryStores(clock, logger);
  const running: Projections[] = [];
  const start: ReadSide['start'] = async (options = {}) => {
    const { eventStore, readStore } = stores;
    const projections = await startProjections({
      eventStore,
      readStore,
      logger,
      deletionTime: (newest) => (newest === undefined ? undefined : Math.min(newest, clock.now())),
      ...options,
    });
    running.push(projections);
    return projections;
  };
  return {
    stores,
    clock,
    async append(log) {
      for (const one of log) await append(stores.eventStore, one);
    },
    start,
    async started(options) {
      const projections = await start(options);
      await caughtUp(projections);
      return projections;
    },
    async close() {
      await Promise.all(running.map((projections) => projections.close()));
      await stores.close();
    },
  };
}
