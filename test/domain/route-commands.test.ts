/** Commands about legacy routes, what they compile to and whom they touch (`docs/contract/domain.md#legacy-route`). */
import { describe, expect, it } from 'vitest';
import { describeCommand } from '../../src/domain/audit/describe.js';
import { compileNode } from '../../src/domain/compile/compile-node.js';
import type { FleetCommand } from '../../src/domain/fleet/resources.js';
import { intendedListeners } from '../../src/domain/port-table/port-table.js';
import * as f from '../support/fleet.js';

const world = (...more: readonly FleetCommand[]): f.Scenario =>
  f.given(
    f.createNode('a'),
    f.createNode('b'),
    f.createNode('c'),
    f.createRoute('site', [f.routeHop('a', 80), f.routeHop('b', 81)], { host: 'www.example', path_prefix: '/api' }),
    ...more,
  );

const compiled = ({ fleet }: f.Scenario, node: string) => {
  const { http_proxy_rules, upstream_clusters } = compileNode(fleet, f.nodeId(node));
  return { rules: http_proxy_rules, clusters: upstream_clusters };
};
const cluster = (name: string, endpoint: string) => ({
  name,
  endpoints: [endpoint],
  server_names: [],
  enabled: true,
  health_check_interval_ms: null,
});

describe('a route', () => {
  it('is live as soon as it is saved: each hop has a rule and a cluster that leads to the next one, or to the backend', () => {
    const scenario = world();
    const id = f.routeId('site');
    const rule = (index: number, listen_port: number) => ({
      rule_id: `${id}/${index}`,
      origin: { resource_type: 'route', resource_id: id, resource_name: 'site', hop_index: index },
      listen_addr: '0.0.0.0',
      listen_port,
      host: 'www.example',
      path_prefix: '/api',
      upstream_cluster: `${id}/${index}`,
    });
    expect(compiled(scenario, 'a')).toEqual({
      rules: [rule(0, 80)],
      clusters: [cluster(`${id}/0`, 'b.example:81')],
    });
    expect(compiled(scenario, 'b')).toEqual({
      rules: [rule(1, 81)],
      clusters: [cluster(`${id}/1`, '192.0.2.8:8080')],
    });
    expect(compiled(scenario, 'c')).toEqual({ rules: [], clusters: [] });
  });

  it('is in no snapshot, claims nothing and intends nothing while it is disabled', () => {
    const scenario = world(f.updateRoute('site', { enabled: false }));
    expect(compiled(scenario, 'a')).toEqual({ rules: [], clusters: [] });
    expect(intendedListeners(scenario.fleet, f.nodeId('a'))).toEqual([]);
    scenario.when(f.createChain('other', [f.hop('a', 80), f.hop('b', 81)])).thenAccepted();
    scenario
      .when(f.updateRoute('site', { enabled: true }))
      .thenRefused('conflict', 'hops[0].listen_port', 'port 80 on node "a"', 'l4_chain "other"');
    scenario.when({ type: 'DeleteChain', id: f.chainId('other'), ifMatch: undefined }).thenAccepted();
    scenario.when(f.updateRoute('site', { enabled: true })).thenAccepted();
    expect(compiled(scenario, 'a').rules).toHaveLength(1);
  });

  it('may be saved without an address to dial only while it is disabled', () => {
    const noAddress = f.given(f.createNode('a'), f.createNode('b', { address: null }));
    const hops = [f.routeHop('a', 80), f.routeHop('b', 81)];
    const missing = ['hops[1].node_id', 'the node "b" has no known address', 'set its address, or'] as const;
    noAddress.when(f.createRoute('site', hops)).thenRefused('conflict', ...missing);
    noAddress.when(f.createRoute('site', hops, { enabled: false })).thenAccepted();
    noAddress.when(f.updateRoute('site', { enabled: true })).thenRefused('conflict', ...missing);
    const report = { type: 'ReportNodeAddress', id: f.nodeId('b'), public_ipv6: '2001:db8::7' } as const;
    noAddress.when({ ...report, public_ipv4: '127.0.0.1' }).thenAccepted();
    noAddress.when(f.updateRoute('site', { enabled: true })).thenAccepted();
    expect(compiled(noAddress, 'a').clusters).toMatchObject([{ endpoints: ['[2001:db8::7]:81'] }]);
    // The first hop is dialled by nobody of the fleet.
    noAddress.when(f.updateRoute('site', { hops: [f.routeHop('b', 81), f.routeHop('a', 80)] })).thenAccepted();
  });

  it('keeps the last address of a node that it dials, while it is enabled', () => {
    const { when } = world();
    when(f.updateNode('b', { address: null })).thenRefused('conflict', 'node "b"', 'route "site"', f.routeId('site'));
    when(f.updateNode('a', { address: null })).thenAccepted();
    when(f.updateRoute('site', { enabled: false })).thenAccepted();
    when(f.updateNode('b', { address: null })).thenAccepted();
  });

  it('has no rule on a hop whose next one has lost its address in an older log', () => {
    const scenario = world();
    f.append(scenario.fleet, {
      type: 'NodeUpdated',
      data: { node_id: f.nodeId('b'), changes: { address: { from: 'b.example', to: null } } },
    });
    expect(compiled(scenario, 'a')).toEqual({ rules: [], clusters: [] });
    expect(compiled(scenario, 'b').rules).toHaveLength(1);
    const [listener] = intendedListeners(scenario.fleet, f.nodeId('a'));
    expect(listener?.routes).toMatchObject([{ nextHop: '' }]);
  });

  it('is shown in the port table as a chain whose label says that it is a route, always deployed', () => {
    const scenario = world();
    const route = (nextHop: string) => ({
      source: 'l4_chain',
      sourceLabel: 'route: site',
      resourceType: 'route',
      resourceName: 'site',
      matchKind: 'default',
      matchValue: 'www.example/api',
      nextHop,
      resourceId: f.routeId('site'),
      deployed: true,
    });
    const listener = { transport: 'tcp', listenAddr: '0.0.0.0' };
    const [a, b] = [f.nodeId('a'), f.nodeId('b')];
    expect([...intendedListeners(scenario.fleet, a), ...intendedListeners(scenario.fleet, b)]).toEqual([
      { nodeId: a, ...listener, listenPort: 80, routes: [route('b.example:81')] },
      { nodeId: b, ...listener, listenPort: 81, routes: [route('192.0.2.8:8080')] },
    ]);
  });
});

