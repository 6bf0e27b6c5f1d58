/** Invariants of the fleet: unique names, no dangling references, rules that lead somewhere, indexes that match the state. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Hop } from '../../src/domain/chain/chain.js';
import { emptyFleet, type Fleet } from '../../src/domain/fleet/fleet.js';
import { resourceTypes, type FleetCommand } from '../../src/domain/fleet/resources.js';
import { captureFleet, encodeFleet, restoreFleet } from '../../src/domain/fleet/checkpoint.js';
import { compileNode } from '../../src/domain/compile/compile-node.js';
import type { NodeSnapshot } from '../../src/domain/snapshot/snapshot.js';
import { perform } from '../support/fleet.js';
import { dumpIndexes } from '../support/fleet-dump.js';
import { histories } from '../support/fleet-histories.js';
import { play } from '../support/fleet-play.js';

function expectUniqueNames(fleet: Fleet): void {
  for (const type of resourceTypes) {
    // A join token that has ended holds no name: `test/rest/join-tokens.test.ts`.
    if (type === 'join_token') continue;
    const names = [...fleet.tables[type].values()].map(({ name }) => name.normalize('NFC').toLowerCase());
    expect(new Set(names).size).toBe(names.length);
  }
}

function expectNoDanglingReferences(fleet: Fleet): void {
  for (const chain of fleet.tables.l4_chain.values()) {
    for (const definition of [chain, ...(chain.deployed === null ? [] : [chain.deployed])]) {
      const nodes = definition.hops.map((hop) => hop.node_id);
      expect(new Set(nodes).size, 'a node at most once in a chain').toBe(nodes.length);
      for (const id of nodes) expect(fleet.tables.node.has(id)).toBe(true);
      expectFittingCredentials(fleet, definition.hops);
      if (!('upstream_id' in definition.target)) continue;
      const upstream = fleet.tables.l4_upstream.get(definition.target.upstream_id);
      expect(upstream).toBeDefined();
      if (definition.payload === 'udp') expect(upstream?.tls).toBeNull();
    }
  }
  for (const { hops } of fleet.tables.route.values()) {
    const nodes = hops.map((hop) => hop.node_id);
    expect(new Set(nodes).size, 'a node at most once in a route').toBe(nodes.length);
    for (const id of nodes) expect(fleet.tables.node.has(id)).toBe(true);
  }
  for (const { node_id } of fleet.tables.listener_policy.values()) expect(fleet.tables.node.has(node_id)).toBe(true);
  expectSoundNetworks(fleet);
  for (const id of Object.keys(fleet.singletons.connectivity.value.nodes)) expect(fleet.tables.node.has(id)).toBe(true);
  for (const id of fleet.tables.node.ids()) expect(fleet.touched.has(id)).toBe(true);
  expect(fleet.touched.size).toBe(fleet.tables.node.size);
}

const keyTypeOf = { raw: undefined, tls: 'tls_cert', reality: 'reality', noise: 'x25519' } as const;

/** The credential of each hop has the right type and the names that the hop uses; a dialled hop has an exact one. */
function expectFittingCredentials(fleet: Fleet, hops: readonly Hop[]): void {
  for (const [index, { security, credential_id, server_names = [] }] of hops.entries()) {
    const credential = fleet.tables.credential.get(credential_id ?? '');
    expect(credential?.key_type).toBe(keyTypeOf[security]);
    if (security !== 'tls' && security !== 'reality') continue;
    const own = security === 'tls' ? credential?.certificate?.subject_alt_names : credential?.server_names;
    if (security === 'reality') expect(own).toEqual(expect.arrayContaining([...server_names]));
    const names = server_names.length > 0 ? server_names : (own ?? []);
    expect(names.length).toBeGreaterThan(0);
    if (index > 0) expect(names.some((name) => !name.startsWith('*.'))).toBe(true);
  }
}

