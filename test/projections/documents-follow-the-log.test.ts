/** The documents depend on the log alone: they equal the fleet's fold and separately computed facts, in any batching. */
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AgentEvent } from '../../src/domain/agents/facts.js';
import { applyCommand } from '../../src/domain/fleet/apply.js';
import { emptyFleet } from '../../src/domain/fleet/fleet.js';
import type { RecordedCommand } from '../../src/kernel/event.js';
import { lastEvent, streams } from '../../src/kernel/event.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { applyCommands } from '../../src/projections/engine/apply.js';
import { openParking } from '../../src/projections/engine/parked.js';
import type { Deployment } from '../../src/projections/port.js';
import type { NodeAgentFacts } from '../../src/domain/agents/node-agent-facts.js';
import { openCollections, readModels } from '../../src/projections/read-models.js';
import { asRecorded, dump, fleetAfter, openReadSide, randomLog } from '../support/read-side.js';
import type { Dump, Planned, ReadSide } from '../support/read-side.js';
import { createDice } from '../support/hostile.js';

let side: ReadSide;
beforeAll(async () => {
  side = await openReadSide();
});
afterAll(() => side.close());

let versions = 100;
/** An empty version of the group to project into. */
async function emptyVersion(): Promise<{
  apply(commands: readonly RecordedCommand[]): Promise<void>;
  dump(): Promise<Dump>;
}> {
  versions += 1;
  const version = versions;
  const { readStore } = side.stores;
  const target = {
    models: readModels,
    collections: await openCollections(readStore, readModels, version),
    parking: await openParking(readStore, version),
    logger: silentLogger,
    rebuilding: () => true,
  };
  return { apply: (commands) => applyCommands(target, commands), dump: () => dump(readStore, version) };
}

async function projected(commands: readonly RecordedCommand[]): Promise<Dump> {
  const target = await emptyVersion();
  for (const command of commands) await target.apply([command]);
  return target.dump();
}

type FactOf<T extends AgentEvent['type']> = Extract<AgentEvent, { type: T }> & { readonly at: string };

/** The facts that say what a node's agent did, of those in the order of the log. */
interface Standing {
  readonly opened: FactOf<'AgentSessionOpened'> | undefined;
  readonly applied: FactOf<'AgentConfigApplied'> | undefined;
  readonly rejected: FactOf<'AgentConfigRejected'> | undefined;
  /** The applies and the rejects that count. */
  readonly applies: readonly FactOf<'AgentConfigApplied'>[];
  readonly rejects: readonly FactOf<'AgentConfigRejected'>[];
}

type Facts = readonly (AgentEvent & { readonly at: string })[];
const ofType = <T extends AgentEvent['type']>(facts: Facts, type: T): readonly FactOf<T>[] =>
  facts.filter((fact): fact is FactOf<T> => fact.type === type);
const generationOf = (fact: FactOf<'AgentConfigApplied' | 'AgentConfigRejected'>): number => fact.data.generation;
const byGeneration = <F extends FactOf<'AgentConfigApplied' | 'AgentConfigRejected'>>(facts: readonly F[]): F[] =>
  [...facts].sort((a, b) => generationOf(a) - generationOf(b));

/** Of facts that may be late, the newest session by its time, and the highest generations. */
function highestOnes(all: Facts): Standing {
  const isBefore = (a: Facts[number], b: Facts[number]): boolean => all.indexOf(a) < all.indexOf(b);
  // What was reported before a session that the log has already is of another session. Here, no fact says of which.
  const facts = all.filter(
    (fact) => !ofType(all, 'AgentSessionOpened').some((opened) => isBefore(opened, fact) && fact.at < opened.at),
  );
  const everyApply = ofType(facts, 'AgentConfigApplied');
  const highestBefore = (fact: Facts[number]): number =>
    Math.max(0, ...everyApply.filter((apply) => isBefore(apply, fact)).map(generationOf));
  const rejects = ofType(facts, 'AgentConfigRejected').filter((fact) => generationOf(fact) >= highestBefore(fact));
  const standing = rejects.filter(
    (fact) => !everyApply.some((apply) => isBefore(fact, apply) && generationOf(apply) >= generationOf(fact)),
  );
  const byTime = [...ofType(all, 'AgentSessionOpened')].sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0));
  return {
    opened: byTime.at(-1),
    applied: byGeneration(everyApply).at(-1),
    rejected: byGeneration(standing).at(-1),
    applies: everyApply.filter((fact) => generationOf(fact) >= highestBefore(fact)),
    rejects,
  };
}

