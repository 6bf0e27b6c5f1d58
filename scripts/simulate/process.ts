/** A separate process that runs some of the simulated agents. */
import { answerParent } from '../stack/child.js';
import { startLightFleet, type FleetCounts, type LightFleet, type LightFleetOptions } from './light/fleet.js';

/** An agent has applied a generation; `at` is in milliseconds of the clock that all processes on the machine share. */
export interface AppliedEvent {
  readonly nodeId: string;
  readonly generation: number;
  readonly at: number;
}

/** The agents of one fleet behave alike. */
export type StartFleets = readonly Pick<
  LightFleetOptions,
  'endpoint' | 'agents' | 'heartbeats' | 'rejecting' | 'slow'
>[];

export interface ProcessState {
  readonly connected: number;
  readonly counts: readonly FleetCounts[];
  readonly cpuSeconds: number;
}

const slowReadEveryMs = 2_000;

const fleets: LightFleet[] = [];

const onApplied = (nodeId: string, generation: number): void =>
  send({ nodeId, generation, at: Number(process.hrtime.bigint()) / 1e6 });

const drip = setInterval(() => {
  for (const fleet of fleets) fleet.readOnce();
}, slowReadEveryMs);

const { send } = answerParent<AppliedEvent>({
  start(parts: StartFleets) {
    for (const part of parts) fleets.push(startLightFleet({ ...part, onApplied }));
  },
  state(): ProcessState {
    const { user, system } = process.cpuUsage();
    return {
      connected: fleets.reduce((sum, fleet) => sum + fleet.connected(), 0),
      counts: fleets.map(({ counts }) => counts),
      cpuSeconds: (user + system) / 1e6,
    };
  },
  /** @returns how many were cut */
  cut: (count: number): number => fleets.reduce((done, fleet) => done + fleet.cut(count - done), 0),
  relent() {
    clearInterval(drip);
    for (const fleet of fleets) fleet.relent();
  },
  async stop() {
    clearInterval(drip);
    await Promise.all(fleets.map((fleet) => fleet.close()));
  },
});
