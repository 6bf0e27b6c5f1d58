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
import { createWorld, type Instance, type Mishap, type RecordedFact, type World } from './status-world.js';

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
    const key = { type: 'l4_chain', id: 'front' } as const;
    world.set(key, 'ok');
    await pass(world, writer, 40_000);

    world.set(key, 'down');
    await pass(world, writer, 2_500);
    world.set(key, 'ok');
    await pass(world, writer, 10_000);
    expect(await world.facts()).toEqual([]);

    world.set(key, 'down');
    const began = world.clock.now();
    await pass(world, writer, 4_000);
    const [told, ...rest] = await world.facts();
    expect(rest).toEqual([]);
    expect(told?.fact).toMatchObject({ was: 'ok', status: 'down', since: new Date(began).toISOString() });
    expect((told?.at ?? 0) - began).toBeGreaterThanOrEqual(limits.status.standsMs);
    expect((told?.at ?? 0) - began).toBeLessThanOrEqual(limits.status.standsMs + turnMs);
  });
});

test('what a frozen writer tells after another took over is followed by what is so now', async () => {
  const world = await createWorld();
  const [frozen, other] = [await world.start(), await world.start()];
  const key = { type: 'l4_chain', id: 'front' } as const;
  world.set(key, 'ok');
  await pass(world, frozen, 40_000);
  world.set(key, 'down');
  let release = (): void => undefined;
  const waits = world.holdAppend(new Promise((resolve) => (release = resolve)));
  world.clock.advance(limits.status.standsMs);
  const turn = frozen.turn();
  await waits;

  world.clock.advance(limits.status.leaseMs + 1);
  world.set(key, 'ok');
  await pass(world, other, 40_000);
  release();
  await turn;
  await other.follow();
  await pass(world, other, 20_000);
  expect((await world.facts()).map(({ fact }) => fact.status)).toEqual(['down', 'ok']);
});

test('a log that refuses facts is said, and told what stands once it takes them', async () => {
  const world = await createWorld();
  const writer = await world.start();
  const key = { type: 'l4_chain', id: 'front' } as const;
  world.set(key, 'ok');
  for (let turn = 0; turn < 160; turn += 1) {
    world.clock.advance(turnMs);
    await writer.turn();
  }
  world.onAppend(() => 'refused');
  world.set(key, 'down');
  world.clock.advance(4_000);
  await expect(writer.turn()).rejects.toThrow('svc-status takes no facts: no permission');
  world.onAppend(() => 'none');
  await writer.turn();
  expect((await world.facts()).map(({ fact }) => fact.status)).toEqual(['down']);
});

test('a clock that was ahead and is set right holds nothing back', async () => {
  const world = await createWorld();
  const writer = await world.start();
  const [front, back] = ['front', 'back'].map((id) => ({ type: 'l4_chain', id }) as const);
  for (const key of [front!, back!]) world.set(key, 'ok');
  world.clock.jump(86_400_000);
  await pass(world, writer, 40_000);
  world.set(front!, 'down');
  await pass(world, writer, 4_000);
  world.clock.jump(-86_400_000);
  world.set(front!, 'ok');
  world.set(back!, 'down');
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
    const key = { type: 'l4_chain', id: 'front' } as const;
    for (let ms = 0; ms < 3_600_000; ms += turnMs) {
      if (ms % 5_000 === 0) world.set(key, ms % 10_000 === 0 ? 'down' : 'ok');
      world.clock.advance(turnMs);
      await writer.turn();
    }
    await pass(world, writer, 700_000);
    const facts = factsOf(await world.facts(), key);
    expectOrderly(facts, key);
    expect(facts.length).toBeLessThanOrEqual(6 * 7 + 1);
    expect(facts.length).toBeGreaterThan(6);
    expect(facts.at(-1)?.fact.status).toBe('ok');
  });
});