/** Every outbound has an endpoint or a cluster, and exactly the clusters and certificates that rules use are there. */
function expectRulesThatLead(fleet: Fleet): void {
  for (const id of fleet.tables.node.ids()) {
    const snapshot = compileNode(fleet, id);
    const policies = [...fleet.tables.listener_policy.values()].filter(({ node_id }) => node_id === id);
    expect(snapshot.listener_policies).toHaveLength(policies.length);
    const clusters = new Set(snapshot.upstream_clusters.map(({ name }) => name));
    const used = new Set<string>();
    for (const rule of [...snapshot.tcp_proxy_rules, ...snapshot.udp_rules, ...snapshot.quic_rules]) {
      const { next } = rule.outbound;
      if (next.kind === 'endpoint') expect(next.endpoint).toMatch(/^.+:\d+$/);
      else used.add(next.name);
    }
    for (const rule of snapshot.http_proxy_rules) {
      used.add(rule.upstream_cluster);
      expect(rule.upstream_cluster, 'each rule of a route has its own cluster').toBe(rule.rule_id);
    }
    for (const { endpoints } of snapshot.upstream_clusters) {
      for (const endpoint of endpoints) expect(endpoint).toMatch(/^.+:\d+$/);
    }
    expect([...used].sort()).toEqual([...clusters].sort());
    for (const rule of [...snapshot.tcp_proxy_rules, ...snapshot.quic_rules]) {
      expect(rule.upstream_tls_spki_pins_sha256.length > 0).toBe(rule.outbound.tls);
    }
    const certificates = snapshot.tls_certificates.map(({ credential_id }) => credential_id);
    const terminating = new Set(
      snapshot.tcp_proxy_rules.map((rule) => rule.tls_credential_id).filter((one) => one !== ''),
    );
    expect(certificates).toEqual([...terminating].sort());
    expectEveryHopHasItsRule(fleet, snapshot);
    expectBothEndsOfTunnels(fleet, snapshot);
  }
}

/** Nothing that a live chain lacks, such as a key, has left a hop without its rule. */
function expectEveryHopHasItsRule(fleet: Fleet, snapshot: NodeSnapshot): void {
  const { node_id: nodeId, tcp_proxy_rules, udp_rules, quic_rules } = snapshot;
  const compiled = [...tcp_proxy_rules, ...udp_rules, ...quic_rules].map(({ rule_id }) => rule_id);
  const live = [...fleet.tables.l4_chain.values()].flatMap(({ id, enabled, deployed }) =>
    (enabled ? (deployed?.hops ?? []) : []).flatMap(({ node_id }, at) => (node_id === nodeId ? [`${id}/${at}`] : [])),
  );
  expect(compiled.sort()).toEqual(live.sort());
}

/** Members, tunnels and the credential of networks fit each other; numbers are unique, and names of interfaces on a node. */
function expectSoundNetworks(fleet: Fleet): void {
  const networks = [...fleet.tables.l3_network.values()];
  const distinct = (values: readonly unknown[]): boolean => new Set(values).size === values.length;
  const live = networks.filter(({ enabled }) => enabled);
  const interfaces = live.flatMap(({ members }) => members.map((one) => `${one.node_id} ${one.interface_name}`));
  const unsound = networks.filter(({ members, tunnels, credential_id, server_name }) => {
    const credential = fleet.tables.credential.get(credential_id);
    const nodes = members.map(({ node_id }) => node_id);
    const hosts = members.flatMap(({ addresses }) => addresses.map((cidr) => cidr.slice(0, cidr.indexOf('/'))));
    const betweenMembers = tunnels.every(
      ({ listener_node_id: one, connector_node_id: other }) =>
        one !== other && nodes.includes(one) && nodes.includes(other),
    );
    return !(
      credential?.key_type === 'reality' &&
      credential.server_names.includes(server_name) &&
      nodes.every((id) => fleet.tables.node.has(id)) &&
      betweenMembers &&
      [nodes, hosts, tunnels.map(({ context_id }) => context_id)].every(distinct)
    );
  });
  expect(unsound).toEqual([]);
  expect([networks.map(({ network_id }) => network_id), interfaces].every(distinct)).toBe(true);
}

/** Each end of a live tunnel has its rule, and a connector has somebody to dial. */
function expectBothEndsOfTunnels(fleet: Fleet, { node_id: nodeId, l3_rules }: NodeSnapshot): void {
  const live = [...fleet.tables.l3_network.values()].flatMap(({ id, enabled, tunnels }) =>
    (enabled ? tunnels : []).flatMap(({ context_id, listener_node_id, connector_node_id }) => [
      ...(listener_node_id === nodeId ? [`${id}/${context_id}/listener`] : []),
      ...(connector_node_id === nodeId ? [`${id}/${context_id}/connector`] : []),
    ]),
  );
  expect(l3_rules.map(({ rule_id }) => rule_id)).toEqual(live.sort());
  const wrong = l3_rules.filter(({ role, local_endpoint, peer_endpoint, reality_inbound, reality_outbound }) => {
    const [given, other] = role === 'LISTENER' ? [local_endpoint, peer_endpoint] : [peer_endpoint, local_endpoint];
    const keys = [reality_inbound !== null, reality_outbound !== null];
    return !/^.+:\d+$/.test(given) || other !== '' || keys[role === 'LISTENER' ? 0 : 1] !== true || keys[0] === keys[1];
  });
  expect(wrong).toEqual([]);
}