/** What a node's agent did since the node was last created or brought back, computed without a fold. */
function factsOf(log: readonly Planned[], nodeId: string): NodeAgentFacts {
  const creation = log.findLastIndex(({ events }) =>
    events.some(
      ({ type, data }) =>
        ['NodeCreated', 'NodeRestored'].includes(type) && (data as { node_id: string }).node_id === nodeId,
    ),
  );
  const facts: Facts = log
    .slice(creation)
    .filter(({ stream }) => stream.startsWith('svc-agents-'))
    .map(({ events, at }) => ({ ...(events[0] as AgentEvent), at }))
    .filter(({ data }) => data.node_id === nodeId);
  const { opened, applied, rejected, applies, rejects } = highestOnes(facts);
  const lastReject = rejects.at(-1);
  const appliedSince =
    lastReject !== undefined && applies.some((fact) => facts.indexOf(fact) > facts.indexOf(lastReject));
  const conflict = ofType(facts, 'AgentVersionConflict').at(-1);
  const open = conflict !== undefined && !applies.some((fact) => facts.indexOf(fact) > facts.indexOf(conflict));
  return {
    connected_once: opened !== undefined,
    agent_version: opened?.data.agent_version ?? null,
    detected_addresses: opened?.data.detected_addresses ?? [],
    reported_multiplex: opened?.data.multiplex ?? null,
    reported_multiplex_port: opened?.data.multiplex_port ?? null,
    ...(opened === undefined ? {} : { session: sessionOf(opened) }),
    applied:
      applied === undefined
        ? null
        : {
            generation: applied.data.generation,
            checksum: applied.data.checksum,
            at: applied.at,
            duration_ms: applied.data.duration_ms,
          },
    rejected:
      rejected === undefined
        ? null
        : {
            generation: rejected.data.generation,
            checksum: rejected.data.checksum,
            at: rejected.at,
            errors: rejected.data.errors,
            ...(appliedSince && { applied_since: true as const }),
          },
    duplicate_until: ofType(facts, 'AgentDuplicateSeen').at(-1)?.data.until ?? null,
    version_conflict_at: open ? conflict.at : null,
    ...(open ? { version_conflict: conflict.data.reported } : {}),
    ...(facts[0] === undefined ? {} : { written_since: facts[0].at }),
  };
}

function sessionOf({ data, at }: FactOf<'AgentSessionOpened'>): NonNullable<NodeAgentFacts['session']> {
  const { session_id: id, instance_id, public_ipv4, public_ipv6 } = data;
  return { id, instance_id, public_ipv4, public_ipv6, at };
}

describe('the documents after a log', () => {
  it('hold what agents did since each node was created', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(), async (seed) => {
        const log = randomLog(seed);
        const commands = asRecorded(log);
        const fleet = fleetAfter(commands);
        const documents = await projected(commands);
        expect(documents['agents']!.map(({ id }) => id)).toEqual([...fleet.tables.node.ids()].sort());
        for (const { id, fields } of documents['agents']!) expect(fields['agent']).toEqual(factsOf(log, id));
      }),
      { numRuns: 8 },
    );
  });

  it('hold each deployment with the generations that it gave', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(), async (seed) => {
        const commands = asRecorded(randomLog(seed));
        const deployments = new Map((await projected(commands))['deployments']!.map(({ id, fields }) => [id, fields]));
        const fleet = emptyFleet();
        for (const command of commands) {
          if (command.stream === streams.fleet) applyCommand(fleet, command);
          const [event] = command.events;
          // The undo of a first deploy is no deployment.
          const { definition } = event.data as { readonly definition?: { readonly to: unknown } };
          if (event.type !== 'ChainDeployed' || definition?.to === null) continue;
          const { id } = event.metadata.command;
          const deployment = deployments.get(id)!['deployment'] as unknown as Deployment;
          expect(deployment).toMatchObject({ id, at: event.metadata.occurred_at, chain_id: event.data['chain_id'] });
          for (const { node_id, generation } of deployment.nodes) {
            expect(generation).toBe(fleet.generationOf(node_id) ?? generation);
          }
          deployments.delete(id);
        }
        expect([...deployments.keys()]).toEqual([]);
      }),
      { numRuns: 12 },
    );
  });

  it('are the same for every batching of the log, repeats included', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(), async (seed) => {
        const commands = asRecorded(randomLog(seed));
        const dice = createDice(seed);
        const target = await emptyVersion();
        for (let next = 0; next < commands.length;) {
          const from = Math.max(0, next - dice.below(6));
          next = Math.min(commands.length, next + 1 + dice.below(12));
          await target.apply(commands.slice(from, next));
        }
        expect(await target.dump()).toEqual(await projected(commands));
      }),
      { numRuns: 10 },
    );
  });

  it('are the same when three projectors write them at once, each at its own pace', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(), async (seed) => {
        const commands = asRecorded(randomLog(seed));
        const dice = createDice(seed);
        const target = await emptyVersion();
        const work = async (): Promise<void> => {
          for (let next = 0; next < commands.length;) {
            const from = next;
            next = Math.min(commands.length, next + 1 + dice.below(12));
            await target.apply(commands.slice(from, next));
          }
        };
        await Promise.all([work(), work(), work()]);
        expect(await target.dump()).toEqual(await projected(commands));
      }),
      { numRuns: 10 },
    );
  });

  it('are the same after a restart at any command', async () => {
    const commands = asRecorded(randomLog(7, 30));
    const whole = await projected(commands);
    for (let cut = 0; cut <= commands.length; cut += 1) {
      const target = await emptyVersion();
      await target.apply(commands.slice(0, cut));
      await target.apply(commands.slice(cut));
      expect(await target.dump()).toEqual(whole);
    }
  });

  it('have a tombstone for an entity created and deleted in one batch, which no slower instance restores', async () => {
    const commands = asRecorded(randomLog(1));
    const created = commands.findIndex(({ events }) => events[0].type === 'NodeCreated');
    const event = lastEvent(commands[created]!);
    const nodeId = (event.data as { node_id: string }).node_id;
    const deleted: RecordedCommand = {
      stream: 'svc-fleet',
      events: [
        {
          ...event,
          type: 'NodeDeleted',
          data: { ...event.data, override: null, policies: [] },
          position: event.position + 1,
          revision: event.revision + 1,
          metadata: { ...event.metadata, command: { id: 'd', index: 0, count: 1 } },
        },
      ],
    };
    const target = await emptyVersion();
    await target.apply([commands[created]!, deleted]);
    await target.apply([commands[created]!]);
    expect((await target.dump())['agents']!.map(({ id }) => id)).not.toContain(nodeId);
  });
});
