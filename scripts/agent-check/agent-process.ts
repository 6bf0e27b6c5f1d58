/** An agent that the kit starts and stops, in its own process. */
import { spawn } from 'node:child_process';
import { timedOut, withDeadline } from '../../src/kernel/background.js';
import type { PlayedNode } from './node.js';

/** The environment that configures an agent. */
export type AgentEnvironment = Readonly<Record<string, string>>;

export interface StartedAgent {
  /** Asks it to stop, as SIGTERM does. Resolves when it has exited; true if it exited by itself. */
  stop(): Promise<boolean>;
  /** Restarts it after `stop`. */
  start(): Promise<void>;
}

/**
 * Starts agents; tests start them inside their own process.
 * @param heard receives the agent's output
 */
export type AgentStarter = (environment: AgentEnvironment, heard: (text: string) => void) => StartedAgent;

/** The variables, named as in the source. */
export function environmentOf(endpoint: string, node: PlayedNode): AgentEnvironment {
  return { SVC_AGENT_ID: node.nodeId, SVC_CONTROL_ENDPOINT: endpoint, SVC_CONTROL_PSK: node.controlPsk };
}

/** How long an agent may take to stop. */
const stopWithinMs = 6_000;

/** @param command for a shell; a command of several programs should replace the shell with `exec` */
export function agentCommand(command: string): AgentStarter {
  return (environment, heard) => {
    let running: { readonly gone: Promise<void>; kill(signal: NodeJS.Signals): void; deafen(): void } | undefined;
    return {
      async start() {
        // A process group of its own, so that the agent can be signalled even behind a shell.
        const child = spawn(command, { shell: true, detached: true, env: { ...process.env, ...environment } });
        child.stdout.on('data', (data: Buffer) => heard(data.toString()));
        child.stderr.on('data', (data: Buffer) => heard(data.toString()));
        const gone = new Promise<void>((resolve) => {
          child.on('close', () => resolve());
          child.on('error', (error) => {
            heard(`${error.message}\n`);
            resolve();
          });
        });
        const kill = (signal: NodeJS.Signals): void => {
          try {
            if (child.pid !== undefined) process.kill(-child.pid, signal);
          } catch {
            // It has already exited.
          }
        };
        const deafen = (): void => {
          for (const stream of [child.stdout, child.stderr]) stream.destroy();
        };
        running = { gone, kill, deafen };
      },
      async stop() {
        if (running === undefined) return true;
        const { gone, kill, deafen } = running;
        kill('SIGTERM');
        if ((await withDeadline(gone, stopWithinMs)) !== timedOut) return true;
        kill('SIGKILL');
        // What has left the group may live on, with the output.
        deafen();
        await gone;
        return false;
      },
    };
  };
}
