/** Commands about listener policies, and what becomes of them (`docs/contract/rest.md#port-management`). */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { describeCommand } from '../../src/domain/audit/describe.js';
import { compileNode } from '../../src/domain/compile/compile-node.js';
import type { FleetCommand } from '../../src/domain/fleet/resources.js';
import { priorityLabels, policyKey, wholeOrder } from '../../src/domain/listener-policy/policy.js';
import * as f from '../support/fleet.js';

const world = (...more: readonly FleetCommand[]): f.Scenario => f.given(f.createNode('a'), f.createNode('b'), ...more);
const id = f.policyIdOf('a', 443);
const key = f.policyKeyOf('a', 443);
const removeNode = (name: string): FleetCommand => ({ type: 'DeleteNode', id: f.nodeId(name), ifMatch: undefined });

describe('a listener policy', () => {
  it('is created by its first save and changed by later ones, with every label once', () => {
    const { when } = world();
    when(f.savePolicy('a', 443, ['raw', 'tls', 'raw'])).thenEvents({
      type: 'ListenerPolicyCreated',
      data: { policy_id: id, ...key, priority_order: ['raw', 'tls', 'reality', 'noise'] },
    });
    when(f.savePolicy('a', 443, ['tls'])).thenEvents({
      type: 'ListenerPolicyUpdated',
      data: {
        policy_id: id,
        changes: {
          priority_order: { from: ['raw', 'tls', 'reality', 'noise'], to: ['tls', 'reality', 'noise', 'raw'] },
        },
      },
    });
    // The same once it is whole.
    when(f.savePolicy('a', 443, ['tls', 'tls', 'reality'])).thenNothing();
    when(f.deletePolicy('a', 443)).thenEvents({
      type: 'ListenerPolicyDeleted',
      data: { policy_id: id, ...key, priority_order: ['tls', 'reality', 'noise', 'raw'] },
    });
  });

  it('has the default order when its list is empty', () => {
    const { fleet, when } = world();
    when(f.savePolicy('a', 443, [])).thenAccepted();
    expect(fleet.get(policyKey, id)?.priority_order).toEqual(['reality', 'tls', 'noise', 'raw']);
  });

  it('keeps the order of the labels that were given and ends with the missing ones in the default order', () => {
    const labels = fc.array(fc.constantFrom(...priorityLabels), { maxLength: 12 });
    fc.assert(
      fc.property(labels, (given) => {
        const order = wholeOrder(given);
        expect([...order].sort()).toEqual([...priorityLabels].sort());
        const named = order.slice(0, new Set(given).size);
        expect(named).toEqual(given.filter((label, index) => given.indexOf(label) === index));
        expect(order.slice(named.length)).toEqual(priorityLabels.filter((label) => !given.includes(label)));
        expect(wholeOrder(order)).toEqual(order);
      }),
    );
  });

  it('is one for each node, transport, address and port', () => {
    const { fleet, when } = world(f.savePolicy('a', 443, []));
    when(f.savePolicy('b', 443, [])).thenAccepted();
    when(f.savePolicy('a', 443, [], { transport: 'udp' })).thenAccepted();
    when(f.savePolicy('a', 443, [], { listen_addr: '::' })).thenAccepted();
    when(f.savePolicy('a', 444, [])).thenAccepted();
    expect(fleet.tables.listener_policy.size).toBe(5);
  });

  it('is refused for an unknown node, and not found when it is deleted twice', () => {
    const { when } = world(f.savePolicy('a', 443, []));
    when(f.savePolicy('nowhere', 443, [])).thenRefused('invalid_request', 'nodeId: ', f.nodeId('nowhere'));
    when(f.deletePolicy('b', 443)).thenRefused('not_found', f.policyIdOf('b', 443));
    when(f.deletePolicy('nowhere', 443)).thenRefused('not_found');
    when(f.deletePolicy('a', 443)).thenAccepted();
    when(f.deletePolicy('a', 443)).thenRefused('not_found');
  });

  it('honours If-Match: version 0 and no * before the first save', () => {
    const { when } = world();
    when(f.savePolicy('a', 443, [], { ifMatch: '*' })).thenRefused('precondition_failed', 'nothing has been saved');
    when(f.savePolicy('a', 443, [], { ifMatch: [1] })).thenRefused('precondition_failed', '"0"');
    when(f.savePolicy('a', 443, [], { ifMatch: [0] })).thenAccepted();
    when(f.savePolicy('a', 443, ['raw'], { ifMatch: [0] })).thenRefused('precondition_failed', '"1"');
    when(f.savePolicy('a', 443, ['raw'], { ifMatch: '*' })).thenAccepted();
    when(f.deletePolicy('a', 443, [1])).thenRefused('precondition_failed', '"2"');
    when(f.deletePolicy('a', 443, [2])).thenAccepted();
    // Before what the body refers to.
    when(f.savePolicy('nowhere', 443, [], { ifMatch: '*' })).thenRefused('precondition_failed');
  });

  it('is one of at most 256 on its node, so that a delete of the node can carry them all', () => {
    const many = Array.from({ length: 256 }, (_, index) => f.savePolicy('a', 1 + index, ['raw']));
    const { fleet, when } = world(...many);
    when(f.savePolicy('a', 257, [])).thenRefused('conflict', 'nodeId: the node "a" has 256 listener policies');
    when(f.savePolicy('a', 256, ['tls'])).thenAccepted();
    when(f.savePolicy('b', 257, [])).thenAccepted();
    when(f.deletePolicy('a', 1)).thenAccepted();
    when(f.savePolicy('a', 257, [])).thenAccepted();
    expect(compileNode(fleet, f.nodeId('a')).listener_policies).toHaveLength(256);
  });

  it('is in the snapshot of its node, by transport, port and address, whether anything listens there or not', () => {
    const { fleet } = world(
      f.savePolicy('a', 53, [], { transport: 'udp' }),
      f.savePolicy('a', 443, ['raw'], { listen_addr: '10.0.0.9' }),
      f.savePolicy('a', 443, ['tls'], { listen_addr: '10.0.0.10' }),
      f.savePolicy('a', 80, ['noise']),
    );
    const of = (node: string) =>
      compileNode(fleet, f.nodeId(node)).listener_policies.map(
        ({ transport, listen_addr, listen_port, priority_order }) =>
          `${transport} ${listen_port} ${listen_addr} ${priority_order[0]}`,
      );
    expect(of('a')).toEqual([
      'tcp 80 0.0.0.0 noise',
      'tcp 443 10.0.0.10 tls',
      'tcp 443 10.0.0.9 raw',
      'udp 53 0.0.0.0 reality',
    ]);
    expect(of('b')).toEqual([]);
  });

  it('is deleted with its node, and never keeps it from being deleted', () => {
    const { fleet, when } = world(f.savePolicy('a', 443, ['tls']), f.savePolicy('b', 443, ['raw']));
    when(removeNode('a')).thenAccepted();
    expect([...fleet.tables.listener_policy.ids()]).toEqual([f.policyIdOf('b', 443)]);
    when(f.createNode('a')).thenAccepted();
    expect(compileNode(fleet, f.nodeId('a')).listener_policies).toEqual([]);
    when(f.savePolicy('a', 443, ['noise'], { ifMatch: [0] })).thenAccepted();
  });
});

