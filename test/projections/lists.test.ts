/** Lists have the filtering, order and pages that a scan of all resources gives. */
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { emptyFleet, type Fleet } from '../../src/domain/fleet/fleet.js';
import { uuidFromName } from '../../src/kernel/ids.js';
import { fleetQueries, type FleetQueries } from '../../src/projections/fleet/fleet-queries.js';
import { allResourceQueries, createSortedList } from '../../src/projections/fleet/resources.js';
import { systemClock } from '../../src/kernel/clock.js';
import type { ListQuery } from '../../src/kernel/list.js';
import {
  createChain,
  createNode,
  createTlsCert,
  createUpstream,
  createX25519,
  deployChain,
  hop,
  nodeId,
  perform,
  performAll,
  updateNode,
} from '../support/fleet.js';

let fleet: Fleet;
let resources: FleetQueries['resources'];
let nodes: FleetQueries['nodes'];

// Both cases, composed and decomposed, beyond the basic plane and private use: the order is by code points.
const letters = ['a', 'B', 'c', 'É', 'e\u0301x', 'ß', '\u{1f600}', '\u{e000}', 'zz', 'Z', '0', '_'];
const nodeNames = Array.from({ length: 40 }, (_, index) => `${letters[index % letters.length]}${index % 7} ${index}`);

beforeAll(() => {
  fleet = emptyFleet();
  for (const [index, name] of nodeNames.entries()) {
    const labels = { site: `s${index % 3}`, 'a:b': 'c', ...(index % 2 === 0 ? { a: 'b:c' } : {}) };
    performAll(fleet, [
      { ...createNode(name), labels },
      createUpstream(name),
      createChain(name, [hop(name, 9000)]),
      ...(index % 4 === 0 ? [deployChain(name)] : []),
    ]);
  }
  performAll(
    fleet,
    nodeNames.slice(0, 10).map((name) => updateNode(name, { description: 'later' })),
  );
  ({ nodes, resources } = fleetQueries({ fleet: () => fleet }, systemClock));
});

interface Listed {
  readonly id: string;
  readonly name: string;
  readonly created_at: string;
  readonly updated_at: string;
}

const points = (text: string): number[] => [...text].map((character) => character.codePointAt(0)!);

function byPoints(a: string, b: string): number {
  const [left, right] = [points(a), points(b)];
  for (let index = 0; index < Math.min(left.length, right.length); index += 1) {
    if (left[index] !== right[index]) return left[index]! - right[index]!;
  }
  return left.length - right.length;
}

const key = (name: string): string => name.normalize('NFC').toLowerCase();

function expected<T extends Listed>(all: Iterable<T>, query: ListQuery, matches: (one: T) => boolean = () => true) {
  const listed = [...all].filter(
    (one) => matches(one) && (query.q === undefined || key(one.name).includes(key(query.q))),
  );
  const field = query.sort.replace('-', '') as 'name' | 'created_at' | 'updated_at';
  const sign = query.sort.startsWith('-') ? -1 : 1;
  const value = (one: T): string => (field === 'name' ? key(one.name) : one[field]);
  listed.sort((a, b) => sign * byPoints(value(a), value(b)) || byPoints(a.id, b.id));
  const from = (query.page - 1) * query.pageSize;
  return { total: listed.length, ids: listed.slice(from, from + query.pageSize).map(({ id }) => id) };
}

const listQueries: fc.Arbitrary<ListQuery> = fc.record({
  page: fc.integer({ min: 1, max: 6 }),
  pageSize: fc.integer({ min: 1, max: 30 }),
  sort: fc.constantFrom('name', '-name', 'created_at', '-created_at', 'updated_at', '-updated_at'),
  q: fc.constantFrom(undefined, undefined, 'A', 'é', 'e\u0301', '1', ' 3', 'ZZ', 'nothing'),
});

