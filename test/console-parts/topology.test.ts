/** What the topology draws, and where: those that dial to the left of what they dial, and nothing on top of another. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { placed, roomy } from '../../console/src/topology/layout.js';
import { groupedBy, isMeant, pictureOf, type Line, type Shape } from '../../console/src/topology/shapes.js';
import type { Topology } from '../../console/src/topology/topology.js';

type Node = Extract<Topology, { readonly nodes: unknown }>['nodes'][number];
type Group = Extract<Topology, { readonly groups: unknown }>['groups'][number];

const node = (id: string, fields: Partial<Node> = {}): Node => ({
  id,
  name: id,
  group: null,
  status: 'online',
  apply: 'applied',
  chains: { total: 1, down: 0 },
  ...fields,
});
const group = (value: string | null, fields: Partial<Group> = {}): Group => ({
  value,
  nodes: 3,
  by_status: { online: 3, offline: 0, pending: 0 },
  rejected: 0,
  chains_down: 0,
  ...fields,
});
const line = (from: string, to: string): Line => ({ from, to, chains: 1, state: 'ok', rtt_ms: null });
const shapes = (...ids: readonly string[]): readonly Shape[] =>
  pictureOf({ nodes: ids.map((id) => node(id)), links: [] }, undefined).shapes;

/** The ids of each column, from the left. */
const columns = (places: ReturnType<typeof placed>): readonly (readonly string[])[] =>
  [...new Set(places.map(({ x }) => x))]
    .toSorted((a, b) => a - b)
    .map((column) => places.filter(({ x }) => x === column).map(({ shape }) => shape.id));

describe('the layout', () => {
  test('has a column for each number of dials, and last what no link reaches', () => {
    const lines = [line('entry', 'middle'), line('middle', 'exit'), line('other', 'exit')];
    const places = placed(shapes('spare', 'exit', 'middle', 'entry', 'other'), lines, roomy, 4);
    expect(columns(places)).toEqual([['entry', 'other'], ['exit', 'middle'], ['spare']]);
  });

  test('begins a circle that nobody else dials at its first member', () => {
    const lines = [line('a', 'b'), line('b', 'c'), line('c', 'a')];
    expect(columns(placed(shapes('c', 'b', 'a'), lines, roomy, 4))).toEqual([['a'], ['b'], ['c']]);
  });

  test('goes on beside a column that would be taller than it must be', () => {
    const ids = Array.from({ length: 25 }, (_, index) => `n${index}`);
    expect(columns(placed(shapes(...ids), [], roomy, 2)).map((column) => column.length)).toEqual([13, 12]);
    expect(placed([], [], roomy, 2)).toEqual([]);
  });

  test('of a circle that is longer than the page is wide goes on below, in its order', () => {
    const ids = ['a', 'b', 'c', 'd', 'e'];
    const lines = ids.map((from, index) => line(from, ids[(index + 1) % ids.length]!));
    expect(columns(placed(shapes(...ids), lines, roomy, 2))).toEqual([
      ['a', 'b', 'c'],
      ['d', 'e'],
    ]);
  });

  const id = fc.integer({ min: 0, max: 60 }).map(String);
  const fleet = fc.tuple(fc.uniqueArray(id), fc.array(fc.tuple(id, id)));

  test('puts each shape at a place of its own, which no state moves', () => {
    fc.assert(
      fc.property(fleet, ([ids, pairs]) => {
        const lines = pairs.map(([from, to]) => line(from, to));
        const places = placed(shapes(...ids), lines, roomy, 4).map(
          ({ shape, x, y }) => [shape.id, `${x} ${y}`] as const,
        );
        expect(new Set(places.map(([one]) => one))).toEqual(new Set(ids));
        expect(new Set(places.map(([, place]) => place)).size).toBe(ids.length);
        const down = pictureOf({ nodes: ids.map((one) => node(one, { status: 'offline' })), links: [] }, undefined);
        expect(placed(down.shapes, lines, roomy, 4).map(({ shape, x, y }) => [shape.id, `${x} ${y}`])).toEqual(places);
      }),
    );
  });

  test('has no more columns than fit', () => {
    fc.assert(
      fc.property(fleet, fc.integer({ min: 1, max: 9 }), ([ids, pairs], most) => {
        const lines = pairs.map(([from, to]) => line(from, to));
        expect(columns(placed(shapes(...ids), lines, roomy, most)).length).toBeLessThanOrEqual(most);
      }),
    );
  });
});

