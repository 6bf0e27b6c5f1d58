/** What a deployed chain compiles to on its nodes (`docs/contract/domain.md#l4-chain`, `docs/contract/wire.md#configuration`). */
import { describe, expect, it } from 'vitest';
import { compileNode } from '../../src/domain/compile/compile-node.js';
import { nodeKey, type NodeEvent } from '../../src/domain/node/node.js';
import { formatHostPort } from '../../src/kernel/host-port.js';
import * as f from '../support/fleet.js';

const compiled = (fleet: f.Scenario['fleet'], node: string) => compileNode(fleet, f.nodeId(node));

const endpointOf = (fleet: f.Scenario['fleet'], node: string): string | undefined => {
  const next = compiled(fleet, node).tcp_proxy_rules[0]?.outbound.next;
  return next?.kind === 'endpoint' ? next.endpoint : undefined;
};

describe('the compiler', () => {
  it('dials dial_addr, else the address, else the reported IPv4, else the reported IPv6 in brackets', () => {
    const { fleet, when } = f.given(
      f.createNode('a'),
      f.createNode('b'),
      f.createChain('one', [f.hop('a', 80), f.hop('b', 80, { dial_addr: '2001:db8::d' })]),
      f.deployChain('one'),
    );
    const dialled = () => compiled(fleet, 'a').tcp_proxy_rules[0]?.outbound.next;
    expect(dialled()).toEqual({ kind: 'endpoint', endpoint: '[2001:db8::d]:80' });
    when(f.updateChain('one', { hops: [f.hop('a', 80), f.hop('b', 80)] })).thenAccepted();
    when(f.deployChain('one')).thenAccepted();
    expect(dialled()).toEqual({ kind: 'endpoint', endpoint: 'b.example:80' });
    const report = { type: 'ReportNodeAddress', id: f.nodeId('b'), public_ipv6: '2001:db8::1' } as const;
    when({ ...report, public_ipv4: '203.0.113.1' }).thenAccepted();
    when(f.updateNode('b', { address: null })).thenAccepted();
    expect(dialled()).toEqual({ kind: 'endpoint', endpoint: '203.0.113.1:80' });
    when({ ...report, public_ipv4: null }).thenAccepted();
    expect(dialled()).toEqual({ kind: 'endpoint', endpoint: '[2001:db8::1]:80' });
  });

  // Which addresses these are is in test/kernel/dialable-addresses.test.ts.
  describe.each(['169.254.1.1', '::ffff:127.0.0.1'])('a reported %s', (reported) => {
    const report = {
      type: 'ReportNodeAddress',
      id: f.nodeId('b'),
      public_ipv4: reported,
      public_ipv6: null,
    } as const;
    const chain = f.createChain('one', [f.hop('a', 80), f.hop('b', 80)]);

    it('is shown and not dialled: a deploy has no address for the hop', () => {
      const { fleet, when } = f.given(f.createNode('a'), f.createNode('b', { address: null }), chain);
      when(report).thenAccepted();
      expect(fleet.get(nodeKey, f.nodeId('b'))?.public_ipv4).toBe(reported);
      when(f.deployChain('one')).thenRefused('conflict', 'hops[1].node_id', '"b"');
      when({ ...report, public_ipv6: '2001:db8::1' }).thenAccepted();
      when(f.deployChain('one')).thenAccepted();
      expect(endpointOf(fleet, 'a')).toBe('[2001:db8::1]:80');
    });

    it('does not replace the last address by which a live chain dials the node', () => {
      const { fleet, when } = f.given(f.createNode('a'), f.createNode('b', { address: null }), chain);
      when({ ...report, public_ipv4: '203.0.113.1' }).thenAccepted();
      when(f.deployChain('one')).thenAccepted();
      when(report).thenRefused('conflict', 'node "b"', 'l4_chain "one"');
      expect(endpointOf(fleet, 'a')).toBe('203.0.113.1:80');
    });

    it('is dialled when the operator says so, as address or as dial_addr', () => {
      const { fleet, when } = f.given(f.createNode('a'), f.createNode('b', { address: reported }), chain);
      when(f.deployChain('one')).thenAccepted();
      expect(endpointOf(fleet, 'a')).toBe(formatHostPort({ host: reported, port: 80 }));
      when(f.updateChain('one', { hops: [f.hop('a', 80), f.hop('b', 81, { dial_addr: reported })] })).thenAccepted();
      when(f.updateNode('b', { address: 'b.example' })).thenAccepted();
      when(f.deployChain('one')).thenAccepted();
      expect(endpointOf(fleet, 'a')).toBe(formatHostPort({ host: reported, port: 81 }));
    });
  });

  it('is not dialled by a chain of an older log either: its dialler has no rule, until an address is known', () => {
    const { fleet, when } = f.given(
      f.createNode('a'),
      f.createNode('b'),
      f.createNode('c'),
      f.createChain('one', [f.hop('a', 80), f.hop('b', 80), f.hop('c', 80)]),
      f.deployChain('one'),
    );
    // What earlier releases accepted.
    const moved = (public_ipv4: string): NodeEvent => ({
      type: 'NodeReportedAddressChanged',
      data: {
        node_id: f.nodeId('b'),
        public_ipv4: { from: null, to: public_ipv4 },
        public_ipv6: { from: null, to: null },
      },
    });
    const address: NodeEvent = {
      type: 'NodeUpdated',
      data: { node_id: f.nodeId('b'), changes: { address: { from: 'b.example', to: null } } },
    };
    f.append(fleet, moved('127.0.0.1'));
    f.append(fleet, address);
    expect(compiled(fleet, 'a').tcp_proxy_rules).toEqual([]);
    expect(compiled(fleet, 'b').tcp_proxy_rules).toHaveLength(1);
    expect(compiled(fleet, 'c').tcp_proxy_rules).toHaveLength(1);
    expect([...f.append(fleet, moved('203.0.113.9'))]).toEqual([f.nodeId('a')]);
    expect(endpointOf(fleet, 'a')).toBe('203.0.113.9:80');
    when(f.updateNode('b', { address: 'b.example' })).thenAccepted();
    expect(endpointOf(fleet, 'a')).toBe('b.example:80');
  });

  it('orders rules by port, address as text and rule id, whatever the order of the deploys', () => {
    const chains = [
      f.createChain('p90', [f.hop('a', 90)]),
      f.createChain('x', [f.hop('a', 80, { listen_addr: '10.0.0.9' })]),
      f.createChain('y', [f.hop('a', 80, { listen_addr: '10.0.0.10' })]),
      f.createChain('u', [f.hop('a', 9, { server_names: ['u.example'] })]),
      f.createChain('v', [f.hop('a', 9, { server_names: ['v.example'] })]),
    ];
    const rules = (order: typeof chains) => {
      const { fleet } = f.given(f.createNode('a'), ...order, ...order.map(({ name }) => f.deployChain(name)));
      return compiled(fleet, 'a').tcp_proxy_rules.map(
        (rule) => `${rule.listen_port} ${rule.listen_addr} ${rule.rule_id}`,
      );
    };
    const sameKey = ['u', 'v'].map((name) => `9 0.0.0.0 ${f.chainId(name)}/0`).sort();
    const expected = [
      ...sameKey,
      `80 10.0.0.10 ${f.chainId('y')}/0`,
      `80 10.0.0.9 ${f.chainId('x')}/0`,
      `90 0.0.0.0 ${f.chainId('p90')}/0`,
    ];
    expect(rules(chains)).toEqual(expected);
    expect(rules(chains.toReversed())).toEqual(expected);
  });

  it('lists an upstream of two chains once, also when it is disabled', () => {
    const target = { upstream_id: f.upstreamId('up') };
    const { fleet } = f.given(
      f.createNode('a'),
      f.createUpstream('up'),
      f.createChain('one', [f.hop('a', 80)], { target }),
      f.createChain('two', [f.udpHop('a', 80)], { target }),
      f.deployChain('one'),
      f.deployChain('two'),
      f.updateUpstream('up', { enabled: false }),
    );
    expect(compiled(fleet, 'a').upstream_clusters).toMatchObject([{ name: f.upstreamId('up'), enabled: false }]);
    expect(compiled(fleet, 'a').udp_rules).toMatchObject([
      {
        mode: 'RAW',
        noise_private_key: null,
        outbound: { transport_profile: { payload: 'UDP', outer: 'UDP', security: 'RAW' } },
      },
    ]);
  });

  it('uses only deployed definitions of enabled chains', () => {
    const { fleet, when } = f.given(f.createNode('a'), f.createNode('b'), f.createChain('one', [f.hop('a', 80)]));
    const ports = (node: string) => compiled(fleet, node).tcp_proxy_rules.map((rule) => rule.listen_port);
    expect(ports('a')).toEqual([]);
    when(f.deployChain('one')).thenAccepted();
    when(f.updateChain('one', { hops: [f.hop('b', 81)] })).thenAccepted();
    expect([ports('a'), ports('b')]).toEqual([[80], []]);
    when(f.updateChain('one', { enabled: false })).thenAccepted();
    expect([ports('a'), ports('b')]).toEqual([[], []]);
  });

  it('gives an unknown node no rules and generation 0', () => {
    const { fleet } = f.given(f.settings({ multiplex_port: 5 }));
    expect(compiled(fleet, 'nowhere')).toMatchObject({
      generation: 0,
      tcp_proxy_rules: [],
      udp_rules: [],
      upstream_clusters: [],
    });
  });
});
