/** A separate process with light agents: they hold real sessions and apply a snapshot the moment it arrives. */
import {
  startLightFleet,
  type Heartbeats,
  type LightCredentials,
  type LightFleet,
} from '../../scripts/simulate/light/fleet.js';
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
  readonly heartbeats?: Heartbeats;
  readonly connectingAtOnce?: number;
  /** False: they connect when `connect` is asked. */
  readonly startNow?: boolean;
}

let fleet: LightFleet | undefined;

const { send } = answerParent<AgentEvent>({
  start({ host, port, ...options }: StartAgents) {
    fleet = startLightFleet({
      ...options,
      endpoint: { host, port },
      onApplied: (agent, generation) => send({ agent, generation, at: sharedClock() }),
    });
  },
  connect: () => fleet?.start(),
  connected: () => fleet?.connected() ?? 0,
  configured: () => fleet?.configured() ?? 0,
  counts: () => fleet?.counts,
  heartbeats: (heartbeats: Heartbeats) => fleet?.beat(heartbeats),
  stop: () => fleet?.close(),
});
