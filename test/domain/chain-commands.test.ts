/** Commands about chains: what they write, and when they are refused. Collisions have tests of their own. */
import { describe, expect, it } from 'vitest';
import type { Hop } from '../../src/domain/chain/chain.js';
import { chainStatus } from '../../src/domain/chain/status.js';
import type { Json } from '../../src/kernel/json.js';
import * as f from '../support/fleet.js';

const id = f.chainId('one');
const target = { endpoint: '192.0.2.1:80' };
const hops = [f.hop('a', 80), f.hop('b', 80)];
const one = f.createChain('one', hops);
const nodes = [f.createNode('a'), f.createNode('b')];
const json = (value: readonly object[]): Json => value as unknown as Json;
const fields = { name: 'one', description: null, enabled: true, payload: 'tcp', hops, target } as const;

describe('creating a chain', () => {
  it('writes its definition, and the chain is not deployed', () => {
    const fleet = f
      .given(...nodes)
      .when(one)
      .thenEvents({ type: 'ChainCreated', data: { chain_id: id, ...fields } });
    expect(fleet.tables.l4_chain.get(id)).toMatchObject({ ...fields, version: 1, deployed: null });
  });

  it.each<[string, readonly Hop[], Partial<typeof one>, readonly string[]]>([
    ['an unknown node', [f.hop('a', 80), f.hop('nowhere', 80)], {}, ['hops[1].node_id', f.nodeId('nowhere')]],
    [
      'an unknown upstream',
      hops,
      { target: { upstream_id: f.upstreamId('nowhere') } },
      ['target.upstream_id', f.upstreamId('nowhere')],
    ],
    ['a node twice', [f.hop('a', 80), f.hop('a', 81)], {}, ['hops[1].node_id', 'once in a chain', 'hops[0]']],
    [
      'payload udp over outer tcp',
      [f.hop('a', 80)],
      { payload: 'udp' },
      ['hops[0]', 'payload tcp with outer tcp and security raw; payload tcp with outer tcp and security tls'],
    ],
  ])('is refused with %s', (_, bad, more, parts) => {
    f.given(...nodes)
      .when({ ...f.createChain('one', bad), ...more })
      .thenRefused('invalid_request', ...parts);
  });

  it('is refused when its name is taken, but first when it refers to a missing resource', () => {
    const other = f.createChain('other', [f.hop('a', 90)]);
    const { when } = f.given(...nodes, other);
    when({ ...one, name: 'OTHER' }).thenRefused('conflict', 'name:', '"OTHER"', other.id);
    when({ ...one, name: 'other', hops: [f.hop('nowhere', 80)] }).thenRefused('invalid_request', 'hops[0].node_id');
  });
});

describe('updating a chain', () => {
  it('writes each changed field with both values', () => {
    const moved = [f.hop('a', 81), f.hop('b', 80)];
    f.given(...nodes, one)
      .when(f.updateChain('one', { name: 'one', description: 'words', hops: moved, target: { ...target } }))
      .thenEvents({
        type: 'ChainUpdated',
        data: {
          chain_id: id,
          changes: { description: { from: null, to: 'words' }, hops: { from: json(hops), to: json(moved) } },
        },
      });
  });

  it('to its current values writes nothing, whatever the order of the fields', () => {
    const reordered = hops.map((hop) => Object.fromEntries(Object.entries(hop).toReversed()) as unknown as Hop);
    f.given(...nodes, one)
      .when(f.updateChain('one', { ...fields, hops: reordered }))
      .thenNothing();
  });

  it('is refused like a create of the resulting chain', () => {
    const { when } = f.given(...nodes, one, f.createChain('two', [f.hop('a', 90)]));
    when(f.updateChain('one', { payload: 'udp' })).thenRefused('invalid_request', 'hops[0]: expected one of');
    when(f.updateChain('one', { hops: [f.hop('nowhere', 80)] })).thenRefused('invalid_request', 'hops[0].node_id');
    when(f.updateChain('one', { target: { upstream_id: f.upstreamId('x') } })).thenRefused(
      'invalid_request',
      'target.upstream_id',
    );
    when(f.updateChain('one', { name: 'TWO' })).thenRefused('conflict', 'name:', f.chainId('two'));
    when(f.updateChain('one', { name: 'ONE' })).thenAccepted();
    when(f.updateChain('nowhere', { name: 'x' })).thenRefused('not_found', f.chainId('nowhere'));
    when(f.updateChain('one', { ifMatch: [1], name: 'x' })).thenRefused('precondition_failed', 'If-Match', '"2"');
  });
});

