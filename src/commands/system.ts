/** Contexts of commands that no user gives. */
import { serviceActor } from '../domain/log/fact.js';
import type { CommandContext } from './port.js';

/** For a command of the service itself. @param reason becomes the request id */
export function systemContext(reason: string): CommandContext {
  return { actor: serviceActor, requestId: reason };
}

/** For a command that follows from a message of a node's agent. */
export function agentContext(nodeId: string, requestId: string): CommandContext {
  return { actor: { type: 'agent', id: nodeId, name: nodeId }, requestId };
}