describe('the audit entry of a policy', () => {
  const entry = (fleet: f.Scenario['fleet'], command: FleetCommand) => {
    const performed = f.perform(fleet, command);
    if (performed.kind !== 'written') throw new Error(JSON.stringify(performed));
    return describeCommand(performed.command);
  };

  it('is a create for the first save; its resource is named by its listener', () => {
    const { fleet } = world();
    const order = ['reality', 'tls', 'noise', 'raw'];
    const created = entry(fleet, f.savePolicy('a', 443, []));
    expect(created).toEqual({
      action: 'listener_policy.create',
      resource: { type: 'listener_policy', id, name: id },
      changes: [
        { path: 'node_id', before: null, after: f.nodeId('a') },
        { path: 'transport', before: null, after: 'tcp' },
        { path: 'listen_addr', before: null, after: '0.0.0.0' },
        { path: 'listen_port', before: null, after: 443 },
        { path: 'priority_order', before: null, after: order },
      ],
      readers: 'all',
      others: [],
      notRevertibleBecause: null,
    });
    expect(id).toBe(`${f.nodeId('a')}/tcp/0.0.0.0/443`);
    expect(entry(fleet, f.savePolicy('a', 443, ['raw']))).toMatchObject({
      action: 'listener_policy.update',
      resource: { type: 'listener_policy', id, name: id },
      changes: [{ path: 'priority_order', before: order, after: ['raw', 'reality', 'tls', 'noise'] }],
    });
    const deleted = entry(fleet, f.deletePolicy('a', 443));
    expect(deleted).toMatchObject({ action: 'listener_policy.delete', resource: { id, name: id } });
    expect(deleted?.changes.map(({ after }) => after)).toEqual([null, null, null, null, null]);
  });
});