describe('a route is refused', () => {
  it('for a node twice, a node that does not exist and a name that is taken; each refusal names the field', () => {
    const { when } = world();
    when(f.createRoute('x', [f.routeHop('a', 90), f.routeHop('b', 90), f.routeHop('a', 91)])).thenRefused(
      'invalid_request',
      'hops[2].node_id: expected each node at most once in a route; this one is already hops[0]',
    );
    when(f.createRoute('x', [f.routeHop('a', 90), f.routeHop('nowhere', 90)])).thenRefused(
      'invalid_request',
      'hops[1].node_id',
      f.nodeId('nowhere'),
    );
    when(f.createRoute('SITE', [f.routeHop('c', 90)])).thenRefused('conflict', 'name: "SITE"', 'route');
    when(f.createRoute('other', [f.routeHop('c', 90)])).thenAccepted();
    when(f.updateRoute('other', { name: 'Site' })).thenRefused('conflict', 'name: "Site"');
    when(f.updateRoute('other', { hops: [f.routeHop('nowhere', 90)] })).thenRefused('invalid_request', 'hops[0]');
    when(f.updateRoute('nothing', { name: 'x' })).thenRefused('not_found', 'route');
    when(f.deleteRoute('nothing')).thenRefused('not_found', 'route');
  });

  it('when If-Match does not match', () => {
    const { when } = world();
    const update = { type: 'UpdateRoute', id: f.routeId('site'), backend: 'x.example:1' } as const;
    when({ ...update, ifMatch: [2] }).thenRefused('precondition_failed', '"1"');
    when({ ...update, ifMatch: [1] }).thenAccepted();
    when({ type: 'DeleteRoute', id: f.routeId('site'), ifMatch: [1] }).thenRefused('precondition_failed', '"2"');
    when({ type: 'DeleteRoute', id: f.routeId('site'), ifMatch: '*' }).thenAccepted();
  });

  it('for a node that it names, which cannot be deleted, whether it is enabled or not', () => {
    const { when } = world(f.updateRoute('site', { enabled: false }));
    const remove = { type: 'DeleteNode', id: f.nodeId('a'), ifMatch: undefined } as const;
    when(remove).thenRefused('conflict', 'the node "a" is still used by route "site"');
    when(f.updateRoute('site', { hops: [f.routeHop('b', 81)] })).thenAccepted();
    when(remove).thenAccepted();
  });
});

