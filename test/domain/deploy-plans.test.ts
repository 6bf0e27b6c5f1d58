/** What a plan says that a deploy would change, and that it changes nothing itself (`docs/contract/rest.md#l4-chains`, plan). */
import { describe, expect, it } from 'vitest';
import { compileNode } from '../../src/domain/compile/compile-node.js';
import { planDeploy, snapshotDifference } from '../../src/domain/compile/plan.js';
import type { FleetCommand } from '../../src/domain/fleet/resources.js';
import * as f from '../support/fleet.js';
import { dumpFleet } from '../support/fleet-dump.js';
import * as l3 from '../support/l3-networks.js';

const id = f.chainId('one');
const nodes = ['a', 'b', 'c'].map((name) => f.createNode(name));
const hops = [f.hop('a', 80), f.hop('b', 80)];
const toUpstream = { target: { upstream_id: f.upstreamId('up') } } as const;
const live = [f.createUpstream('up'), f.createChain('one', hops), f.deployChain('one')];

type Kind = 'added' | 'changed' | 'removed';
const change = (node: string, changes: { readonly [K in Kind]?: readonly number[] }) => ({
  node_id: f.nodeId(node),
  ...Object.fromEntries(
    (['added', 'changed', 'removed'] as const).map((kind) => [
      kind,
      (changes[kind] ?? []).map((index) => `${id}/${index}`),
    ]),
  ),
});

/** The plan in a fleet that has rules of every other kind on its nodes too. */
function planAfter(...commands: readonly FleetCommand[]) {
  const { fleet } = f.given(
    ...nodes,
    ...l3.identity(),
    l3.createNetwork('net', [l3.member('a', '10.0.0.1/24'), l3.member('b', '10.0.0.2/24')], [l3.tunnel('a', 'b')]),
    f.createRoute('route', [f.routeHop('a', 8080), f.routeHop('b', 8080)]),
    f.createChain('udp', [f.udpHop('a', 90), f.udpHop('b', 90)]),
    f.deployChain('udp'),
    ...commands,
  );
  const before = dumpFleet(fleet);
  const plan = planDeploy(fleet, id);
  expect(dumpFleet(fleet), 'a plan leaves the fleet as it is').toBe(before);
  return plan;
}

describe('the plan of a deploy', () => {
  it.each<[string, readonly FleetCommand[], readonly object[]]>([
    [
      'adds a rule on each hop of a new chain',
      [f.createChain('one', hops)],
      [change('a', { added: [0] }), change('b', { added: [1] })],
    ],
    ['is empty when the deployed definition is the current one', live, []],
    [
      'changes the rule of a hop that listens elsewhere, and that of the hop before',
      [...live, f.updateChain('one', { hops: [f.hop('a', 80), f.hop('b', 81)] })],
      [change('a', { changed: [0] }), change('b', { changed: [1] })],
    ],
    [
      'changes the rule of the hop alone when nobody dials it',
      [...live, f.updateChain('one', { hops: [f.hop('a', 81), f.hop('b', 80)] })],
      [change('a', { changed: [0] })],
    ],
    [
      'changes the last hop alone when the target is another',
      [...live, f.updateChain('one', toUpstream)],
      [change('b', { changed: [1] })],
    ],
    [
      'removes and adds where a hop moves to another node',
      [...live, f.updateChain('one', { hops: [f.hop('a', 80), f.hop('c', 80)] })],
      [change('a', { changed: [0] }), change('b', { removed: [1] }), change('c', { added: [1] })],
    ],
    [
      'removes alone where a hop is dropped',
      [...live, f.updateChain('one', { hops: [f.hop('b', 80)] })],
      [change('a', { removed: [0] }), change('b', { added: [0], removed: [1] })],
    ],
  ])('%s', (_, commands, expected) => {
    expect(planAfter(...commands)).toEqual({ nodes: expected, collisions: [] });
  });

  it('of a disabled chain changes nothing', () => {
    expect(planAfter(...live, f.updateChain('one', { hops: [f.hop('c', 80)], enabled: false }))).toEqual({
      nodes: [],
      collisions: [],
    });
  });

  it('names a hop that the one before it cannot dial', () => {
    const hidden = { ...f.createNode('hidden'), address: null };
    expect(planAfter(hidden, f.createChain('one', [f.hop('a', 80), f.hop('hidden', 80)]))?.collisions).toEqual([
      expect.stringMatching(/^hops\[1\]\.node_id: the node "hidden" has no known address/),
    ]);
  });

  it('of an unknown chain does not exist', () => {
    expect(planAfter()).toBeUndefined();
  });
});

describe('a plan counts a rule as changed', () => {
  it('when only the names of its upstream differ from what is deployed, and not when another upstream does', () => {
    const chain = f.createChain('one', hops, toUpstream);
    const onUp = [f.createUpstream('up'), f.createUpstream('other'), chain, f.deployChain('one')];
    expect(planAfter(...onUp)?.nodes).toEqual([]);
    const other = f.updateChain('one', { target: { upstream_id: f.upstreamId('other') } });
    expect(planAfter(...onUp, other)?.nodes).toEqual([change('b', { changed: [1] })]);
  });

  it('when its hop has another certificate', () => {
    const tls = (name: string) => [
      f.hop('a', 80, { security: 'tls', credential_id: f.credentialId(name) }),
      f.hop('b', 80),
    ];
    const plan = planAfter(
      f.createTlsCert('first'),
      f.createTlsCert('second'),
      f.createChain('one', tls('first')),
      f.deployChain('one'),
      f.updateChain('one', { hops: tls('second') }),
    );
    expect(plan?.nodes).toEqual([change('a', { changed: [0] })]);
  });
});

describe('two snapshots of a node differ in a rule', () => {
  const tls = f.hop('b', 80, { security: 'tls', credential_id: f.credentialId('cert') });
  const base = [
    ...nodes,
    f.createUpstream('up'),
    f.createTlsCert('cert'),
    f.createChain('one', [f.hop('a', 80), tls], toUpstream),
    f.deployChain('one'),
    f.createRoute('route', [f.routeHop('b', 8080)]),
  ];
  const snapshotAfter = (...commands: readonly FleetCommand[]) =>
    compileNode(f.given(...base, ...commands).fleet, f.nodeId('b'));

  it.each<[string, FleetCommand, readonly string[]]>([
    ['whose upstream changed', f.updateUpstream('up', { endpoint: 'b.example:1' }), [`${id}/1`]],
    ['whose certificate changed', f.updateCredential('cert', f.rotatedTo('next')), [`${id}/1`]],
    ['and in no other', f.createUpstream('other'), []],
  ])('%s', (_, command, changed) => {
    expect(snapshotDifference(snapshotAfter(), snapshotAfter(command))).toEqual({ added: [], changed, removed: [] });
  });
});
