/**
 * Events that no decision of this service writes: about a resource that does not exist, and the creation of one that does.
 * The fold passes over them and touches nobody (`docs/contract/domain.md#commands-and-events`).
 */
import { describe, expect, it } from 'vitest';
import { decideFleet } from '../../src/domain/fleet/decide.js';
import type { FleetCommand, FleetEvent } from '../../src/domain/fleet/resources.js';
import { emptyFleet, type Fleet } from '../../src/domain/fleet/fleet.js';
import { putResource } from '../../src/domain/fleet/put-resource.js';
import * as f from '../support/fleet.js';
import { dumpFleet } from '../support/fleet-dump.js';
import * as l3 from '../support/l3-networks.js';

const nodes = ['a', 'b'].map((name) => f.createNode(name));
const live: readonly FleetCommand[] = [
  ...nodes,
  ...l3.identity(),
  f.createTlsCert('cert'),
  f.createUpstream('up'),
  f.createChain('one', [f.hop('a', 80), f.hop('b', 80, { security: 'tls', credential_id: f.credentialId('cert') })]),
  f.deployChain('one'),
  f.createRoute('r', [f.routeHop('a', 8080), f.routeHop('b', 8080)]),
  f.savePolicy('a', 80, ['raw']),
  l3.createNetwork('net', [l3.member('a', '10.0.0.1/24'), l3.member('b', '10.0.0.2/24')], [l3.tunnel('a', 'b')]),
];

/** Without what every command moves on. */
const content = (fleet: Fleet): string => dumpFleet(fleet).split('\n').slice(1).join('\n');

const change = (from: unknown, to: unknown) => ({ from, to }) as never;
const nowhere = 'nowhere';
const overlap = { spki_sha256: 'pin', ends_at: '2025-01-01T00:00:00.000Z' };
const addresses = { public_ipv4: change(null, '192.0.2.9'), public_ipv6: change(null, null) };

describe('an event about a resource that does not exist changes nothing:', () => {
  const events: readonly FleetEvent[] = [
    { type: 'NodeUpdated', data: { node_id: nowhere, changes: { address: change(null, 'x.example') } } },
    { type: 'NodeReportedAddressChanged', data: { node_id: nowhere, ...addresses } },
    { type: 'NodePskIssued', data: { node_id: nowhere, fingerprint: 'x', verifier: f.sealed } },
    { type: 'UpstreamUpdated', data: { upstream_id: nowhere, changes: { endpoint: change('x', 'y') } } },
    { type: 'CredentialUpdated', data: { credential_id: nowhere, changes: { server_names: change([], ['x']) } } },
    { type: 'CredentialOverlapEnded', data: { credential_id: nowhere, overlap: { from: overlap, to: null } } },
    { type: 'ChainUpdated', data: { chain_id: nowhere, changes: { name: change('x', 'y') } } },
    { type: 'ChainUpdated', data: { chain_id: nowhere, changes: { enabled: change(true, false) } } },
    { type: 'RouteUpdated', data: { route_id: nowhere, changes: { name: change('x', 'y') } } },
    { type: 'ListenerPolicyUpdated', data: { policy_id: nowhere, changes: { priority_order: change([], ['raw']) } } },
    { type: 'L3NetworkUpdated', data: { l3_network_id: nowhere, changes: { mtu: change(1380, 1400) } } },
  ];
  const deletes: readonly FleetEvent[] = [
    { type: 'ChainDeleted', data: { chain_id: nowhere } as never },
    { type: 'RouteDeleted', data: { route_id: nowhere } as never },
    { type: 'UpstreamDeleted', data: { upstream_id: nowhere } as never },
    { type: 'CredentialDeleted', data: { credential_id: nowhere } as never },
    { type: 'L3NetworkDeleted', data: { l3_network_id: nowhere } as never },
  ];

  it.each([...events, ...deletes].map((event) => [event.type, event] as const))('%s', (_, event) => {
    const { fleet } = f.given(...live);
    const before = content(fleet);
    expect([...f.append(fleet, event)]).toEqual([]);
    expect(content(fleet)).toBe(before);
  });

  it('NodeDeleted, whose policies stay with the node that has them', () => {
    const { fleet } = f.given(...live);
    const before = content(fleet);
    f.append(fleet, { type: 'NodeDeleted', data: { node_id: nowhere, policies: [] } as never });
    expect(content(fleet)).toBe(before);
  });
});

describe('the creation of a resource that exists changes nothing of it:', () => {
  const created = live.filter(({ type }) => type.startsWith('Create'));

  it.each(created.map((command) => [command.type, command] as const))('%s', (_, command) => {
    const alone = f.given(...live.slice(0, live.indexOf(command)));
    const decision = decideFleet(alone.fleet, command);
    const [event] = decision.ok ? decision.value : [];
    const { fleet } = f.given(...live);
    const state = () =>
      content(fleet)
        .split('\n')
        .filter((line) => !line.startsWith('touched '))
        .join('\n');
    const before = state();
    f.append(fleet, { ...event, data: { ...event?.data, name: 'another name' } } as FleetEvent);
    expect(state()).toBe(before);
  });
});

describe('an event about an account or of no type at all', () => {
  it('is not folded into the fleet', () => {
    const { fleet } = f.given(...nodes);
    expect(() => f.append(fleet, { type: 'UserCreated', data: {} } as never)).toThrow();
    expect(() => decideFleet(fleet, { type: 'CreateUser' } as never)).toThrow('CreateUser');
  });
});

describe('what is put into the fleet and taken out again', () => {
  it('leaves no name, no reference and no claim behind', () => {
    const { fleet } = f.given(...live);
    const chain = fleet.tables.l4_chain.get(f.chainId('one'))!;
    const before = dumpFleet(fleet);
    putResource(fleet, 'l4_chain', chain.id, undefined);
    expect(fleet.idOfName('l4_chain', 'one')).toBeUndefined();
    expect(dumpFleet(fleet)).not.toBe(before);
    putResource(fleet, 'l4_chain', chain.id, chain);
    expect(dumpFleet(fleet)).toBe(before);
    for (const type of [
      'l3_network',
      'listener_policy',
      'route',
      'l4_chain',
      'credential',
      'l4_upstream',
      'node',
    ] as const)
      for (const id of fleet.tables[type].ids()) putResource(fleet, type, id, undefined);
    expect([
      fleet.names.size,
      ...fleet.references.keys(),
      ...fleet.contributors.keys(),
      ...Object.values(fleet.claimEntries).flatMap((index) => [...index.keys()]),
    ]).toEqual([0]);
    expect([...fleet.claimsOf.ids()]).toEqual([]);
  });

  it('asks nothing of types that do not exist', () => {
    const fleet = emptyFleet();
    expect([fleet.get({ type: 'toString' }, 'x'), fleet.has('toString', 'x'), [...fleet.ids('toString')]]).toEqual([
      undefined,
      false,
      [],
    ]);
    expect([fleet.nameOf('connectivity', 'x'), fleet.nameOf('node', 'x'), fleet.idOfName('node', 'x')]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    expect([
      ...fleet.nodesUsing('node', 'x'),
      ...fleet.nodesChangedBy('toString', { id: 'x' } as never),
      ...fleet.diallersOf('x'),
    ]).toEqual([]);
    expect(fleet.objectionTo('toString', { id: 'x' } as never)).toBeUndefined();
  });
});
