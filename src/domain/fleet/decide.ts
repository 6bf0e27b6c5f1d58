/**
 * One `decide` for the whole fleet: passes a command to the declaration that decides it, and keeps the bound that all
 * definitions have.
 * Implements `docs/contract/domain.md#one-consistency-boundary-the-fleet`.
 */
import { err } from '../../kernel/result.js';
import type { FleetView } from '../resource/fleet-view.js';
import type { Decision } from '../resource/refusal.js';
import { oversizedDefinition } from './definition-bound.js';
import type { FleetCommand, FleetEvent } from './resources.js';
import { resources, singletons } from './resources.js';

type Decide = (fleet: FleetView, command: FleetCommand) => Decision<FleetEvent>;

const decisions: ReadonlyMap<string, Decide> = new Map(
  [...Object.values(resources), ...Object.values(singletons)].flatMap(
    ({ decide }) => Object.entries(decide) as unknown as [string, Decide][],
  ),
);

/** The events of a command, or why it is refused. No events: accepted, and nothing changes. */
export function decideFleet(fleet: FleetView, command: FleetCommand): Decision<FleetEvent> {
  const decide = decisions.get(command.type);
  if (decide === undefined) throw new Error(`no resource of the fleet decides the command ${command.type}`);
  const decision = decide(fleet, command);
  const oversized = decision.ok ? oversizedDefinition(fleet, decision.value) : undefined;
  return oversized === undefined ? decision : err(oversized);
}
