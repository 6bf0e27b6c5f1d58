/** Where the topology draws what: those that dial to the left of what they dial, and nothing on top of another. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { placed } from '../../console/src/topology/layout.js';
import { isMeant, linesOf, shapesOf, type Line } from '../../console/src/topology/shapes.js';
import type { Link, Node } from '../../console/src/topology/topology.js';

interface NodeOptions {
  readonly status?: Node['status'];
  readonly apply?: Node['apply']['state'];
  readonly labels?: Node['labels'];
}

const node = (id: string, { status = 'online', apply = 'applied', labels = {} }: NodeOptions = {}): Node =>
  ({ id, name: id, status, labels, apply: { state: apply } }) as Node;
const link = (from: string, to: string, rtt: number | null = null, loss: number | null = null): Link =>
  ({ from_node_id: from, to_node_id: to, rtt_ms: rtt, loss_ratio: loss }) as Link;
const line = (from: string, to: string): Line => ({ from, to, count: 1, rttMs: null, loss: null });
const shapes = (...ids: readonly string[]) =>
  shapesOf(
    ids.map((id) => node(id)),
    undefined,
  );

/** The ids of each column, from the left. */
const columns = (places: ReturnType<typeof placed>): readonly (readonly string[])[] =>
  [...new Set(places.map(({ x }) => x))]
    .toSorted((a, b) => a - b)
    .map((column) => places.filter(({ x }) => x === column).map(({ shape }) => shape.id));

describe('the layout', () => {
  test('has a column for each number of dials, and last what no link reaches', () => {
    const lines = [line('entry', 'middle'), line('middle', 'exit'), line('other', 'exit')];
    const places = placed(shapes('spare', 'exit', 'middle', 'entry', 'other'), lines);
    expect(columns(places)).toEqual([['entry', 'other'], ['exit', 'middle'], ['spare']]);
  });

  test('begins a circle that nobody else dials at its first member', () => {
    const lines = [line('a', 'b'), line('b', 'c'), line('c', 'a')];
    expect(columns(placed(shapes('c', 'b', 'a'), lines))).toEqual([['a'], ['b'], ['c']]);
  });

  test('goes on beside a column that is too tall', () => {
    const ids = Array.from({ length: 25 }, (_, index) => `n${index}`);
    expect(columns(placed(shapes(...ids), [])).map((column) => column.length)).toEqual([24, 1]);
    expect(placed([], [])).toEqual([]);
  });

  test('puts each shape at a place of its own, which no state moves', () => {
    const id = fc.integer({ min: 0, max: 60 }).map(String);
    const fleet = fc.tuple(fc.uniqueArray(id), fc.array(fc.tuple(id, id)));
    fc.assert(
      fc.property(fleet, ([ids, pairs]) => {
        const nodes = ids.map((one) => node(one));
        const links = pairs.map(([from, to]) => link(from, to));
        const drawn = (of: readonly Node[]) => placed(shapesOf(of, undefined), linesOf(shapesOf(of, undefined), links));
        const places = drawn(nodes).map(({ shape, x, y }) => [shape.id, `${x} ${y}`] as const);
        expect(new Set(places.map(([one]) => one))).toEqual(new Set(ids));
        expect(new Set(places.map(([, place]) => place)).size).toBe(ids.length);
        const down = drawn(ids.map((one) => node(one, { status: 'offline' })));
        expect(down.map(({ shape, x, y }) => [shape.id, `${x} ${y}`])).toEqual(places);
      }),
    );
  });
});

describe('shapes', () => {
  test('are nodes, or groups by a label, each with the worst of its states', () => {
    const nodes = [
      node('a', { labels: { region: 'eu' } }),
      node('b', { labels: { region: 'eu' }, apply: 'rejected' }),
      node('c', { labels: { region: 'us' }, status: 'pending' }),
      node('d', { apply: 'pushed' }),
    ];
    expect(shapesOf(nodes, undefined).map(({ id, mood }) => [id, mood])).toEqual([
      ['a', 'good'],
      ['b', 'bad'],
      ['c', 'idle'],
      ['d', 'busy'],
    ]);
    expect(
      shapesOf(nodes, 'region').map(({ name, mood, troubled, nodes: of }) => [name, mood, troubled, of.length]),
    ).toEqual([
      ['eu', 'bad', 1, 2],
      ['us', 'idle', 0, 1],
      [null, 'busy', 0, 1],
    ]);
  });

  test('have one line for all links between two: the shortest round trip, the largest loss, none within one', () => {
    const nodes = ['a', 'b', 'c'].map((id) => node(id, { labels: { site: id === 'c' ? 'far' : 'near' } }));
    const links = [link('a', 'c', 9, null), link('b', 'c', 4, 0.1), link('b', 'c', null, 0.3), link('a', 'b', 1, 0)];
    expect(linesOf(shapesOf(nodes, 'site'), links)).toEqual([
      { from: 'site=near', to: 'site=far', count: 3, rttMs: 4, loss: 0.3 },
    ]);
    // A node that is not drawn has no lines.
    expect(linesOf(shapes('a'), links)).toEqual([]);
  });

  test('are found by name, by the name of a member, and by a label', () => {
    const [shape] = shapesOf([node('Edge-1', { labels: { region: 'EU' } })], 'region');
    expect(['eu', 'edge', 'region:eu'].map((q) => isMeant(shape!, q))).toEqual([true, true, true]);
    expect(isMeant(shape!, 'us')).toBe(false);
  });
});
