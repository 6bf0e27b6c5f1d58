/**
 * What rules and settings need of agents, and the warnings where an agent lacks it
 * (`docs/contract/agent-protocol.md#configuration`, "Features").
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { warnings } from '../../src/domain/agents/features.js';
import type { Hop, Payload } from '../../src/domain/chain/chain.js';
import { transports } from '../../src/domain/chain/transports.js';
import { compileNode } from '../../src/domain/compile/compile-node.js';
import { addNeeds, needsOf, needsOfNode } from '../../src/domain/compile/needs.js';
import type { FleetCommand, FleetEvent } from '../../src/domain/fleet/resources.js';
import { features, type Feature } from '../../src/domain/snapshot/features.js';
import type { NodeSnapshot, TransportProfile } from '../../src/domain/snapshot/snapshot.js';
import * as f from '../support/fleet.js';
import { histories } from '../support/fleet-histories.js';
import { play } from '../support/fleet-play.js';
import * as l3 from '../support/l3-networks.js';

/** The contract's table, by the words of the wire. */
function byTheContract({ payload, outer, security }: TransportProfile, named = false): readonly Feature[] {
  const fake = outer === 'FAKE_TCP' ? (['fake_tcp'] as const) : [];
  if (outer === 'QUIC') return [payload === 'TCP' ? 'quic_reality' : 'quic_datagram'];
  if (payload === 'UDP') return [security === 'RAW' ? 'udp_raw' : 'udp_enc', ...fake];
  if (security === 'RAW') return [named ? 'tcp_sni' : 'tcp_raw'];
  return [security === 'TLS' ? 'tcp_tls' : 'tcp_reality'];
}

/** What the rules of a snapshot need, read from the rules themselves. */
function neededBy(snapshot: NodeSnapshot): ReadonlySet<Feature> {
  const { tcp_proxy_rules: tcp, udp_rules: udp, quic_rules: quic } = snapshot;
  return new Set([
    ...tcp.flatMap((rule) => byTheContract(rule.transport_profile, rule.server_names.length > 0)),
    ...[...udp, ...quic].flatMap((rule) => byTheContract(rule.transport_profile)),
    ...[...tcp, ...udp, ...quic].flatMap(({ outbound }) => byTheContract(outbound.transport_profile)),
    ...(snapshot.http_proxy_rules.length > 0 ? (['http'] as const) : []),
    ...(snapshot.l3_rules.length > 0 ? (['l3'] as const) : []),
    ...(snapshot.node.multiplex ? (['multiplex'] as const) : []),
  ]);
}

const keys = { tls: 'leaf', reality: 'masked', noise: 'noise' } as const;
const world: readonly FleetCommand[] = [
  ...['a', 'b'].map((name) => f.createNode(name)),
  f.createX25519('masked key'),
  f.createReality('masked', 'masked key', { server_names: ['one.example'] }),
  f.createX25519('noise'),
  f.createTlsCert('leaf', f.rotatedTo('leaf', { subject_alt_names: ['leaf.example'] })),
];
const hopOf = (node: string, { outer, security }: Pick<Hop, 'outer' | 'security'>, names: object = {}): Hop =>
  f.hop(node, 80, {
    outer,
    security,
    ...(security === 'raw' ? names : { credential_id: f.credentialId(keys[security]) }),
  });
const rows = transports.flatMap((row) => row.payloads.map((payload) => ({ ...row, payload })));
const label = ({ payload, outer, security }: (typeof rows)[number]) => `${payload} over ${outer} ${security}`;

describe('a rule needs the feature of its inbound and of its outbound', () => {
  it.each(rows.map((row) => [label(row), row] as const))('%s', (_, { payload, ...row }) => {
    for (const names of row.matchKind === 'sni' ? [{}, { server_names: ['one.example'] }] : [{}]) {
      const chain = f.createChain('c', [hopOf('a', row, names), hopOf('b', row)], { payload });
      const { fleet } = f.given(...world, chain, f.deployChain('c'));
      for (const name of ['a', 'b']) {
        const needed = needsOfNode(fleet, f.nodeId(name));
        expect(needed).toEqual(neededBy(compileNode(fleet, f.nodeId(name))));
        expect(needsOf(fleet, 'l4_chain', f.chainId('c'), 'deployed').get(f.nodeId(name))).toEqual(needed);
      }
    }
  });

  const reality = { public_key: f.publicKey('masked key'), server_name: 'one.example', short_id: '' };
  it.each<readonly [what: string, payload: Payload, upstream: object, needed: Feature]>([
    ['tls', 'tcp', { tls: f.upstreamTls }, 'tcp_tls'],
    ['reality over tcp', 'tcp', { reality: { ...reality, outer: 'tcp' } }, 'tcp_reality'],
    ['reality over quic, for tcp', 'tcp', { reality: { ...reality, outer: 'quic' } }, 'quic_reality'],
    ['reality over quic, for udp', 'udp', { reality: { ...reality, outer: 'quic' } }, 'quic_datagram'],
  ])('a target by %s, as an upstream and as an endpoint', (_, payload, upstream, needed) => {
    const hops = [f.hop('a', 80, { outer: payload })];
    for (const target of [{ upstream_id: f.upstreamId('up') }, { endpoint: 'up.example:443', ...upstream }]) {
      const chain = f.createChain('c', hops, { payload, target });
      const { fleet } = f.given(...world, f.createUpstream('up', upstream), chain, f.deployChain('c'));
      expect(needsOfNode(fleet, f.nodeId('a'))).toEqual(new Set([`${payload}_raw`, needed]));
      expect(neededBy(compileNode(fleet, f.nodeId('a')))).toEqual(new Set([`${payload}_raw`, needed]));
    }
  });

  it('in every fleet, so that no rule of any node needs what is not told', () => {
    fc.assert(
      fc.property(histories(), (moves) => {
        play(moves, {
          after(fleet) {
            for (const id of fleet.tables.node.ids()) {
              const missing = [...neededBy(compileNode(fleet, id))].filter((one) => !needsOfNode(fleet, id).has(one));
              expect(missing).toEqual([]);
            }
          },
        });
      }),
      { numRuns: 30 },
    );
  });
});

