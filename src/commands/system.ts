/** Who asks when the service itself does. */
import type { CommandContext } from './port.js';

/** The context of a command that no user and no agent gave; `reason` becomes its request id. */
export function systemContext(reason: string): CommandContext {
  return { actor: { type: 'system', id: 'service', name: 'service' }, requestId: reason };
}

/** The context of a command that follows from what a node's agent said. */
export function agentContext(nodeId: string, requestId: string): CommandContext {
  return { actor: { type: 'agent', id: nodeId, name: nodeId }, requestId };
}
