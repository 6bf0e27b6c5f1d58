/** A separate process with light agents: they hold real sessions and apply a snapshot the moment it arrives. */
import { startLightFleet } from '../../src/agent/light-agent.js';
import type { LightCredentials, LightFleet } from '../../src/agent/light-agent.js';
import { answerParent } from '../child.js';
import { sharedClock } from '../figures.js';

/** An agent has applied a generation; `at` is a time of `sharedClock`. */
export interface AgentEvent {
  readonly agent: string;
  readonly generation: number;
  readonly at: number;
}

export interface StartAgents {
  readonly host: string;
  readonly port: number;
  readonly agents: readonly LightCredentials[];
}

let fleet: LightFleet | undefined;

const { tell } = answerParent({
  async start({ host, port, agents }: StartAgents) {
    fleet = await startLightFleet({
      endpoint: { host, port },
      agents,
      onApplied: (agent, generation) => tell({ agent, generation, at: sharedClock() } satisfies AgentEvent),
    });
  },
  connected: () => fleet?.connected() ?? 0,
  disconnects: () => fleet?.disconnects() ?? 0,
  stop: () => fleet?.close(),
});
