/** The port table of a node and the links from it (`docs/contract/rest.md#port-management`, `docs/contract/rest.md#nodes`). */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { intendedLinks, type IntendedLink } from '../../src/domain/port-table/intended-links.js';
import { intendedListeners, portRows } from '../../src/domain/port-table/port-table.js';
import * as f from '../support/fleet.js';
import { histories } from '../support/fleet-histories.js';
import { play } from '../support/fleet-play.js';

const rowsOn = ({ fleet }: f.Scenario, node: string) => portRows(fleet, f.nodeId(node));
const linksFrom = ({ fleet }: f.Scenario, node: string) => intendedLinks(fleet, f.nodeId(node));
const byDefault = ['reality', 'tls', 'noise', 'raw'];

describe('the port table', () => {
  it('has the saved policy of a listener, else the default order, and a row for a policy without routes', () => {
    const scenario = f.given(
      f.createNode('a'),
      f.createNode('b'),
      f.createChain('one', [f.hop('a', 443)]),
      f.createRoute('site', [f.routeHop('a', 80)]),
      f.savePolicy('a', 443, ['raw']),
      f.savePolicy('a', 443, ['tls'], { listen_addr: '10.0.0.1' }),
      f.savePolicy('a', 53, ['noise'], { transport: 'udp' }),
      f.savePolicy('b', 443, []),
    );
    const shown = rowsOn(scenario, 'a').map((row) => [
      `${row.transport} ${row.listenPort} ${row.listenAddr}`,
      row.policySaved,
      row.priorityOrder,
      row.routes.map(({ sourceLabel }) => sourceLabel),
    ]);
    expect(shown).toEqual([
      ['tcp 80 0.0.0.0', false, byDefault, ['route: site']],
      ['tcp 443 0.0.0.0', true, ['raw', 'reality', 'tls', 'noise'], ['one']],
      ['tcp 443 10.0.0.1', true, ['tls', 'reality', 'noise', 'raw'], []],
      ['udp 53 0.0.0.0', true, ['noise', 'reality', 'tls', 'raw'], []],
    ]);
    expect(rowsOn(scenario, 'b')).toEqual([
      {
        nodeId: f.nodeId('b'),
        transport: 'tcp',
        listenAddr: '0.0.0.0',
        listenPort: 443,
        priorityOrder: byDefault,
        policySaved: true,
        routes: [],
      },
    ]);
    expect(portRows(scenario.fleet, 'nowhere')).toEqual([]);
  });

  it('merges the routes of a shared listener, by source, match kind and value', () => {
    const names = (...server_names: string[]) => f.hop('a', 443, { server_names });
    const scenario = f.given(
      f.createNode('a'),
      f.createUpstream('web'),
      f.createChain('late', [names('z.example', 'b.example')]),
      f.createChain('up', [names('a.example')], { target: { upstream_id: f.upstreamId('web') } }),
      f.createChain('early', [names('c.example')]),
      f.createRoute('one', [f.routeHop('a', 443)], { host: 'one.example' }),
      f.createRoute('two', [f.routeHop('a', 443)], { host: 'one.example', path_prefix: '/x' }),
    );
    const [row, ...more] = rowsOn(scenario, 'a');
    expect(more).toEqual([]);
    expect(row?.routes.map((r) => `${r.source} ${r.matchKind} ${r.matchValue} ${r.sourceLabel} ${r.deployed}`)).toEqual(
      [
        'l4_chain default one.example/ route: one true',
        'l4_chain default one.example/x route: two true',
        'l4_chain sni b.example late false',
        'l4_chain sni c.example early false',
        'l4_chain sni z.example late false',
        'l4_upstream sni a.example web false',
      ],
    );
  });

  it('has the intended listeners of a random history and its policies, each key once', () => {
    fc.assert(
      fc.property(histories(), (moves) => {
        const { fleet } = play(moves);
        for (const id of fleet.tables.node.ids()) {
          const rows = portRows(fleet, id);
          const key = (row: { transport: string; listenPort: number; listenAddr: string }): string =>
            `${row.transport} ${row.listenPort} ${row.listenAddr}`;
          expect(new Set(rows.map(key)).size).toBe(rows.length);
          const withRoutes = rows.filter(({ routes }) => routes.length > 0);
          expect(withRoutes.map(({ priorityOrder: _, policySaved: __, ...listener }) => listener)).toEqual(
            intendedListeners(fleet, id),
          );
          const policies = [...fleet.tables.listener_policy.values()].filter(({ node_id }) => node_id === id);
          expect(rows.filter(({ policySaved }) => policySaved)).toHaveLength(policies.length);
        }
      }),
      { numRuns: 40 },
    );
  });
});

