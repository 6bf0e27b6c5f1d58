/** Long work on the committed fleet: it sees one fleet, and holds nothing up, while others write. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { inPiecesAlone } from '../../src/commands/in-pieces.js';
import { yieldToEventLoop } from '../../src/kernel/background.js';
import { createCommandFixture, type CommandFixture, type FleetGateway } from '../support/command-fixture.js';
import { createNode } from '../support/fleet.js';
import { turnsWhile } from '../support/short-sleeps.js';
import { storesInMemory } from '../support/stores-in-memory.js';

let fixture: CommandFixture;
let gateway: FleetGateway;
beforeEach(async () => {
  fixture = await createCommandFixture(storesInMemory());
  gateway = await fixture.gateway();
});
afterEach(() => fixture.close());

const pieces = 50;

test('is done in pieces of one fleet while this instance goes on writing, whose commands are then carried out', async () => {
  let turns = 0;
  let busy = true;
  const turning = (async () => {
    for (; busy; turns += 1) await yieldToEventLoop();
  })();
  let written = 0;
  const writing = (async () => {
    for (; busy; written += 1) await gateway.run(createNode(`node-${written}`));
  })();
  try {
    const { seen, fleets } = await inPiecesAlone({ fleet: () => gateway.fleet, gateway }, function* (fleet) {
      const made = { seen: new Set<number>(), fleets: new Set<number>() };
      for (let piece = 0; piece < pieces; piece += 1) {
        if (piece > 0) yield;
        made.seen.add(turns);
        made.fleets.add(fleet.revision.value);
      }
      return made;
    });
    const before = written;
    await turnsWhile(() => written === before);
    expect(before).toBeGreaterThan(0);
    expect(fleets.size).toBe(1);
    // Each piece has a turn of the event loop to itself.
    expect(seen.size).toBe(pieces);
  } finally {
    busy = false;
    await Promise.all([turning, writing]);
  }
  expect((await fixture.log()).length).toBe(written);
});

test('that fails lets the commands go on', async () => {
  const failing = gateway.alone(async () => {
    await yieldToEventLoop();
    throw new Error('it fails');
  });
  const written = gateway.run(createNode('one'));
  await expect(failing).rejects.toThrow('it fails');
  expect(await written).toMatchObject({ kind: 'done' });
});
