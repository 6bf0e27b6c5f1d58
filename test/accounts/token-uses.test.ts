/** Last uses of API tokens over several instances (`docs/contract/automation.md#api-tokens`). */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openTokenUses, type TokenUses } from '../../src/accounts/token-uses.js';
import { silentLogger } from '../../src/kernel/logger.js';
import type { ReadStore } from '../../src/storage/read-store.js';
import { createCommandFixture, type CommandFixture } from '../support/command-fixture.js';
import { storesInMemory } from '../support/stores-in-memory.js';
import { switchedReadStore } from '../support/switched-read-store.js';

let fixture: CommandFixture;
let away: boolean;
beforeEach(async () => {
  fixture = await createCommandFixture(storesInMemory());
  away = false;
});
afterEach(() => fixture.close());

const gone = new Set<string>();

const open = (
  removeEveryMs?: number,
  readStore: Pick<ReadStore, 'collection'> = fixture.stores.readStore,
): Promise<TokenUses> =>
  openTokenUses({
    readStore,
    clock: fixture.clock,
    logger: silentLogger,
    away: () => away,
    isGone: (id) => gone.has(id),
    ...(removeEveryMs === undefined ? {} : { removeEveryMs }),
  });
const fromOf = async (uses: TokenUses): Promise<string | undefined> => (await uses.of(['t'])).get('t')?.from;

test('the later of two instances wins, whichever writes last', async () => {
  const [one, other] = [await open(), await open()];
  one.note('t', '192.0.2.1');
  fixture.clock.advance(60_000);
  other.note('t', '192.0.2.2');
  await other.close();
  await one.close();
  const third = await open();
  expect(await fromOf(third)).toBe('192.0.2.2');
  expect(await fromOf(one)).toBe('192.0.2.2');
  await third.close();
});

test.each([true, false])(
  'while the read store is away, an instance says what it has seen itself; known: %s',
  async (known) => {
    const readStore = switchedReadStore(fixture.stores.readStore);
    const uses = await open(undefined, readStore);
    uses.note('t', '192.0.2.1');
    readStore.mode = 'out';
    away = known;
    expect(await fromOf(uses)).toBe('192.0.2.1');
    expect((await uses.of(['other'])).size).toBe(0);
    readStore.mode = 'works';
    await uses.close();
  },
);

test('nothing is kept of a token that was deleted', async () => {
  const uses = await open();
  for (const id of ['t', 'deleted']) uses.note(id, '192.0.2.1');
  await uses.close();
  gone.add('deleted');
  fixture.clock.advance(2 * 24 * 3_600_000);
  const next = await open(1);
  await expect.poll(async () => [...(await next.of(['t', 'deleted'])).keys()]).toEqual(['t']);
  await next.close();
});

test('a use that was noted while a clock was ahead gives way to the next one', async () => {
  fixture.clock.jump(24 * 3_600_000);
  const ahead = await open();
  ahead.note('t', '192.0.2.1');
  await ahead.close();
  fixture.clock.jump(-23 * 3_600_000);
  const uses = await open();
  uses.note('t', '192.0.2.2');
  expect(await fromOf(uses)).toBe('192.0.2.2');
  await uses.close();
  const next = await open();
  expect(await fromOf(next)).toBe('192.0.2.2');
  await next.close();
});
