/** Random histories of two gateways on one log, behind stores that lose answers, refuse and delay. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { CommandOutcome } from '../../src/commands/port.js';
import { applyCommand } from '../../src/domain/fleet/apply.js';
import type { FleetCommand } from '../../src/domain/fleet/resources.js';
import { emptyFleet, type Fleet } from '../../src/domain/fleet/fleet.js';
import { nameKey } from '../../src/domain/resource/meta.js';
import { readCommand } from '../../src/domain/log/upcast.js';
import type { Clock } from '../../src/kernel/clock.js';
import { ServiceError } from '../../src/kernel/errors.js';
import type { IdempotencyMark, RecordedCommand } from '../../src/kernel/event.js';
import { createCommandAssembler } from '../../src/storage/follow.js';
import { collidingPairs, worldOf } from '../support/collision-oracle.js';
import { bytesOf, createCommandFixture, type CommandFixture, type FleetGateway } from '../support/command-fixture.js';
import { createNode } from '../support/fleet.js';
import { commandOf, histories, type Move } from '../support/fleet-histories.js';
import { createDice, hostile, hostileEventStore } from '../support/hostile.js';
import { storesInMemory } from '../support/stores-in-memory.js';
import { tuning } from '../../src/commands/tuning.js';

/** A command that was executed, and how it ended. */
interface Executed {
  readonly requestId: string;
  readonly idempotency: IdempotencyMark | undefined;
  readonly answer: CommandOutcome<undefined> | ServiceError;
}

/** Fails more often than a real store, but not so often that every command gives up. */
const bad = { ...hostile, unavailable: 0.05, unknownNotWritten: 0.15, writtenLate: 0.15, lateMs: 100 };

/** Runs so fast that waits end within some 30 ms: appends are given up before their outcome is known. */
const hasty: Clock = {
  now: () => Date.UTC(2025, 0, 1),
  monotonic: () => (performance.now() / 30) * tuning.outcomeWaitMs,
};

test('the log holds every acknowledged command once and whole, and no refused one', async () => {
  const counts = { done: 0, repeated: 0, refused: 0, unsure: 0 };
  await fc.assert(
    fc.asyncProperty(histories(40), histories(40), fc.nat(1_000_000), async (left, right, seed) => {
      const fixture = await createCommandFixture(storesInMemory());
      try {
        const stores = [1, 2].map((salt) => hostileEventStore(fixture.stores.eventStore, seed + salt, bad));
        const gateways = await Promise.all(stores.map((eventStore) => fixture.gateway({ eventStore, clock: hasty })));
        const executed = (
          await Promise.all(
            [left, right].map((moves, index) => executeAll(gateways[index]!, moves, `g${index}`, seed + index)),
          )
        ).flat();
        for (const store of stores) await store.settled();

        const commands = createCommandAssembler().add(await fixture.log());
        checkLog(commands);
        checkAnswers(commands, executed, counts);
        await checkFolds(fixture, gateways);
      } finally {
        await fixture.close();
      }
    }),
    { numRuns: 20 },
  );
  // The property proves something only if all of this happened.
  for (const [kind, count] of Object.entries(counts)) expect(count, kind).toBeGreaterThan(0);
});

/** Executes the moves in bursts, now and then a creation under an idempotency key that both instances use. */
async function executeAll(
  gateway: FleetGateway,
  moves: readonly Move[],
  prefix: string,
  seed: number,
): Promise<readonly Executed[]> {
  const dice = createDice(seed);
  const executed: Promise<Executed>[] = [];
  for (const [index, move] of moves.entries()) {
    const requestId = `${prefix}-${index}`;
    const step = index * 2 + Number(prefix.slice(1));
    const shared = dice.chance(0.25) ? dice.below(4) : undefined;
    const command: FleetCommand | undefined =
      shared === undefined ? commandOf(gateway.fleet, move, step) : createNode(requestId, { name: `shared ${shared}` });
    if (command === undefined) continue;
    const body_hash = dice.chance(0.9) ? 'body' : 'other body';
    const idempotency = shared === undefined ? undefined : { key_hash: `key ${shared}`, body_hash };
    executed.push(
      gateway.run(command, { requestId, idempotency }).then(
        (answer) => ({ requestId, idempotency, answer }),
        (error: unknown) => {
          if (error instanceof ServiceError) return { requestId, idempotency, answer: error };
          throw error;
        },
      ),
    );
    if (dice.chance(0.4)) await executed.at(-1);
  }
  return Promise.all(executed);
}

/** At every revision names are unique and listeners do not collide. */
function checkLog(commands: readonly RecordedCommand[]): void {
  const fleet = emptyFleet();
  for (const command of commands) {
    applyCommand(fleet, readCommand(command));
    for (const table of [fleet.tables.node, fleet.tables.l4_upstream, fleet.tables.l4_chain]) {
      const names = [...table.values()].map(({ name }) => nameKey(name));
      expect(new Set(names).size).toBe(names.length);
    }
    expect(collidingIn(fleet)).toEqual([]);
  }
}

function collidingIn(fleet: Fleet): readonly string[] {
  return [...collidingPairs(worldOf(fleet))];
}

function checkAnswers(
  commands: readonly RecordedCommand[],
  executed: readonly Executed[],
  counts: { [kind: string]: number },
): void {
  const count = (kind: string): void => void (counts[kind] = (counts[kind] ?? 0) + 1);
  for (const { requestId, idempotency, answer } of executed) {
    const written = commands.filter(({ events }) => events[0].metadata.request_id === requestId);
    if (answer instanceof ServiceError) {
      const unsure = answer.code === 'unavailable' && answer.message.includes('may have been');
      count(unsure ? 'unsure' : 'refused');
      expect(answer.code).not.toBe('internal');
      expect(written.length, answer.message).toBeLessThanOrEqual(unsure ? 1 : 0);
    } else if (answer.kind === 'repeated') {
      count('repeated');
      expect(written).toEqual([]);
      const first = commands.find(({ events }) => events[0].metadata.command.id === answer.commandId);
      expect(first?.events[0].metadata.idempotency).toEqual(idempotency);
      expect(first?.events[0].data['node_id']).toBe(answer.resourceId);
    } else if (answer.events.length === 0) {
      expect(written).toEqual([]);
    } else {
      count('done');
      expect(written.length).toBe(1);
      const place = ({ id, revision, type, data }: RecordedCommand['events'][number]) => ({ id, revision, type, data });
      expect(written[0]?.events.map(place)).toEqual(JSON.parse(JSON.stringify(answer.events.map(place))));
    }
  }
  const keys = commands.flatMap(({ events }) => events[0].metadata.idempotency?.key_hash ?? []);
  expect(new Set(keys).size).toBe(keys.length);
}

/** A command that changes nothing makes each instance read the newest log; then all folds are equal. */
async function checkFolds(fixture: CommandFixture, gateways: readonly FleetGateway[]): Promise<void> {
  const fresh = bytesOf(await fixture.fold());
  for (const gateway of gateways) {
    await gateway.run({ type: 'RaiseCompilerVersion', version: 0 });
    expect(bytesOf(gateway.fleet)).toBe(fresh);
  }
}
