/**
 * The status writer with time passed in: instances that are killed, frozen past their lease or behind the log at random
 * moments, on a log whose answers get lost. Each change that stood is told once, in order, within its budget.
 * `docs/contract/notices.md#status-changes-are-facts`.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { impliedStatus, isBad, isTold, keyText, type StatusKey } from '../../src/domain/status/status.js';
import { limits } from '../../src/kernel/limits.js';
import { createDice } from '../support/hostile.js';
import { createWorld, graceMs, type Instance, type Mishap, type RecordedFact, type World } from './status-world.js';

const keys: readonly StatusKey[] = [
  ...Array.from({ length: 4 }, (_, index) => ({ type: 'node', id: `node-${index}` }) as const),
  ...Array.from({ length: 4 }, (_, index) => ({ type: 'l4_chain', id: `chain-${index}` }) as const),
  ...Array.from({ length: 2 }, (_, index) => ({ type: 'l4_upstream', id: `upstream-${index}` }) as const),
];
const wordsOf: { readonly [type: string]: readonly string[] } = {
  node: ['online', 'offline'],
  l4_chain: ['ok', 'degraded', 'down', 'unknown'],
  l4_upstream: ['healthy', 'unhealthy', 'unknown'],
};
const mishaps: readonly Mishap[] = ['lost answer', 'not written', 'conflict'];
const turnMs = 250;
const [front, back] = [
  { type: 'l4_chain', id: 'front' },
  { type: 'l4_chain', id: 'back' },
] as const;

const factsOf = (facts: readonly RecordedFact[], key: StatusKey): readonly RecordedFact[] =>
  facts.filter(({ fact }) => keyText(fact.resource) === keyText(key));

/** Each fact follows from the one before it of its resource. */
function expectOrderly(facts: readonly RecordedFact[], key: StatusKey): void {
  const { changes, windowMs, gapMs } = limits.status.perResource;
  let [was, incident] = [impliedStatus(key.type), null as string | null];
  const told: number[] = [];
  for (const { at, fact } of facts) {
    expect(fact.was).toBe(was);
    expect(fact.status).not.toBe(was);
    expect(isTold(key.type, fact.status)).toBe(true);
    if (!isBad(key.type, fact.status)) expect(fact.incident?.id ?? null).toBe(incident);
    else if (incident === null) expect(fact.incident).not.toBeNull();
    else expect(fact.incident?.id).toBe(incident);
    incident = isBad(key.type, fact.status) ? (fact.incident?.id ?? null) : null;
    was = fact.status;
    if (fact.again === true) continue;
    expect(at - (told.at(-1) ?? 0)).toBeGreaterThanOrEqual(gapMs);
    expect(at - (told.at(-changes) ?? 0)).toBeGreaterThanOrEqual(windowMs);
    told.push(at);
  }
}

async function pass({ clock }: World, writer: Instance, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += turnMs) {
    clock.advance(turnMs);
    await writer.turn();
  }
}

describe('two instances that write statuses', () => {
  test('kills, freezes, a log that lags and lost answers: every change that stands is told once', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(), async (seed) => {
        const dice = createDice(seed);
        const world = await createWorld();
        world.onAppend(() => (dice.chance(0.3) ? (mishaps[dice.below(mishaps.length)] ?? 'none') : 'none'));
        let instances: Instance[] = [await world.start(), await world.start()];
        const frozen = new Map<Instance, number>();
        const play = async (turns: number, isQuiet: boolean): Promise<void> => {
          for (let turn = 0; turn < turns; turn += 1) {
            world.clock.advance(turnMs);
            if (!isQuiet && dice.chance(0.2)) {
              const key = keys[dice.below(keys.length)] ?? keys[0]!;
              const words = wordsOf[key.type] ?? [];
              world.set(key, words[dice.below(words.length)] ?? '');
            }
            for (const [index, instance] of instances.entries()) {
              const until = frozen.get(instance) ?? 0;
              if (until > turn && !isQuiet) continue;
              const mishap = isQuiet ? 99 : dice.below(100);
              if (mishap < 2) instances = instances.with(index, await world.start());
              else if (mishap < 4) frozen.set(instance, turn + dice.below(80));
              else {
                instance.lagging = !isQuiet && dice.chance(0.2);
                if (!instance.lagging) await instance.follow();
                await instance.turn();
              }
            }
          }
        };
        await play(400, false);
        world.onAppend(() => 'none');
        // As long as a budget may hold a change back, and a lease lasts.
        await play((limits.status.perResource.windowMs + 30_000) / turnMs, true);

        const facts = await world.facts();
        for (const key of keys) {
          const own = factsOf(facts, key);
          expectOrderly(own, key);
          const status = world.statuses().find((one) => keyText(one.key) === keyText(key))?.status;
          if (status !== undefined && isTold(key.type, status)) {
            expect(own.at(-1)?.fact.status ?? impliedStatus(key.type)).toBe(status);
          }
        }
      }),
      { numRuns: 40 },
    );
  });

  test('a change that goes back within three seconds is not told, one that stands is', async () => {
    const world = await createWorld();
    const writer = await world.start();
    world.set(front, 'ok');
    await pass(world, writer, 40_000);

    world.set(front, 'down');
    await pass(world, writer, 2_500);
    world.set(front, 'ok');
    await pass(world, writer, 10_000);
    expect(await world.facts()).toEqual([]);

    world.set(front, 'down');
    const began = world.clock.now();
    await pass(world, writer, 4_000);
    const [told, ...rest] = await world.facts();
    expect(rest).toEqual([]);
    expect(told?.fact).toMatchObject({ was: 'ok', status: 'down', since: new Date(began).toISOString() });
    expect((told?.at ?? 0) - began).toBeGreaterThanOrEqual(limits.status.standsMs);
    expect((told?.at ?? 0) - began).toBeLessThanOrEqual(limits.status.standsMs + turnMs);
  });
});

