/** A separate process with light agents: they hold real sessions and apply a snapshot the moment it arrives. */
import { startLightFleet } from '../../scripts/simulate/light/fleet.js';
import type { LightCredentials, LightFleet } from '../../scripts/simulate/light/fleet.js';
import type { TableSize } from '../../scripts/simulate/light/payloads.js';
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
  readonly table?: TableSize;
}

let fleet: LightFleet | undefined;
let unsent: AgentEvent[] = [];

/** Events go out together, because a message for each would cost both processes more than the agents. */
function tellSoon(event: AgentEvent): void {
  unsent.push(event);
  if (unsent.length > 1) return;
  setTimeout(() => {
    tell(unsent);
    unsent = [];
  }, tellEveryMs);
}
const tellEveryMs = 5;

const { tell } = answerParent({
  start({ host, port, agents, table }: StartAgents) {
    fleet = startLightFleet({
      endpoint: { host, port },
      agents,
      ...(table === undefined ? {} : { table }),
      onApplied: (agent, generation) => tellSoon({ agent, generation, at: sharedClock() }),
    });
  },
  connected: () => fleet?.connected() ?? 0,
  configured: () => fleet?.configured() ?? 0,
  counts: () => fleet?.counts,
  stop: () => fleet?.close(),
});
