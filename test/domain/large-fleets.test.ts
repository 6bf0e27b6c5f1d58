/**
 * On the largest supported fleet, a command costs as much as it touches: counted in rows read and nodes compiled, not in time
 * (`docs/contract/domain.md#scale-the-model-is-built-for`).
 */
import { beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type * as Compiler from '../../src/domain/compile/compile-node.js';
import { compileNode } from '../../src/domain/compile/compile-node.js';
import { planDeploy } from '../../src/domain/compile/plan.js';
import { oversizedInPieces } from '../../src/domain/compile/size.js';
import { runSync } from '../../src/kernel/pieces.js';
import { resourceTypes, type FleetCommand, type AnyState } from '../../src/domain/fleet/resources.js';
import { draftFleet, emptyFleet, fleetOn, type Fleet } from '../../src/domain/fleet/fleet.js';
import type { Table } from '../../src/domain/aggregate/containers.js';
import { dumpIndexes } from '../support/fleet-dump.js';
import * as f from '../support/fleet.js';
import * as l3 from '../support/l3-networks.js';

vi.mock('../../src/domain/compile/compile-node.js', async (original) => {
  const actual = await original<typeof Compiler>();
  return { ...actual, compileNode: vi.fn(actual.compileNode) };
});

const nodeCount = 10_000;
const chainCount = 20_000;
const upstreamCount = 5_000;

const members = [l3.member('n77', '10.0.0.1/24'), l3.member('n78', '10.0.0.2/24'), l3.member('n79', '10.0.0.3/24')];

let reads = 0;
let fleet: Fleet;

function* counted<T>(rows: Iterable<T>): Generator<T> {
  for (const row of rows) {
    reads += 1;
    yield row;
  }
}

/** The table with a count of the rows that are read. */
function watched<V>(table: Table<V>): Table<V> {
  const count =
    <A extends unknown[], R>(read: (...args: A) => R) =>
    (...args: A): R => {
      reads += 1;
      return read(...args);
    };
  return {
    get size() {
      return table.size;
    },
    get: count(table.get),
    has: count(table.has),
    set: count(table.set),
    delete: count(table.delete),
    ids: () => counted(table.ids()),
    values: () => counted(table.values()),
    entries: () => counted(table.entries()),
    draft: table.draft,
  };
}

beforeAll(() => {
  fleet = emptyFleet();
  const build = (command: FleetCommand): void => {
    const performed = f.perform(fleet, command);
    if (performed.kind !== 'written') throw new Error(`${command.type}: ${JSON.stringify(performed)}`);
  };
  for (let n = 0; n < nodeCount; n += 1) build(f.createNode(`n${n}`));
  for (let u = 0; u < upstreamCount; u += 1) build(f.createUpstream(`u${u}`));
  // Four hops on each node, two of them dialled; four chains into each upstream, from two nodes.
  for (let c = 0; c < chainCount; c += 1) {
    const hops = [f.hop(`n${c % nodeCount}`, 1000 + c), f.hop(`n${(c * 7 + 1) % nodeCount}`, 1000 + c)];
    build(f.createChain(`c${c}`, hops, { target: { upstream_id: f.upstreamId(`u${c % upstreamCount}`) } }));
    build(f.deployChain(`c${c}`));
  }
  for (const command of l3.identity()) build(command);
  build(l3.createNetwork('net', members, [l3.tunnel('n77', 'n78'), l3.tunnel('n77', 'n79')]));
});

beforeEach(() => {
  reads = 0;
  vi.mocked(compileNode).mockClear();
});

/** Decides, applies and checks the size as the gateway does, on a draft. */
function tried(command: FleetCommand): { readonly touched: ReadonlySet<string>; readonly kind: string } {
  const { state } = draftFleet(fleet).state;
  const { tables, touched, names } = state;
  const view: Fleet = fleetOn({
    ...state,
    tables: Object.fromEntries(
      resourceTypes.map((type) => [type, watched<AnyState>(tables[type] as unknown as Table<AnyState>)]),
    ) as unknown as Fleet['tables'],
    touched: watched(touched),
    names: watched(names),
  });
  const performed = f.perform(view, command);
  const none = new Set<string>();
  if (performed.kind === 'written') expect(runSync(oversizedInPieces(view, performed.touched))).toBeUndefined();
  return { touched: performed.kind === 'written' ? performed.touched : none, kind: performed.kind };
}

const a = f.nodeId('n77');
const chain77 = [f.hop('n77', 1077), f.hop('n540', 1077)];

describe(`on ${nodeCount} nodes and ${chainCount} deployed chains`, () => {
  it.each<[string, FleetCommand, number]>([
    ['a new node', f.createNode('new'), 1],
    ['a node address', f.updateNode('n540', { address: 'moved.example' }), 1],
    [
      'a member of a network',
      l3.updateNetwork('net', { members: members.with(2, l3.member('n79', '10.0.0.9/24')) }),
      2,
    ],
    ['a new network', l3.createNetwork('new', members, [l3.tunnel('n77', 'n79')]), 2],
    ['a refresh', { type: 'RefreshNodeConfig', id: a }, 1],
    ['an upstream edit', f.updateUpstream('u77', { endpoint: 'moved.example:1' }), 2],
    ['a new chain', f.createChain('new', [f.hop('n77', 9), f.hop('n78', 9)]), 0],
    ['a chain edit', f.updateChain('c77', { hops: chain77.map((hop) => ({ ...hop, listen_port: 9 })) }), 0],
    ['a chain name', f.updateChain('c77', { name: 'renamed' }), 2],
    ['a deploy', f.deployChain('c77'), 2],
    ['a disabled chain', f.updateChain('c77', { enabled: false }), 2],
    ['a deleted chain', { type: 'DeleteChain', id: f.chainId('c77'), ifMatch: undefined }, 2],
    ['an override of one node', f.settings({ nodes: [{ node_id: a, multiplex: true, multiplex_port: 9 }] }), 1],
    ['intervals', f.settings({ heartbeat_interval_secs: 7 }), 0],
  ])('%s touches, reads and compiles only what it concerns', (_, command, touches) => {
    const { touched, kind } = tried(command);
    expect(kind).toBe('written');
    expect(touched.size).toBe(touches);
    expect(reads, 'rows read').toBeLessThan(120);
    expect(vi.mocked(compileNode).mock.calls.length, 'nodes compiled').toBeLessThanOrEqual(touches);
  });

  it.each<[string, FleetCommand]>([
    ['a taken name', { ...f.createNode('new'), name: 'N5000' }],
    ['a taken context id', l3.createNetwork('new', members, [l3.tunnel('n77', 'n79', { context_id: 2 })])],
    ['a taken listener', f.createChain('new', [f.hop('n77', 1077)])],
    ['a delete of a node in use', { type: 'DeleteNode', id: a, ifMatch: undefined }],
    ['a taken multiplex port', f.settings({ nodes: [{ node_id: a, multiplex: true, multiplex_port: 1077 }] })],
  ])('%s is refused after a few reads', (_, command) => {
    expect(tried(command).kind).toBe('refused');
    expect(reads).toBeLessThan(40);
    expect(compileNode).not.toHaveBeenCalled();
  });

  it('a plan compiles the nodes of its chain twice, and no other', () => {
    expect(planDeploy(fleet, f.chainId('c77'))).toEqual({ nodes: [], collisions: [] });
    const compiled = vi.mocked(compileNode).mock.calls.map(([, id]) => id);
    const [first, second] = chain77.map((hop) => hop.node_id);
    expect(compiled.toSorted()).toEqual([first, first, second, second].toSorted());
  });

  it('a global change touches every node', () => {
    expect(tried(f.settings({ multiplex: true, multiplex_port: 65_000 })).touched.size).toBe(nodeCount);
    expect(tried({ type: 'RaiseCompilerVersion', version: 5 }).touched.size).toBe(nodeCount);
  });

  it('rolling back a command restores every index', () => {
    const before = dumpIndexes(fleet);
    tried(f.settings({ multiplex: true, multiplex_port: 65_000 }));
    tried({ type: 'DeleteChain', id: f.chainId('c77'), ifMatch: undefined });
    expect(dumpIndexes(fleet) === before).toBe(true);
  });
});
