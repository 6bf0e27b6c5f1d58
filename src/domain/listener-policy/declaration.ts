/**
 * The declaration of listener policies, with their decisions. A policy claims no listener, and its listener need not exist.
 * Implements `docs/contract/rest.md#port-management`.
 */
import type { Compiled, Indexed, Resource, Decisions } from '../resource/declaration.js';
import type { FleetView } from '../resource/fleet-view.js';
import { lifecycleAudit } from '../resource/audit-change.js';
import { lifecycleFold } from '../resource/lifecycle-fold.js';
import { pick } from '../resource/lifecycle.js';
import { owned } from '../resource/lifecycle-decisions.js';
import { firstVersion } from '../resource/meta.js';
import { earlierValues, lifecycleUndo, type Undo } from '../resource/undo.js';
import { listBound, ruleBytes, textBound } from '../snapshot/bound.js';
import {
  policyFields,
  policyId,
  policyKey,
  policiesOf,
  wholeOrder,
  type PoliciesOfNode,
  type PolicyCommand,
  type PolicyEvent,
  type PolicyKey,
  type PolicyState,
} from './policy.js';
import { err, ok } from '../../kernel/result.js';
import { changesOf } from '../resource/change.js';
import { versionMismatch, type Refusal } from '../resource/refusal.js';
import { exists, unlessRefused } from '../resource/rules.js';

/** The maximum number of policies per node. The events that delete and restore a node carry them. */
const policiesMax = 256;

const decidePolicy: Decisions<PolicyCommand, PolicyEvent> = {
  SaveListenerPolicy(fleet, { type: _, ifMatch, ...command }) {
    const fields = { ...command, priority_order: wholeOrder(command.priority_order) };
    const id = policyId(fields);
    const policy = fleet.get(policyKey, id);
    const mismatch = versionMismatch(policy?.version ?? 0, ifMatch);
    if (mismatch !== undefined) return err(mismatch);
    if (policy === undefined) {
      const refusal = unknownNode(fleet, fields) ?? tooMany(fleet, fields);
      return unlessRefused(refusal, { type: 'ListenerPolicyCreated', data: { policy_id: id, ...owned(fields) } });
    }
    const changes = changesOf(policy, fields, ['priority_order', 'managed_by']);
    if (Object.keys(changes).length === 0) return ok([]);
    return ok([{ type: 'ListenerPolicyUpdated', data: { policy_id: id, changes } }]);
  },
  DeleteListenerPolicy(fleet, command) {
    const id = policyId(command);
    const policy = fleet.get(policyKey, id);
    if (policy === undefined) return err({ code: 'not_found', message: `there is no listener policy ${id}` });
    const mismatch = versionMismatch(policy.version, command.ifMatch);
    if (mismatch !== undefined) return err(mismatch);
    return ok([
      {
        type: 'ListenerPolicyDeleted',
        data: { policy_id: id, ...owned(pick(policy, [...policyFields, 'managed_by'])) },
      },
    ]);
  },
  RestoreListenerPolicy(fleet, { type: _, id, ...fields }) {
    const refusal = exists(fleet, policyKey.type, id) ?? unknownNode(fleet, fields) ?? tooMany(fleet, fields);
    return unlessRefused(refusal, { type: 'ListenerPolicyRestored', data: { policy_id: id, ...fields } });
  },
};

// Refusals name fields as the endpoints of ports call them.

function unknownNode(fleet: FleetView, { node_id }: PolicyKey): Refusal | undefined {
  if (fleet.has('node', node_id)) return undefined;
  return { code: 'invalid_request', message: `nodeId: expected the id of a node, there is no node ${node_id}` };
}

function tooMany(fleet: FleetView, { node_id }: PolicyKey): Refusal | undefined {
  if (policiesOf(fleet, node_id).length < policiesMax) return undefined;
  const message = `nodeId: the node "${fleet.nameOf('node', node_id) ?? node_id}" has ${policiesMax} listener policies; expected fewer`;
  return { code: 'conflict', message };
}

const audit = lifecycleAudit(policyFields);
const undo = lifecycleUndo('listener_policy', 'ListenerPolicy', 'policy');
const fold = lifecycleFold<Omit<PolicyState, 'name'>, PolicyEvent>({
  noun: 'ListenerPolicy',
  singular: 'policy',
  initial: {},
});

const indexed: Indexed<PolicyState> = {
  dependsOn: ['node_id'],
  // A reference would keep the node from being deleted.
  references: () => [],
  claims: () => [],
  nodes: (policy) => [policy.node_id],
};

const compiled: Compiled<PolicyState> = {
  rulesOn(_fleet, { transport, listen_addr, listen_port, priority_order }) {
    return { policies: [{ transport, listen_addr, listen_port, priority_order }] };
  },
  bound: (_fleet, policy) => ruleBytes + textBound(policy.listen_addr) + listBound(policy.priority_order),
  features: () => [],
  // The port table adds policies to the listeners of other resources.
  intendedOn: () => [],
  liveOn: () => [],
  nodesUsing: () => [],
  diallersOf: () => [],
  dialledBy: () => undefined,
  linksFrom: () => [],
};

/** A policy is addressed by its key, not by an id. */
function undoCreated({ node_id, transport, listen_addr, listen_port }: PolicyKey): Undo {
  const key = { node_id, transport, listen_addr, listen_port };
  const command: PolicyCommand = { type: 'DeleteListenerPolicy', ifMatch: undefined, ...key };
  return { kind: 'delete', command };
}

function undoUpdated(event: Extract<PolicyEvent, { readonly type: 'ListenerPolicyUpdated' }>): Undo {
  const { policy_id, changes } = event.data;
  return {
    ...undo.updated(event),
    command(fleet: FleetView) {
      const policy = fleet.get(policyKey, policy_id);
      const definition = policy && pick(policy, policyFields);
      return { ...definition, ...earlierValues(changes), type: 'SaveListenerPolicy', ifMatch: undefined };
    },
  };
}

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
  ownedByNode: {
    restoredWith: ({ node_id, policies }: PoliciesOfNode, { at }) =>
      policies.map((policy) => {
        const id = policyId({ ...policy, node_id });
        return { ...policy, node_id, name: id, ...firstVersion(id, at) };
      }),
  },
  fields: policyFields,
  decide: decidePolicy,
  evolve(state, event, context) {
    const policy = fold(state, event, context);
    return policy === undefined ? undefined : { ...policy, name: policy.id };
  },
  indexed,
  compiled,
  events: {
    ListenerPolicyCreated: {
      audit: audit.created,
      undo: ({ data }) => undoCreated(data),
      touches: (_fleet, { data }) => [data.node_id],
    },
    ListenerPolicyUpdated: {
      audit: audit.updated,
      undo: undoUpdated,
      touches(fleet, { data }) {
        const policy = fleet.get(policyKey, data.policy_id);
        return policy === undefined ? [] : [policy.node_id];
      },
    },
    ListenerPolicyDeleted: {
      audit: audit.deleted,
      undo: undo.deleted,
      touches: (_fleet, { data }) => [data.node_id],
    },
    ListenerPolicyRestored: {
      audit: audit.restored,
      undo: ({ data }) => undoCreated(data),
      touches: (_fleet, { data }) => [data.node_id],
    },
  },
};