describe('an edit of a route', () => {
  it('writes what changed, with both values, and nothing when nothing does', () => {
    const { when } = world();
    when(f.updateRoute('site', { backend: 'new.example:1', path_prefix: '/api', enabled: true })).thenEvents({
      type: 'RouteUpdated',
      data: {
        route_id: f.routeId('site'),
        changes: { backend: { from: '192.0.2.8:8080', to: 'new.example:1' } },
      },
    });
    when(f.updateRoute('site', { backend: 'new.example:1' })).thenNothing();
  });

  it('is an audit entry with one change per field of a hop; a create and a delete list every field', () => {
    const scenario = world();
    const entry = (command: FleetCommand) => {
      const performed = f.perform(scenario.fleet, command);
      if (performed.kind !== 'written') throw new Error(JSON.stringify(performed));
      return describeCommand(performed.command);
    };
    const edited = entry(f.updateRoute('site', { hops: [f.routeHop('a', 80), f.routeHop('c', 82)] }));
    expect(edited).toMatchObject({ action: 'route.update', resource: { type: 'route', id: f.routeId('site') } });
    expect(edited?.changes).toEqual([
      { path: 'hops[1].node_id', before: f.nodeId('b'), after: f.nodeId('c') },
      { path: 'hops[1].listen_port', before: 81, after: 82 },
    ]);
    const fewer = entry(f.updateRoute('site', { hops: [f.routeHop('c', 82)] }));
    expect(fewer?.changes).toMatchObject([{ path: 'hops' }]);
    const fields = ['name', 'host', 'path_prefix', 'enabled', 'hops', 'backend'];
    const deleted = entry(f.deleteRoute('site'));
    expect(deleted?.action).toBe('route.delete');
    expect(deleted?.changes.map(({ path, after }) => [path, after])).toEqual(fields.map((path) => [path, null]));
    const created = entry(f.createRoute('again', [f.routeHop('a', 80)]));
    expect(created?.changes.map(({ path, before }) => [path, before])).toEqual(fields.map((path) => [path, null]));
  });

  it.each<[string, FleetCommand, readonly string[]]>([
    ['of the backend touches the last hop', f.updateRoute('site', { backend: 'x.example:1' }), ['b']],
    ['of the host touches all', f.updateRoute('site', { host: 'x.example' }), ['a', 'b']],
    ['of the path prefix touches all', f.updateRoute('site', { path_prefix: '/x' }), ['a', 'b']],
    ['of the name, which rules carry, touches all', f.updateRoute('site', { name: 'renamed' }), ['a', 'b']],
    ['that disables it touches all', f.updateRoute('site', { enabled: false }), ['a', 'b']],
    [
      'of the hops touches the old and the new ones',
      f.updateRoute('site', { hops: [f.routeHop('a', 80), f.routeHop('c', 80)] }),
      ['a', 'b', 'c'],
    ],
    ['while disabled touches none', f.updateRoute('off', { host: 'x.example', backend: 'x.example:1' }), []],
    ['that enables it touches its nodes', f.updateRoute('off', { enabled: true }), ['c']],
    ['is a delete: touches all', f.deleteRoute('site'), ['a', 'b']],
    ['is a delete of a disabled one: touches none', f.deleteRoute('off'), []],
    ['is a create: touches its nodes', f.createRoute('more', [f.routeHop('c', 99)]), ['c']],
    ['is a create of a disabled one: touches none', f.createRoute('m', [f.routeHop('c', 9)], { enabled: false }), []],
    ['of the address of a node that it dials touches the dialler', f.updateNode('b', { address: 'm.example' }), ['a']],
    ['of the address of its first node touches none', f.updateNode('a', { address: 'm.example' }), []],
  ])('%s', (_, command, expected) => {
    const { fleet } = world(f.createRoute('off', [f.routeHop('c', 80)], { enabled: false }));
    const [touched] = f.performAll(fleet, [command]);
    expect([...touched!].sort()).toEqual(expected.map(f.nodeId).sort());
  });
});