it('a draft is asked of its nodes as its deploy would ask it; what is disabled asks nothing', () => {
  const [chain, id] = [f.createChain('c', [f.hop('a', 80)]), f.chainId('c')];
  const draft = f.updateChain('c', { hops: [hopOf('b', { outer: 'quic', security: 'reality' })] });
  const { fleet, when } = f.given(...world, chain, f.deployChain('c'), draft);
  const shown = (which: 'current' | 'deployed') =>
    [...needsOf(fleet, 'l4_chain', id, which)].map(([node, needed]) => [node, ...needed]);
  expect(shown('current')).toEqual([[f.nodeId('b'), 'quic_reality', 'tcp_raw']]);
  expect(shown('deployed')).toEqual([[f.nodeId('a'), 'tcp_raw']]);
  when(f.updateChain('c', { enabled: false })).thenAccepted();
  for (const which of ['current', 'deployed'] as const)
    expect(shown(which).flatMap(([, ...needed]) => needed)).toEqual([]);
});

describe('an event asks', () => {
  const settings = (changes: object): FleetEvent => ({
    type: 'ConnectivityUpdated',
    data: { changes: changes as never },
  });
  const asked = (setup: readonly FleetCommand[], event: FleetEvent): readonly string[] => {
    const { fleet } = f.given(...world, ...setup);
    const needs = new Map<string, Set<Feature>>();
    addNeeds(needs, fleet, event);
    const nameOf = (id: string) => fleet.nameOf('node', id) ?? '';
    return [...needs].flatMap(([id, needed]) => [...needed].map((one) => `${nameOf(id)} ${one}`));
  };
  const on = f.settings({ multiplex: true, multiplex_port: 7443 });
  const overridden = f.settings({ nodes: [{ node_id: f.nodeId('a'), multiplex: true, multiplex_port: 7443 }] });
  const change = { from: null, to: null };
  const network = l3.createNetwork(
    'net',
    [l3.member('a', '10.0.0.1/24'), l3.member('b', '10.0.0.2/24')],
    [l3.tunnel('a', 'b')],
  );

  it.each<readonly [what: string, setup: readonly FleetCommand[], event: FleetEvent, asked: readonly string[]]>([
    ['every node for multiplex', [on], settings({ multiplex: change }), ['a multiplex', 'b multiplex']],
    ['one node for its own multiplex', [overridden], settings({ [`nodes.${f.nodeId('a')}`]: change }), ['a multiplex']],
    ['nothing for intervals', [on], settings({ heartbeat_interval_secs: change }), []],
    [
      'the nodes of a route for http',
      [f.createRoute('r', [f.routeHop('b', 80)])],
      { type: 'RouteCreated', data: { route_id: f.routeId('r') } } as never,
      ['b http'],
    ],
    [
      'the ends of tunnels for l3',
      [...l3.identity(), network],
      { type: 'L3NetworkCreated', data: { l3_network_id: network.id } } as never,
      ['a l3', 'b l3'],
    ],
  ])('%s', (_, setup, event, expected) => {
    expect([...asked(setup, event)].sort()).toEqual(expected);
  });
});

describe('warnings', () => {
  const subset = fc.subarray([...features]);
  const nodes = fc.array(fc.record({ needed: subset, says: subset, can: fc.constantFrom('confirm', 'route_state') }), {
    maxLength: 12,
  });

  it('name each node and feature that its agent lacks, and nothing else; 20 at most, the last of which counts the rest', () => {
    fc.assert(
      fc.property(nodes, (fleet) => {
        const needs = new Map(fleet.map(({ needed }, index) => [String(index), new Set(needed)]));
        const agentOf = (id: string) => {
          const { says = [], can = '' } = fleet[Number(id)] ?? {};
          return { agent_version: 'agent/1.0', features: [...says, can] };
        };
        const expected = fleet.flatMap(({ needed, says }, index) =>
          says.length === 0
            ? []
            : needed
                .filter((one) => !says.includes(one))
                .map((one) => `node ${index} runs agent 1.0, which cannot run ${one}`),
        );
        const told = warnings(needs, (id) => `node ${id}`, agentOf);
        if (expected.length <= 20) expect(told).toEqual(expected);
        else expect(told).toEqual([...expected.slice(0, 19), `and ${expected.length - 19} more like these`]);
      }),
    );
  });

  it.each([
    ['reference-agent/0.2.0', 'reference-agent 0.2.0'],
    [null, 'an agent without a version'],
    ['evil\n\u202e/x', 'evil   x'],
    ['v'.repeat(1024), 'v'.repeat(64)],
  ])('of an agent of version %j', (agent_version, words) => {
    const needs = new Map([['a', new Set(['l3'] as const)]]);
    const told = warnings(
      needs,
      () => 'relay-1',
      () => ({ agent_version, features: ['http'] }),
    );
    expect(told).toEqual([`relay-1 runs ${words}, which cannot run l3`]);
  });
});
