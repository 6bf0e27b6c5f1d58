/** One `decide` for the whole fleet: hands a command to the declaration that takes it. */
import type { FleetView } from '../resource/fleet-view.js';
import type { Decision } from '../resource/refusal.js';
import type { FleetCommand, FleetEvent } from './events.js';
import { resources, singletons } from './resources.js';

type Decide = (fleet: FleetView, command: FleetCommand) => Decision<FleetEvent>;

const decisions: ReadonlyMap<string, Decide> = new Map(
  [...Object.values(resources), ...Object.values(singletons)].flatMap(
    ({ decide }) => Object.entries(decide) as unknown as [string, Decide][],
  ),
);

/** The events that a command is, or why it is refused. An empty list is an accepted no-change. */
export function decideFleet(fleet: FleetView, command: FleetCommand): Decision<FleetEvent> {
  const decide = decisions.get(command.type);
  if (decide === undefined) throw new Error(`no resource of the fleet takes the command ${command.type}`);
  return decide(fleet, command);
}
