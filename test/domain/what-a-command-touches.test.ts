/**
 * Which nodes one command touches, example by example, where histories at random (`touched-nodes.test.ts`) seldom come or
 * allow more. Routes are in `route-commands.test.ts`, edits of credentials in `chain-transports.test.ts` and edits of L3
 * networks in `l3-network-rules.test.ts`.
 */
import { describe, expect, it } from 'vitest';
import type { FleetCommand } from '../../src/domain/fleet/resources.js';
import { compileNode } from '../../src/domain/compile/compile-node.js';
import * as f from '../support/fleet.js';

const names = ['a', 'b', 'c', 'd'] as const;
const nodes = names.map((name) => f.createNode(name));

/** The nodes that the command touches, by name; without a deploy, rules must differ exactly there. */
function touchedBy(setup: readonly FleetCommand[], command: FleetCommand): string {
  const { fleet } = f.given(...nodes, ...setup);
  const rules = () => names.map((name) => JSON.stringify({ ...compileNode(fleet, f.nodeId(name)), generation: 0 }));
  const before = rules();
  const [touched] = f.performAll(fleet, [command]);
  const after = rules();
  const named = names.filter((name) => touched?.has(f.nodeId(name)));
  for (const [index, name] of names.entries()) {
    // What is said to be untouched keeps its rules, and its generation.
    if (!named.includes(name)) expect(after[index], name).toBe(before[index]);
    const generation = fleet.generationOf(f.nodeId(name));
    if (named.includes(name) && generation !== undefined) expect(generation).toBe(fleet.revision.value + 1);
  }
  return named.join('');
}

const hops = [f.hop('a', 80), f.hop('b', 80)];
const off = f.updateChain('one', { enabled: false });
const deployed = [f.createChain('one', hops), f.deployChain('one')];
const onUpstream = [
  f.createUpstream('up'),
  f.createUpstream('other'),
  f.createChain('one', hops, { target: { upstream_id: f.upstreamId('up') } }),
  f.deployChain('one'),
];
/** The middle of three hops has a certificate. */
const overTls = [
  f.createTlsCert('cert'),
  f.createChain('one', [
    f.hop('a', 80),
    f.hop('b', 80, { security: 'tls', credential_id: f.credentialId('cert') }),
    f.hop('c', 80),
  ]),
  f.deployChain('one'),
];

describe('a command touches', () => {
  it.each<readonly [what: string, setup: readonly FleetCommand[], command: FleetCommand, touched: string]>([
    ['the last hop, when its upstream changes', onUpstream, f.updateUpstream('up', { endpoint: 'new.example:1' }), 'b'],
    ['the last hop, when its upstream is disabled', onUpstream, f.updateUpstream('up', { enabled: false }), 'b'],
    ['nobody, when another upstream changes', onUpstream, f.updateUpstream('other', { endpoint: 'new.example:1' }), ''],
    [
      'nobody, when the upstream of a disabled chain changes',
      [...onUpstream, off],
      f.updateUpstream('up', { endpoint: 'new.example:1' }),
      '',
    ],
    [
      'nobody, when the upstream changes that the chain ends in after the next deploy',
      [...onUpstream, f.updateChain('one', { target: { upstream_id: f.upstreamId('other') } })],
      f.updateUpstream('other', { endpoint: 'new.example:1' }),
      '',
    ],
    [
      'the hop and the one that dials it, when a certificate is rotated and renamed',
      overTls,
      f.updateCredential('cert', { name: 'x', ...f.rotatedTo('new') }),
      'ab',
    ],
    [
      'the one that dials a node, when that has another address and label',
      deployed,
      f.updateNode('b', { address: 'new.example', labels: { x: 'y' } }),
      'a',
    ],
    ['a node that is refreshed', [], { type: 'RefreshNodeConfig', id: f.nodeId('a') }, 'a'],
    ['all, when the compiler version is raised', [], { type: 'RaiseCompilerVersion', version: 9 }, 'abcd'],
    [
      'all, when the compiler version is lowered',
      [{ type: 'RaiseCompilerVersion', version: 9 }],
      { type: 'LowerCompilerVersion', version: 1 },
      'abcd',
    ],
  ])('%s', (_, setup, command, touched) => {
    expect(touchedBy(setup, command)).toBe(touched);
  });
});
