/** The exact changes that the audit lists where the event itself does not list them (`docs/contract/rest.md#audit`). */
import { expect, it } from 'vitest';
import { describeCommand } from '../../src/domain/audit/describe.js';
import type { AuditChange } from '../../src/domain/resource/audit-change.js';
import type { FleetCommand } from '../../src/domain/fleet/resources.js';
import * as f from '../support/fleet.js';

/** The changes that the last of the commands makes. */
function changesOf(...commands: readonly FleetCommand[]): readonly AuditChange[] | undefined {
  const { fleet } = f.given(...commands.slice(0, -1));
  const performed = f.perform(fleet, commands.at(-1)!);
  if (performed.kind !== 'written') throw new Error(`not written: ${JSON.stringify(performed)}`);
  return describeCommand(performed.command)?.changes;
}

it('the delete of a node has every field that it had, reversed, and nothing of its PSK', () => {
  const node = { ...f.createNode('n', { address: 'n.example', labels: { site: 'a' } }), description: 'the first' };
  const psk: FleetCommand = { type: 'IssueNodePsk', id: f.nodeId('n'), fingerprint: 'f', verifier: f.sealed };
  const changes = changesOf(node, psk, { type: 'DeleteNode', id: f.nodeId('n'), ifMatch: undefined });
  expect(changes).toEqual([
    { path: 'name', before: 'n', after: null },
    { path: 'description', before: 'the first', after: null },
    { path: 'address', before: 'n.example', after: null },
    { path: 'labels.site', before: 'a', after: null },
  ]);
});

it('a reported address names the addresses that changed, and no other', () => {
  const report = (public_ipv4: string, public_ipv6: string | null): FleetCommand => ({
    type: 'ReportNodeAddress',
    id: f.nodeId('n'),
    public_ipv4,
    public_ipv6,
  });
  expect(changesOf(f.createNode('n'), report('203.0.113.1', null))).toEqual([
    { path: 'public_ipv4', before: null, after: '203.0.113.1' },
  ]);
  expect(changesOf(f.createNode('n'), report('203.0.113.1', null), report('203.0.113.2', '2001:db8::1'))).toEqual([
    { path: 'public_ipv4', before: '203.0.113.1', after: '203.0.113.2' },
    { path: 'public_ipv6', before: null, after: '2001:db8::1' },
  ]);
});

it('a deploy has the parts of the definition that become live, from what was live before', () => {
  const [first, second] = [[f.hop('n', 80)], [f.hop('n', 81)]];
  const target = { endpoint: 'other.example:443' };
  const begun = [f.createNode('n'), f.createChain('c', first), f.deployChain('c')];
  const made = f.createChain('c', first);
  expect(changesOf(...begun)).toEqual([
    { path: 'payload', before: null, after: 'tcp' },
    { path: 'hops', before: null, after: first },
    { path: 'target', before: null, after: made.type === 'CreateChain' ? made.target : undefined },
  ]);
  expect(changesOf(...begun, f.updateChain('c', { hops: second }), f.deployChain('c'))).toEqual([
    { path: 'hops', before: first, after: second },
  ]);
  expect(changesOf(...begun, f.updateChain('c', { target }), f.deployChain('c'))?.map(({ path }) => path)).toEqual([
    'target',
  ]);
  const udp = f.updateChain('c', { payload: 'udp', hops: [f.udpHop('n', 80)] });
  expect(changesOf(...begun, udp, f.deployChain('c'))?.map(({ path }) => path)).toEqual(['payload', 'hops']);
});