describe('a list', () => {
  it('follows each change of what is listed, in every order', () => {
    const orders = ['name', '-name', 'created_at', '-created_at', 'updated_at', '-updated_at'] as const;
    const one = fc.record({
      id: fc.constantFrom(...'abcdefghij'),
      // Names are unique, other fields are not.
      name: fc.constantFrom(...letters),
      created_at: fc.constantFrom('1', '2', '3'),
      updated_at: fc.constantFrom('1', '2', '3'),
      version: fc.constant(1),
    });
    const step = fc.oneof(
      one.map((state) => ({ kind: 'set' as const, state })),
      fc.constantFrom(...'abcdefghij').map((id) => ({ kind: 'delete' as const, id })),
      fc.constantFrom(...orders).map((sort) => ({ kind: 'ask' as const, sort })),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const states = new Map<string, Listed & { readonly version: number }>();
        let stamp = 0;
        const list = createSortedList(
          () => states,
          () => stamp,
        );
        for (const next of steps) {
          if (next.kind === 'ask') {
            const query = { page: 1, pageSize: 5, sort: next.sort };
            const page = list.page(query);
            expect({ total: page.total, ids: page.items.map(({ id }) => id) }).toEqual(
              expected(states.values(), query),
            );
            continue;
          }
          stamp += 1;
          if (next.kind === 'set') states.set(next.state.id, next.state);
          else states.delete(next.id);
        }
      }),
      { numRuns: 300 },
    );
  });

  it('is of other states as soon as they are put in the place of those before', () => {
    const one = { id: 'a', name: 'before', created_at: '1', updated_at: '1', version: 1 };
    let states = new Map([['a', one]]);
    const list = createSortedList(
      () => states,
      () => 7,
    );
    const names = (): readonly string[] =>
      list.page({ page: 1, pageSize: 5, sort: 'name' }).items.map(({ name }) => name);
    expect(names()).toEqual(['before']);
    states = new Map([['a', { ...one, name: 'after' }]]);
    expect(names()).toEqual(['after']);
  });

  it('of credentials can be filtered, and shows no secret, not even a sealed one', () => {
    const holder = emptyFleet();
    for (const command of [createX25519('Keys'), createTlsCert('leaf')]) perform(holder, command);
    const { credential } = allResourceQueries(() => holder);
    const listed = (query: object = {}) => credential.list({ page: 1, pageSize: 9, sort: 'name', ...query }).items;
    expect(listed().map(({ name }) => name)).toEqual(['Keys', 'leaf']);
    const [leaf] = listed({ matches: ({ key_type }: { key_type: string }) => key_type === 'tls_cert' });
    expect([leaf?.name, leaf?.private_key]).toEqual(['leaf', null]);
    expect(holder.tables.credential.get(leaf!.id)?.private_key).not.toBeNull();
    expect(credential.get(leaf!.id)?.private_key).toBeNull();
  });

  it('of upstreams or chains is the page that the query asks for', () => {
    fc.assert(
      fc.property(listQueries, (query) => {
        const upstreams = resources.l4_upstream.list(query);
        expect({ total: upstreams.total, ids: upstreams.items.map(({ id }) => id) }).toEqual(
          expected(fleet.tables.l4_upstream.values(), query),
        );
        const chains = resources.l4_chain.list(query);
        expect({ total: chains.total, ids: chains.items.map(({ id }) => id) }).toEqual(
          expected(fleet.tables.l4_chain.values(), query),
        );
      }),
      { numRuns: 150 },
    );
  });

  it('of nodes can be filtered by what else they are', () => {
    const ids = [...nodeNames.map(nodeId), uuidFromName('nobody')];
    const label = fc.constantFrom(
      undefined,
      { key: 'site', value: 's1' },
      { key: 'a', value: 'b:c' },
      { key: 'a:b', value: 'c' },
      { key: 'site', value: 's9' },
    );
    fc.assert(
      fc.property(listQueries, label, fc.subarray(ids), (query, wanted, some) => {
        const matches = (node: { id: string; labels: Readonly<Record<string, string>> }): boolean =>
          some.includes(node.id) && (wanted === undefined || node.labels[wanted.key] === wanted.value);
        const page = nodes.list({ ...query, matches });
        expect({ total: page.total, ids: page.items.map(({ id }) => id) }).toEqual(
          expected(fleet.tables.node.values(), query, matches),
        );
      }),
      { numRuns: 200 },
    );
  });
});

describe('a resource', () => {
  it('is found by its id, and undefined if it does not exist', () => {
    const [first] = nodeNames.map(nodeId);
    expect(nodes.get(first!)?.id).toBe(first);
    expect(nodes.get(uuidFromName('nobody'))).toBeUndefined();
    expect(resources.l4_upstream.get(uuidFromName('nobody'))).toBeUndefined();
    expect(resources.l4_chain.get(uuidFromName('nobody'))).toBeUndefined();
  });
});
