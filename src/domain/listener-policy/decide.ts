/** Decides commands about listener policies. Implements `docs/contract/rest.md#port-management`. */
import { err, ok } from '../../kernel/result.js';
import { changesOf } from '../resource/change.js';
import type { Decisions } from '../resource/declaration.js';
import type { FleetView } from '../resource/fleet-view.js';
import { versionMismatch } from '../resource/refusal.js';
import { pick } from '../resource/lifecycle.js';
import type { Refusal } from '../resource/refusal.js';
import { exists, unlessRefused } from '../resource/rules.js';
import type { PolicyCommand, PolicyEvent, PolicyKey } from './policy.js';
import { policiesOf, policyFields, policyId, policyKey, wholeOrder } from './policy.js';

/** Policies per node. The delete of a node carries them, and so does the event that takes it back. */
const policiesMax = 256;

export const decidePolicy: Decisions<PolicyCommand, PolicyEvent> = {
  SaveListenerPolicy(fleet, { type: _, ifMatch, ...command }) {
    const fields = { ...command, priority_order: wholeOrder(command.priority_order) };
    const id = policyId(fields);
    const policy = fleet.get(policyKey, id);
    const mismatch = versionMismatch(policy?.version ?? 0, ifMatch);
    if (mismatch !== undefined) return err(mismatch);
    if (policy === undefined) {
      const refusal = unknownNode(fleet, fields) ?? tooMany(fleet, fields);
      return unlessRefused(refusal, { type: 'ListenerPolicyCreated', data: { policy_id: id, ...fields } });
    }
    const changes = changesOf(policy, fields, ['priority_order']);
    if (Object.keys(changes).length === 0) return ok([]);
    return ok([{ type: 'ListenerPolicyUpdated', data: { policy_id: id, changes } }]);
  },
  DeleteListenerPolicy(fleet, command) {
    const id = policyId(command);
    const policy = fleet.get(policyKey, id);
    if (policy === undefined) return err({ code: 'not_found', message: `there is no listener policy ${id}` });
    const mismatch = versionMismatch(policy.version, command.ifMatch);
    if (mismatch !== undefined) return err(mismatch);
    return ok([{ type: 'ListenerPolicyDeleted', data: { policy_id: id, ...pick(policy, policyFields) } }]);
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