describe('the links from a node', () => {
  const link = (kind: 'l4_chain' | 'route', resourceId: string, to: string, ...endpoints: string[]) => ({
    fromNodeId: f.nodeId('a'),
    toNodeId: f.nodeId(to),
    kind,
    resourceId,
    endpoints,
  });
  const byKey = (links: readonly Pick<IntendedLink, 'toNodeId' | 'kind' | 'resourceId' | 'endpoints'>[]) =>
    [...links].sort((x, y) =>
      `${x.toNodeId}/${x.kind}/${x.resourceId}` < `${y.toNodeId}/${y.kind}/${y.resourceId}` ? -1 : 1,
    );

  it('are those of enabled chains and routes to their next hops, with the endpoints that are dialled', () => {
    const scenario = f.given(
      f.createNode('a'),
      f.createNode('b'),
      f.createNode('c', { address: null }),
      f.createChain('one', [f.hop('a', 80), f.hop('b', 81), f.hop('c', 82)]),
      f.createChain('off', [f.hop('a', 90), f.hop('b', 91)], { enabled: false }),
      f.createChain('last', [f.hop('b', 92), f.hop('a', 92)]),
      f.createRoute('site', [f.routeHop('a', 70), f.routeHop('b', 71)]),
      f.createRoute('closed', [f.routeHop('a', 72), f.routeHop('c', 73)], { enabled: false }),
    );
    expect(linksFrom(scenario, 'a')).toEqual(
      byKey([
        link('l4_chain', f.chainId('one'), 'b', 'b.example:81'),
        link('route', f.routeId('site'), 'b', 'b.example:71'),
      ]),
    );
    expect(linksFrom(scenario, 'b')).toMatchObject(
      byKey([
        { toNodeId: f.nodeId('c'), kind: 'l4_chain', resourceId: f.chainId('one'), endpoints: [] },
        { toNodeId: f.nodeId('a'), kind: 'l4_chain', resourceId: f.chainId('last'), endpoints: ['a.example:92'] },
      ]),
    );
    expect(linksFrom(scenario, 'c')).toEqual([]);
    expect(intendedLinks(scenario.fleet, 'nowhere')).toEqual([]);
  });

  it('are those of the current and of the deployed definition', () => {
    const scenario = f.given(
      f.createNode('a'),
      f.createNode('b'),
      f.createNode('c'),
      f.createChain('one', [f.hop('a', 80), f.hop('b', 81)]),
      f.deployChain('one'),
      f.updateChain('one', { hops: [f.hop('a', 80), f.hop('b', 82)] }),
    );
    const id = f.chainId('one');
    expect(linksFrom(scenario, 'a')).toEqual([link('l4_chain', id, 'b', 'b.example:82', 'b.example:81')]);
    scenario
      .when(f.updateChain('one', { hops: [f.hop('a', 80), f.hop('c', 82, { dial_addr: 'x.example' })] }))
      .thenAccepted();
    expect(linksFrom(scenario, 'a')).toEqual(
      byKey([link('l4_chain', id, 'b', 'b.example:81'), link('l4_chain', id, 'c', 'x.example:82')]),
    );
    scenario.when(f.updateChain('one', { enabled: false })).thenAccepted();
    expect(linksFrom(scenario, 'a')).toEqual([]);
  });
});