describe('a shape', () => {
  test.each<[string, Partial<Node>, Shape['mood'], string]>([
    ['is well', {}, 'good', 'online'],
    ['waits for its apply', { apply: 'pushed' }, 'busy', 'online'],
    ['is on a chain that is down', { chains: { total: 2, down: 1 } }, 'warning', 'online, 1 chain down'],
    ['rejects, which matters more than that it is online', { apply: 'rejected' }, 'bad', 'configuration rejected'],
    ['is offline', { status: 'offline' }, 'bad', 'offline'],
    ['was never there', { status: 'pending', apply: 'none' }, 'idle', 'never connected'],
  ])('of a node that %s', (_, fields, mood, state) => {
    expect(pictureOf({ nodes: [node('n', fields)], links: [] }, undefined).shapes[0]).toMatchObject({ mood, state });
  });

  test.each<[string, Partial<Group>, Shape['mood'], string]>([
    ['is well', {}, 'good', '3 nodes, all well'],
    [
      'is unwell',
      { by_status: { online: 1, offline: 1, pending: 1 }, rejected: 1, chains_down: 2 },
      'warning',
      '3 nodes, 1 offline, 1 rejected, 2 chains down, 1 never connected',
    ],
    ['is gone', { by_status: { online: 0, offline: 3, pending: 0 } }, 'bad', '3 nodes, 3 offline'],
    ['never came', { by_status: { online: 0, offline: 0, pending: 3 } }, 'idle', '3 nodes, 3 never connected'],
  ])('of a group that %s', (_, fields, mood, state) => {
    expect(pictureOf({ groups: [group('eu', fields)], links: [] }, undefined).shapes[0]).toMatchObject({ mood, state });
  });

  test('of an open group tells its neighbours apart, also where the group has no value', () => {
    const nodes = [node('a', { group: 'eu' }), node('b', { group: null })];
    const neighbours = (open: string) => pictureOf({ nodes, links: [] }, open).shapes.map(({ neighbour }) => neighbour);
    expect(neighbours('eu')).toEqual([false, true]);
    expect(neighbours('')).toEqual([true, false]);
  });
});

test('links of groups lead from and to their shapes', () => {
  const links = [{ from: 'eu', to: null, chains: 2, state: 'down', rtt_ms: 3 } as const];
  const { shapes: drawn, lines } = pictureOf({ groups: [group('eu'), group(null)], links }, undefined);
  expect(drawn.map(({ id }) => id)).toEqual(['eu', '']);
  expect(lines).toEqual([{ from: 'eu', to: '', chains: 2, state: 'down', rtt_ms: 3 }]);
});

test.each([
  [undefined, 40, undefined],
  [undefined, 41, 'region'],
  ['*', 1_000, undefined],
  // The service draws no more of them.
  ['*', 1_001, 'region'],
  ['role', 3, 'role'],
])('asked for %s, %i nodes are grouped by %s', (asked, nodes, by) => {
  expect(groupedBy(asked, '*', nodes, ['region', 'role'])).toBe(by);
  expect(groupedBy(undefined, '*', nodes, [])).toBeUndefined();
});

test('a search means what has it in its name, and groups that hold a node which it means', () => {
  const [eu, us] = pictureOf({ groups: [group('eu'), group('us')], links: [] }, undefined).shapes;
  expect([eu, us].map((one) => isMeant(one!, 'EU', new Set(['us'])))).toEqual([true, true]);
  expect(isMeant(us!, 'eu', new Set())).toBe(false);
});
