/** Folds a node's events into its state; pure, used by the fleet and by the read model alike. */
import { unreachable } from '../../kernel/errors.js';
import type { Changes } from '../resource/change.js';
import { withChanges } from '../resource/change.js';
import { born, touched } from '../resource/meta.js';
import type { AgentCommand, Labels, NodeEvent, NodeState } from './node.js';

const labelPrefix = 'labels.';

/** Labels after changes of the form `labels.<key>`; a null removes the key. */
function evolveLabels(labels: Labels, changes: Changes): Labels {
  const next = new Map(Object.entries(labels));
  for (const [field, { to }] of Object.entries(changes)) {
    if (!field.startsWith(labelPrefix)) continue;
    const key = field.slice(labelPrefix.length);
    if (typeof to === 'string') next.set(key, to);
    else next.delete(key);
  }
  return Object.fromEntries([...next].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Changes that turn one set of labels into another, one per key. */
export function labelChanges(from: Labels, to: Labels): Changes {
  // Maps, for a label may be called `constructor`.
  const [before, after] = [new Map(Object.entries(from)), new Map(Object.entries(to))];
  const changed = [...new Set([...before.keys(), ...after.keys()])].filter((key) => before.get(key) !== after.get(key));
  return Object.fromEntries(
    changed.sort().map((key) => [labelPrefix + key, { from: before.get(key) ?? null, to: after.get(key) ?? null }]),
  );
}

/**
 * The node after one event; undefined once deleted. An event for a node that is not there changes nothing. `commandId`
 * becomes the id of a command to the agent.
 */
export function evolveNode(
  state: NodeState | undefined,
  event: NodeEvent,
  at: string,
  commandId: string,
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
      const own = Object.fromEntries(
        Object.entries(event.data.changes).filter(([field]) => !field.startsWith(labelPrefix)),
      );
      const labels = evolveLabels(state.labels, event.data.changes);
      return touched({ ...withChanges(state, own), labels }, at);
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

/** The commands that an agent may still be sent at a time (RFC 3339), oldest first. */
export function unexpired(commands: readonly AgentCommand[], at: string): readonly AgentCommand[] {
  return commands.filter((command) => command.expires_at > at);
}

/** Where other nodes dial this one: its address, else the public IPv4, then IPv6, that it reported. */
export function dialAddress(node: Pick<NodeState, 'address' | 'public_ipv4' | 'public_ipv6'>): string | null {
  return node.address ?? node.public_ipv4 ?? node.public_ipv6;
}