describe('on one listener', () => {
  const on = (name: string, host: string, path_prefix = '/', addr = '0.0.0.0'): FleetCommand =>
    f.createRoute(name, [f.routeHop('a', 443, addr)], { host, path_prefix });
  const names = (...server_names: string[]) => f.hop('a', 443, { server_names });

  it('routes with distinct hosts and path prefixes live together', () => {
    const { when } = f.given(f.createNode('a'), on('one', 'a.example'));
    when(on('two', 'b.example')).thenAccepted();
    when(on('three', 'a.example', '/x')).thenAccepted();
    when(on('four', 'a.example', '/x')).thenRefused('conflict', 'hops[0].listen_port', 'route "three"');
    when(f.updateRoute('two', { host: 'a.example' })).thenRefused('conflict', 'route "one"');
    when(f.updateRoute('three', { path_prefix: '/y' })).thenAccepted();
    when(on('four', 'a.example', '/x')).thenAccepted();
  });

  it('two path prefixes that differ only in a slash at the end are the same: agents would reject both', () => {
    const { when } = f.given(f.createNode('a'), on('one', 'a.example'), on('two', 'a.example', '/x/'));
    when(on('three', 'a.example', '/x')).thenRefused('conflict', 'hops[0].listen_port', 'route "two"');
    when(on('three', 'a.example', '//')).thenRefused('conflict', 'route "one"');
    when(f.updateRoute('two', { path_prefix: '/x' })).thenAccepted();
  });

  it('they are the RAW fallback: beside named routes, not beside a RAW one or one that shares with nothing', () => {
    const { when } = f.given(f.createNode('a'), on('one', 'a.example'));
    when(f.createChain('named', [names('a.example')])).thenAccepted();
    when(f.createChain('raw', [f.hop('a', 443)])).thenRefused('conflict', 'route "one"');
    when(f.createChain('fake', [f.udpHop('a', 443, { outer: 'fake_tcp' })])).thenRefused('conflict', 'route "one"');
    when(f.createChain('udp', [f.udpHop('a', 443)])).thenAccepted();
    when(f.deleteRoute('one')).thenAccepted();
    when(f.createChain('raw', [f.hop('a', 443)])).thenAccepted();
    when(on('two', 'b.example')).thenRefused('conflict', 'l4_chain "raw"');
  });

  it('they collide with what is on an overlapping address, and with a multiplex port', () => {
    const { when } = f.given(f.createNode('a'), on('one', 'a.example', '/', '10.0.0.1'));
    when(on('two', 'b.example')).thenRefused('conflict', 'route "one"', 'on 10.0.0.1');
    when(on('two', 'b.example', '/', '10.0.0.2')).thenAccepted();
    when(f.settings({ multiplex: true, multiplex_port: 443 })).thenRefused('conflict', 'port 443', 'route "');
    when(f.settings({ multiplex: true, multiplex_port: 444 })).thenAccepted();
    when(f.createRoute('three', [f.routeHop('a', 444)])).thenRefused('conflict', 'the multiplex port of node "a"');
  });
});
