/** The declaration of listener policies. They claim no listener, and a listener need not exist to have one. */
import type { Compiled, Indexed, Resource } from '../resource/declaration.js';
import { lifecycleAudit } from '../resource/lifecycle-audit.js';
import { lifecycleFold } from '../resource/lifecycle-fold.js';
import { listBound, ruleBytes, textBound } from '../snapshot/bound.js';
import { decidePolicy } from './decide.js';
import type { PolicyCommand, PolicyEvent, PolicyState } from './policy.js';
import { policyFields, policyKey } from './policy.js';

const audit = lifecycleAudit(policyFields);
const fold = lifecycleFold<Omit<PolicyState, 'name'>, 'ListenerPolicy', 'policy'>('ListenerPolicy', 'policy');

const indexed: Indexed<PolicyState> = {
  dependsOn: ['node_id'],
  // Not a reference: a policy does not keep its node from being deleted.
  references: () => [],
  claims: () => [],
  nodes: (policy) => [policy.node_id],
};

const compiled: Compiled<PolicyState> = {
  rulesOn(_fleet, { transport, listen_addr, listen_port, priority_order }) {
    return { policies: [{ transport, listen_addr, listen_port, priority_order }] };
  },
  bound: (_fleet, policy) => ruleBytes + textBound(policy.listen_addr) + listBound(policy.priority_order),
  // The port table adds policies to the listeners that other resources intend.
  intendedOn: () => [],
  nodesUsing: () => [],
  diallersOf: () => [],
  linksFrom: () => [],
};

export const listenerPolicy: Resource<
  'listener_policy',
  'ListenerPolicy',
  'policy',
  PolicyState,
  PolicyEvent,
  PolicyCommand
> = {
  type: 'listener_policy',
  noun: 'ListenerPolicy',
  singular: 'policy',
  plural: 'policies',
  ownedByNode: true,
  fields: policyFields,
  decide: decidePolicy,
  evolve(state, event, context) {
    const policy = fold(state, event, context);
    return policy === undefined ? undefined : { ...policy, name: policy.id };
  },
  indexed,
  compiled,
  objectionTo: null,
  events: {
    ListenerPolicyCreated: { schemaVersion: 1, audit: audit.created, touches: (_fleet, { data }) => [data.node_id] },
    ListenerPolicyUpdated: {
      schemaVersion: 1,
      audit: audit.updated,
      touches(fleet, { data }) {
        const policy = fleet.get(policyKey, data.policy_id);
        return policy === undefined ? [] : [policy.node_id];
      },
    },
    ListenerPolicyDeleted: { schemaVersion: 1, audit: audit.deleted, touches: (_fleet, { data }) => [data.node_id] },
  },
};