test('what follows a state that is not told is told, also if nobody noticed when that state was over', async () => {
  const world = await createWorld();
  const writer = await world.start();
  const chain: StatusKey = { type: 'l4_chain', id: 'chain' };
  world.set(chain, 'down');
  await pass(world, writer, 30_000);
  world.set(chain, 'unknown');
  await pass(world, writer, 1_000);
  world.set(chain, 'ok', false);
  await pass(world, writer, 60_000);
  expect((await world.facts()).map(({ fact }) => fact.status)).toEqual(['down', 'ok']);
});

test('what a frozen writer tells after another took over is followed by what is so now', async () => {
  const world = await createWorld();
  const [frozen, other] = [await world.start(), await world.start()];
  world.set(front, 'ok');
  await pass(world, frozen, 40_000);
  world.set(front, 'down');
  let release = (): void => undefined;
  const waits = world.holdAppend(new Promise((resolve) => (release = resolve)));
  world.clock.advance(limits.status.standsMs);
  const turn = frozen.turn();
  await waits;

  world.clock.advance(limits.status.leaseMs + 1);
  world.set(front, 'ok');
  await pass(world, other, 40_000);
  release();
  await turn;
  await other.follow();
  await pass(world, other, 20_000);
  expect((await world.facts()).map(({ fact }) => fact.status)).toEqual(['down', 'ok']);
});

test.each([
  ['refuses facts', 'refused', 'no permission'],
  ['is out of reach', 'unavailable', 'no connection'],
] as const)('a log that %s is said, and told what stands once it takes them', async (_, mishap, cause) => {
  const world = await createWorld();
  const writer = await world.start();
  world.set(front, 'ok');
  await pass(world, writer, 40_000);
  world.onAppend(() => mishap);
  world.set(front, 'down');
  world.clock.advance(4_000);
  await expect(writer.turn()).rejects.toThrow(`svc-status takes no facts: ${cause}`);
  world.onAppend(() => 'none');
  await writer.turn();
  expect((await world.facts()).map(({ fact }) => fact.status)).toEqual(['down']);
});

test('while nothing may be written nothing is, and then what stands is told', async () => {
  const world = await createWorld();
  const writer = await world.start();
  world.set(front, 'ok');
  await pass(world, writer, 40_000);
  writer.readOnly = 'the read store is away';
  world.set(front, 'down');
  await pass(world, writer, 10_000);
  expect(world.appended).toEqual([]);
  writer.readOnly = undefined;
  await pass(world, writer, 4_000);
  expect((await world.facts()).map(({ fact }) => fact.status)).toEqual(['down']);
});

describe('a log that has told of no status yet', () => {
  test('what is older than it is told to nobody; what is new, or happens later, is', async () => {
    const world = await createWorld();
    const [node, fresh] = ['node', 'new'].map((id) => ({ type: 'node', id }) as const);
    world.set(front, 'down');
    for (const key of [node!, fresh!]) world.set(key, 'online');
    const writer = await world.start();
    await pass(world, writer, graceMs);
    world.set(back, 'down');
    await pass(world, writer, 10_000);
    world.set(front, 'ok');
    await pass(world, writer, 20_000);
    const facts = (await world.facts()).map(({ fact: { resource, status, again } }) => [resource.id, status, again]);
    expect(facts).toEqual([
      ['node', 'online', true],
      ['new', 'online', undefined],
      ['front', 'down', true],
      ['back', 'down', undefined],
      ['front', 'ok', undefined],
    ]);
  });

  test('what is older and goes wrong after the grace is told', async () => {
    const world = await createWorld();
    world.set(front, 'ok');
    const writer = await world.start();
    await pass(world, writer, graceMs);
    world.set(front, 'down');
    await pass(world, writer, 4_000);
    expect((await world.facts()).map(({ fact }) => [fact.status, fact.again])).toEqual([['down', undefined]]);
  });

  test('whoever takes over once it has told of one tells of what is older', async () => {
    const world = await createWorld();
    for (const key of [front, back]) world.set(key, 'ok');
    const [first, second] = [await world.start(), await world.start()];
    world.set(back, 'down');
    await pass(world, first, 4_000);
    await first.close();
    world.set(front, 'down');
    await second.follow();
    await pass(world, second, 4_000);
    const facts = (await world.facts()).map(({ fact: { resource, again } }) => [resource.id, again]);
    expect(facts).toEqual([
      ['back', true],
      ['front', undefined],
    ]);
  });
});