describe('deploying a chain', () => {
  it('writes the old and the new definition, and the nodes of both', () => {
    const scenario = f.given(...nodes, f.createNode('c'), one, f.deployChain('one'));
    const next = { payload: 'tcp', hops: [f.hop('c', 80)], target } as const;
    scenario.when(f.updateChain('one', { hops: next.hops })).thenAccepted();
    const fleet = scenario.when(f.deployChain('one', [3])).thenEvents({
      type: 'ChainDeployed',
      data: {
        chain_id: id,
        chain_version: 3,
        definition: { from: { payload: 'tcp', hops, target }, to: next },
        nodes: ['a', 'b', 'c'].map((name) => ({ node_id: f.nodeId(name), offset: 0 })),
      },
    });
    expect(fleet.tables.l4_chain.get(id)).toMatchObject({ version: 4, deployed: { ...next, chain_version: 3 } });
  });

  it('is refused when the chain is disabled, does not exist, or has another version', () => {
    const { when } = f.given(...nodes, { ...one, enabled: false });
    when(f.deployChain('one')).thenRefused('conflict', 'l4_chain "one"', 'disabled');
    when(f.deployChain('one', [7])).thenRefused('precondition_failed', '"1"');
    when(f.deployChain('nowhere')).thenRefused('not_found', f.chainId('nowhere'));
  });

  it('is refused while a hop cannot be dialled', () => {
    const { when } = f.given(f.createNode('a', { address: null }), f.createNode('b', { address: null }), one);
    when(f.deployChain('one')).thenRefused('conflict', 'hops[1].node_id', 'node "b"', 'address');
    when(f.updateChain('one', { hops: [f.hop('a', 80), f.hop('b', 80, { dial_addr: 'b.example' })] })).thenAccepted();
    when(f.deployChain('one')).thenAccepted();
  });

  it('changes the status, as edits and disabling do', () => {
    const { fleet, when } = f.given(...nodes, one);
    const status = (): string => chainStatus(fleet.tables.l4_chain.get(id)!);
    expect(status()).toBe('draft');
    when(f.deployChain('one')).thenAccepted();
    expect(status()).toBe('deployed');
    when(f.updateChain('one', { name: 'renamed', description: 'words' })).thenAccepted();
    expect(status()).toBe('deployed');
    when(f.updateChain('one', { hops: [f.hop('a', 99)] })).thenAccepted();
    expect(status()).toBe('modified');
    when(f.updateChain('one', { hops })).thenAccepted();
    expect(status()).toBe('deployed');
    when(f.updateChain('one', { enabled: false })).thenAccepted();
    expect(status()).toBe('disabled');
  });
});

describe('deleting a chain', () => {
  it('writes both definitions', () => {
    const { when, fleet } = f.given(
      ...nodes,
      one,
      f.deployChain('one'),
      f.updateChain('one', { hops: [f.hop('b', 80)] }),
    );
    const { deployed } = fleet.tables.l4_chain.get(id)!;
    when({ type: 'DeleteChain', id, ifMatch: [3] }).thenEvents({
      type: 'ChainDeleted',
      data: { chain_id: id, ...fields, hops: [f.hop('b', 80)], deployed },
    });
    expect(deployed?.hops).toEqual(hops);
  });
});
