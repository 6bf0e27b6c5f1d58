/** The bookkeeping of connections, compared with a slow and plain one over random histories. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  createConnectionTable,
  type ConnectionTable,
  type Entry,
} from '../../src/transport/listener/connection-table.js';

const addresses = ['192.0.2.1', '192.0.2.2', '2001:db8::1', '2001:db8:0:0:1::1', '2001:db8:0:1::1'];
const keys = ['192.0.2.1', '192.0.2.2', '2001:db8:0:0::/64', '2001:db8:0:0::/64', '2001:db8:0:1::/64'];

interface Plain {
  readonly id: number;
  key: string;
  since: number;
  sessions: number;
  sniffing: boolean;
  mirrored: boolean;
}

type Step =
  | { readonly do: 'add'; readonly address: number }
  | { readonly do: 'sniffed' | 'mirrored'; readonly which: number; readonly address: number }
  | { readonly do: 'opened' | 'ended' | 'remove' | 'evict'; readonly which: number };

const address = fc.integer({ min: 0, max: addresses.length - 1 });
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant('add' as const), address }) },
  fc.record({ do: fc.constantFrom('sniffed', 'mirrored'), which: fc.nat(), address }),
  fc.record({ do: fc.constantFrom('opened', 'ended', 'remove', 'evict'), which: fc.nat() }),
);

/** One history on both; the table must agree after each step. */
function play(steps: readonly Step[]): void {
  const table: ConnectionTable<Plain> = createConnectionTable();
  const entries: Entry<Plain>[] = [];
  let [now, last] = [0, 0];
  const pick = (which: number): Entry<Plain> | undefined => entries[which % Math.max(entries.length, 1)];
  const drop = (entry: Entry<Plain>): void => {
    table.remove(entry);
    table.remove(entry);
    entries.splice(entries.indexOf(entry), 1);
  };
  for (const one of steps) {
    now += 1;
    if (one.do === 'add') {
      const plain = {
        id: (last += 1),
        key: keys[one.address]!,
        since: now,
        sessions: 0,
        sniffing: true,
        mirrored: false,
      };
      entries.push(table.add(plain, addresses[one.address]!, now));
    } else {
      const entry = one.do === 'evict' ? table.expendable() : pick(one.which);
      if (entry === undefined) continue;
      const plain = entry.value;
      if (one.do === 'remove' || one.do === 'evict') drop(entry);
      else if (one.do === 'mirrored' && plain.sniffing) {
        table.mirrored(entry, addresses[one.address]!, now);
        Object.assign(plain, { key: keys[one.address]!, sniffing: false, mirrored: true, since: now });
      } else if (one.do === 'sniffed' && (plain.sniffing || plain.mirrored)) {
        table.sniffed(entry, addresses[one.address]!, now);
        if (plain.mirrored) plain.since = now;
        Object.assign(plain, { key: keys[one.address]!, sniffing: false, mirrored: false });
      } else if (one.do === 'opened' && !plain.sniffing && !plain.mirrored) {
        table.sessionOpened(entry);
        plain.sessions += 1;
      } else if (one.do === 'ended' && plain.sessions > 0) {
        table.sessionEnded(entry, now);
        plain.sessions -= 1;
        if (plain.sessions === 0) plain.since = now;
      }
    }
    agree(table, entries);
  }
}

function agree(table: ConnectionTable<Plain>, entries: readonly Entry<Plain>[]): void {
  const plains = entries.map(({ value }) => value);
  const without = plains.filter(({ sessions }) => sessions === 0);
  const sniffing = plains.filter((plain) => plain.sniffing);
  const mirrored = plains.filter((plain) => plain.mirrored);
  const known = without.filter((plain) => !plain.mirrored);
  expect(table.size).toBe(plains.length);
  expect(table.kinds()).toEqual({
    sniffing: sniffing.length,
    mirrored: mirrored.length,
    without_session: known.length - sniffing.length,
    with_session: plains.length - without.length,
  });
  const oldest = (some: readonly Plain[]): number | undefined =>
    some.length === 0 ? undefined : Math.min(...some.map(({ since }) => since));
  expect(table.longestWithoutSession()?.since).toBe(oldest(known));
  expect(table.longestMirrored()?.value.since).toBe(oldest(mirrored));
  expect([...table.withoutSession()].length).toBe(without.length);
  expect(table.longestSniffed()?.value).toBe(sniffing[0]);
  const held = new Map<string, number>();
  for (const { key } of without) held.set(key, (held.get(key) ?? 0) + 1);
  const expendable = table.expendable()?.value;
  if (without.length === 0) return expect(expendable).toBeUndefined();
  expect(expendable?.sessions).toBe(0);
  expect(held.get(expendable!.key)).toBe(Math.max(...held.values()));
}

test('agrees with a plain count after every step of any history', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => play(steps)),
    { numRuns: 300 },
  );
});

test('of an address, the connection that came or lost its session first is the expendable one', () => {
  const table = createConnectionTable<string>();
  const [first, second, third] = ['first', 'second', 'third'].map((name, index) => table.add(name, '192.0.2.1', index));
  table.add('another address', '192.0.2.2', 0);
  table.sniffed(first!, '192.0.2.1', 0);
  table.sessionOpened(first!);
  expect(table.expendable()).toBe(second);
  table.sessionEnded(first!, 10);
  table.remove(second!);
  expect(table.expendable()).toBe(third);
  table.remove(third!);
  table.add('fourth', '192.0.2.1', 11);
  expect(table.expendable()).toBe(first);
});

test('takes the same time per connection, however many there are', () => {
  const perConnection = (count: number): number => {
    const table = createConnectionTable<number>();
    for (let index = 0; index < count; index += 1) table.add(index, `10.0.${index % 100}.1`, index);
    const began = performance.now();
    // A flood at the limit: each newcomer takes the place of the oldest of the fullest address.
    for (let index = 0; index < 20_000; index += 1) {
      table.add(index, `10.0.${index % 3}.1`, count + index);
      table.remove(table.expendable()!);
    }
    return performance.now() - began;
  };
  perConnection(1_000);
  const [few, many] = [perConnection(1_000), perConnection(100_000)];
  expect(many).toBeLessThan(20 * few + 100);
});