test('a writer that closes hands over at once', async () => {
  const world = await createWorld();
  const [first, second] = [await world.start(), await world.start()];
  world.set(front, 'ok');
  await pass(world, first, 40_000);
  await first.close();
  await second.turn();
  world.set(front, 'down');
  await pass(world, second, 4_000);
  expect((await world.facts()).map(({ fact }) => fact.status)).toEqual(['down']);
});

test('a machine that slept gives agents the time to come back', async () => {
  const world = await createWorld();
  const writer = await world.start();
  const node = { type: 'node', id: 'new' } as const;
  world.set(node, 'online');
  await pass(world, writer, 40_000);
  world.set(node, 'offline');
  await pass(world, writer, 10_000);
  world.clock.jump(graceMs);
  await pass(world, writer, graceMs - turnMs);
  expect((await world.facts()).map(({ fact }) => fact.status)).toEqual(['online']);
  await pass(world, writer, 2 * turnMs);
  expect((await world.facts()).map(({ fact }) => fact.status)).toEqual(['online', 'offline']);
});

test('a fact is written again before it expires, with its since and its incident, also of what is not seen', async () => {
  const world = await createWorld();
  const writer = await world.start();
  world.set(front, 'down');
  await pass(world, writer, 4_000);
  const [first] = await world.facts();
  // Nothing but the look for such facts finds it.
  world.unset(front);
  world.clock.jump(limits.status.repeatAfterMs - 3_600_000);
  await pass(world, writer, 5_000);
  expect(await world.facts()).toHaveLength(1);
  for (let passed = 0; passed <= 2 * 3_600_000; passed += 9_000) await pass(world, writer, turnMs + 8_000);
  const [, again, ...rest] = await world.facts();
  expect(rest).toEqual([]);
  const { since, incident } = first!.fact;
  expect(again?.fact).toMatchObject({ was: 'down', status: 'down', since, incident, again: true });
  expect(again!.at - first!.at).toBeLessThan(60 * 86_400_000);
});

test('a fleet that goes is told of in bounded appends, nodes first, half of a minute at once and half over it', async () => {
  const { perMinute } = limits.status;
  const world = await createWorld();
  const writer = await world.start();
  const chains = Array.from(
    { length: perMinute / 2 },
    (_, index) => ({ type: 'l4_chain', id: `chain-${index}` }) as const,
  );
  const nodes = Array.from({ length: 1_000 }, (_, index) => ({ type: 'node', id: `new-${index}` }) as const);
  for (const key of chains) world.set(key, 'down');
  for (const key of nodes) world.set(key, 'online');
  world.clock.advance(4_000);
  await writer.turn();
  const facts = await world.facts();
  expect(facts).toHaveLength(perMinute / 2);
  expect(new Set(world.appended)).toEqual(new Set([limits.events.appendEvents]));
  expect(facts.slice(0, nodes.length).every(({ fact }) => fact.resource.type === 'node')).toBe(true);

  await pass(world, writer, 4_000);
  expect((await world.facts()).length - facts.length).toBeLessThanOrEqual((perMinute / 2 / 60_000) * 4_000);
  await pass(world, writer, 3_000);
  expect(await world.facts()).toHaveLength(chains.length + nodes.length);
});

test('a clock that was ahead and is set right holds nothing back', async () => {
  const world = await createWorld();
  const writer = await world.start();
  for (const key of [front, back]) world.set(key, 'ok');
  world.clock.jump(86_400_000);
  await pass(world, writer, 40_000);
  world.set(front, 'down');
  await pass(world, writer, 4_000);
  world.clock.jump(-86_400_000);
  world.set(front, 'ok');
  world.set(back, 'down');
  await pass(world, writer, 4_000);
  expect((await world.facts()).map(({ fact: { resource, status } }) => [resource.id, status])).toEqual([
    ['front', 'down'],
    ['front', 'ok'],
    ['back', 'down'],
  ]);
});

describe('a chain that flaps each five seconds for an hour', () => {
  test('at most six facts in ten minutes, and the last one tells what is', async () => {
    const world = await createWorld();
    const writer = await world.start();
    for (let ms = 0; ms < 3_600_000; ms += turnMs) {
      if (ms % 5_000 === 0) world.set(front, ms % 10_000 === 0 ? 'down' : 'ok');
      world.clock.advance(turnMs);
      await writer.turn();
    }
    await pass(world, writer, 700_000);
    const facts = factsOf(await world.facts(), front);
    expectOrderly(facts, front);
    expect(facts.length).toBeLessThanOrEqual(6 * 7 + 1);
    expect(facts.length).toBeGreaterThan(6);
    expect(facts.at(-1)?.fact.status).toBe('ok');
  });
});
