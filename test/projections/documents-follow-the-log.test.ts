/** The documents depend on the log alone: they equal the fleet's fold, in any batching. */
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { applyCommand } from '../../src/domain/fleet/apply.js';
import { emptyFleet } from '../../src/domain/fleet/fleet.js';
import type { Deployment } from '../../src/domain/fleet-file/applied.js';
import { streams, type RecordedCommand } from '../../src/kernel/event.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { applyCommands } from '../../src/projections/engine/apply.js';
import { openParking } from '../../src/projections/engine/parked.js';
import { openCollections, readModels } from '../../src/projections/read-models.js';
import { asRecorded, dump, openReadSide, randomLog, type Dump, type ReadSide } from '../support/read-side.js';
import { createDice } from '../support/hostile.js';

let side: ReadSide;
beforeAll(async () => {
  side = await openReadSide(undefined, { inMemory: true });
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

describe('the documents after a log', () => {
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
});
