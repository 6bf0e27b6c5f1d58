/** A large command is decided and folded in pieces: what may happen between two of them, and what nobody may see then. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { fleetAggregate } from '../../src/commands/aggregate.js';
import { tuning } from '../../src/commands/tuning.js';
import { yieldToEventLoop } from '../../src/kernel/background.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { ok } from '../../src/kernel/result.js';
import { openCommittedFleet, type CommittedFleet } from '../../src/projections/fleet/committed-fleet.js';
import { createCommandFixture, fleetGatewayOn, refusalOf, type CommandFixture } from '../support/command-fixture.js';
import { createNode, nodeId } from '../support/fleet.js';
import { turnsWhile } from '../support/short-sleeps.js';
import { storesInMemory } from '../support/stores-in-memory.js';

let fixture: CommandFixture;
let committed: CommittedFleet;
beforeEach(async () => {
  decisions = { begun: 0, letGo: false };
  fixture = await createCommandFixture(storesInMemory());
  committed = await openCommittedFleet({
    eventStore: fixture.store,
    logger: silentLogger,
    logChain: fixture.options.logChain,
  });
  await committed.catchUp();
});
afterEach(async () => {
  vi.useRealTimers();
  decisions.letGo = true;
  committed.close();
  await fixture.close();
});

let decisions: { begun: number; letGo: boolean };
/** Its decisions last until they are let go. */
const lasting: typeof fleetAggregate = {
  ...fleetAggregate,
  *decide(fleet, command) {
    decisions.begun += 1;
    while (!decisions.letGo) yield;
    return yield* fleetAggregate.decide(fleet, command);
  },
};
const begun = (count: number): Promise<void> => turnsWhile(() => decisions.begun < count);

const created = async (): Promise<readonly unknown[]> => (await fixture.log()).map(({ data }) => data['node_id']);

test('a decision begins anew when events of another instance arrive between two pieces', async () => {
  const gateway = fleetGatewayOn(committed, fixture.options, lasting);
  const outcome = gateway.run(createNode('a'));
  await begun(1);
  await (await fixture.other()).run(createNode('b'));
  await committed.catchUp();
  await begun(2);
  decisions.letGo = true;
  expect(await outcome).toMatchObject({ kind: 'done' });
  expect(decisions.begun).toBe(2);
  expect(await created()).toEqual([nodeId('b'), nodeId('a')]);
  await gateway.close();
});

test('of a caller whose time ends before the decision nothing is written, and those behind him go on', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const gateway = fleetGatewayOn(committed, fixture.options, lasting);
  const late = refusalOf(gateway.run(createNode('a')));
  await begun(1);
  vi.advanceTimersByTime(tuning.commandAnswerMs);
  expect((await late).message).toContain('nothing was written');
  const next = gateway.run(createNode('b'));
  decisions.letGo = true;
  expect(await next).toMatchObject({ kind: 'done' });
  expect(await created()).toEqual([nodeId('b')]);
  await gateway.close();
});

test('nobody sees a part of a command, which the gateway and the subscription bring at once and which counts once', async () => {
  const edits = Array.from({ length: 300 }, (_, index) => ({
    type: 'NodeUpdated',
    data: { node_id: nodeId('a'), changes: { description: { from: null, to: `${index}` } } },
  }));
  const gateway = fleetGatewayOn(committed, fixture.options, {
    ...fleetAggregate,
    *decide(fleet, command) {
      return command.type === 'RefreshNodeConfig' ? ok(edits) : yield* fleetAggregate.decide(fleet, command);
    },
  });
  await gateway.run(createNode('a'));
  const description = (): unknown => committed.fleet().tables.node.get(nodeId('a'))?.description;
  const seen = new Set([description()]);
  let answered = false;
  const outcome = gateway.run({ type: 'RefreshNodeConfig', id: nodeId('a') }).finally(() => (answered = true));
  const followed: Promise<void>[] = [];
  while (!answered) {
    followed.push(committed.catchUp());
    await yieldToEventLoop();
    seen.add(description());
  }
  await Promise.all([outcome, ...followed]);
  expect([...seen, description()]).toEqual([null, '299', '299']);
  expect(committed.fleet().revision.value).toBe(edits.length);
  await gateway.close();
});
