/** One reference agent as a process. */
import { startProgram, type RunningProgram } from './process.js';

export interface AgentOptions {
  readonly nodeId: string;
  readonly controlEndpoint: string;
  readonly controlPsk: string;
  readonly env?: { readonly [name: string]: string };
}

export function startAgentProcess(options: AgentOptions): RunningProgram {
  return startProgram('agent/main', {
    SVC_AGENT_ID: options.nodeId,
    SVC_CONTROL_ENDPOINT: options.controlEndpoint,
    SVC_CONTROL_PSK: options.controlPsk,
    ...options.env,
  });
}