describe('after every command of a random history', () => {
  it('names are unique, references exist and every rule has an endpoint or a cluster', () => {
    fc.assert(
      fc.property(histories(), (moves) => {
        play(moves, {
          after(fleet) {
            expectUniqueNames(fleet);
            expectNoDanglingReferences(fleet);
            expectRulesThatLead(fleet);
          },
        });
      }),
      { numRuns: 20 },
    );
  });

  it('the indexes equal those built from the state alone', () => {
    fc.assert(
      fc.property(histories(80), (moves) => {
        play(moves, {
          after(fleet) {
            const restored = restoreFleet(Buffer.concat([...encodeFleet(captureFleet(fleet))]));
            expect(dumpIndexes(restored)).toBe(dumpIndexes(fleet));
          },
        });
      }),
      { numRuns: 15 },
    );
  });

  it('the indexes are empty once everything is deleted', () => {
    fc.assert(
      fc.property(histories(), (moves) => {
        const { fleet } = play(moves);
        for (const id of Array.from(fleet.tables.l4_chain.ids()))
          expectWritten(fleet, { type: 'DeleteChain', id, ifMatch: undefined });
        for (const id of Array.from(fleet.tables.route.ids()))
          expectWritten(fleet, { type: 'DeleteRoute', id, ifMatch: undefined });
        for (const id of Array.from(fleet.tables.l3_network.ids()))
          expectWritten(fleet, { type: 'DeleteL3Network', id, ifMatch: undefined });
        for (const id of Array.from(fleet.tables.l4_upstream.ids()))
          expectWritten(fleet, { type: 'DeleteUpstream', id, ifMatch: undefined });
        // What a REALITY identity stands over goes last.
        for (const { id } of [...fleet.tables.credential.values()].filter((one) => one.key_type !== 'x25519'))
          expectWritten(fleet, { type: 'DeleteCredential', id, ifMatch: undefined });
        for (const id of Array.from(fleet.tables.credential.ids()))
          expectWritten(fleet, { type: 'DeleteCredential', id, ifMatch: undefined });
        for (const id of Array.from(fleet.tables.node.ids()))
          expectWritten(fleet, { type: 'DeleteNode', id, ifMatch: undefined });
        expect(dumpIndexes(fleet)).toBe(dumpIndexes(emptyFleet()));
        expect(fleet.singletons.connectivity.value.nodes).toEqual({});
        expect(fleet.tables.listener_policy.size, 'policies are deleted with their nodes').toBe(0);
      }),
      { numRuns: 20 },
    );
  });

  it('the version of a resource is the number of its events', () => {
    fc.assert(
      fc.property(histories(), (moves) => {
        const { fleet, steps } = play(moves);
        const events = new Map<string, number>();
        for (const { performed } of steps) {
          for (const event of performed.kind === 'written' ? performed.events : []) {
            const id = Object.entries(event.data).find(([key]) => key.endsWith('_id'))?.[1] ?? 'connectivity';
            events.set(String(id), (events.get(String(id)) ?? 0) + 1);
          }
        }
        // A policy has the id of its listener, so it may come back, above the version of those that were there.
        for (const type of resourceTypes.filter((one) => one !== 'listener_policy')) {
          for (const { id, version } of fleet.tables[type].values()) expect(version).toBe(events.get(id));
        }
      }),
      { numRuns: 20 },
    );
  });

  it('most commands are accepted, and each kind at least once, so that these tests prove something', () => {
    const outcomes = { refused: 0, accepted: 0 };
    const written = new Set<string>();
    for (const moves of fc.sample(histories(), { seed: 7, numRuns: 200 })) {
      for (const { command, performed } of play(moves).steps) {
        outcomes[performed.kind === 'refused' ? 'refused' : 'accepted'] += 1;
        if (performed.kind === 'written') written.add(command.type);
      }
    }
    expect(outcomes.accepted).toBeGreaterThan(3 * outcomes.refused);
    expect(outcomes.refused).toBeGreaterThan(100);
    expect(written.size).toBe(42);
  });
});

function expectWritten(fleet: Fleet, command: FleetCommand): void {
  const performed = perform(fleet, command);
  expect(performed.kind, JSON.stringify(performed)).toBe('written');
}
