/** Folds a node's events into its state; pure, used by the fleet and by the read model alike. */
import { unreachable } from '../../kernel/errors.js';
import { withChanges } from '../resource/change.js';
import type { EventContext } from '../resource/declaration.js';
import { born, touched } from '../resource/meta.js';
import { evolveLabels, isLabelField, labelChanges } from './labels.js';
import type { NodeEvent, NodeState } from './node.js';
import { unexpired } from './node.js';

/**
 * The node after one event; undefined once deleted. An event for a node that is not there changes nothing. The id of the
 * command becomes the id of a command to the agent.
 */
export function evolveNode(
  state: NodeState | undefined,
  event: NodeEvent,
  { at, commandId }: EventContext,
): NodeState | undefined {
  if (event.type === 'NodeCreated') {
    const { node_id, ...fields } = event.data;
    return {
      ...fields,
      ...born(node_id, at),
      labels: evolveLabels({}, labelChanges({}, fields.labels)),
      psk: null,
      public_ipv4: null,
      public_ipv6: null,
      generation_offset: 0,
      commands: [],
    };
  }
  if (state === undefined) return undefined;
  switch (event.type) {
    case 'NodeUpdated': {
      const { changes } = event.data;
      const plain = Object.fromEntries(Object.entries(changes).filter(([field]) => !isLabelField(field)));
      return touched({ ...withChanges(state, plain), labels: evolveLabels(state.labels, changes) }, at);
    }
    case 'NodeDeleted':
      return undefined;
    case 'NodePskIssued': {
      const { fingerprint, verifier } = event.data;
      return touched({ ...state, psk: { fingerprint, verifier, issued_at: at } }, at);
    }
    case 'NodeConfigRefreshed':
      return touched(state, at);
    case 'NodeReportedAddressChanged': {
      const { public_ipv4, public_ipv6 } = event.data;
      return touched({ ...state, public_ipv4: public_ipv4.to, public_ipv6: public_ipv6.to }, at);
    }
    case 'NodeGenerationRaised':
      return touched({ ...state, generation_offset: event.data.offset.to }, at);
    case 'NodeCommandQueued': {
      const { command, queued_at, expires_at } = event.data;
      const waiting = unexpired(state.commands, queued_at);
      return touched({ ...state, commands: [...waiting, { id: commandId, command, queued_at, expires_at }] }, at);
    }
    default:
      return unreachable(event);
  }
}
