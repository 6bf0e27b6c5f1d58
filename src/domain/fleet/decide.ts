/**
 * Passes a command to the declaration that decides it, and enforces the size bound of definitions.
 * Implements `docs/contract/domain.md#one-consistency-boundary-the-fleet` and `#commands-and-events`.
 */
import { timestamp } from '../../kernel/clock.js';
import { limits } from '../../kernel/limits.js';
import { err } from '../../kernel/result.js';
import type { FleetView } from '../resource/fleet-view.js';
import { pick } from '../resource/lifecycle.js';
import type { Decision, Refusal } from '../resource/refusal.js';
import {
  declaringResource,
  resourceOf,
  resources,
  singletons,
  type AnyState,
  type FleetCommand,
  type FleetEvent,
} from './resources.js';

type Decide = (fleet: FleetView, command: FleetCommand) => Decision<FleetEvent>;

const decisions: ReadonlyMap<string, Decide> = new Map(
  [...Object.values(resources), ...Object.values(singletons)].flatMap(
    ({ decide }) => Object.entries(decide) as [string, Decide][],
  ),
);

/** The events of a command, none if nothing changes, or a refusal. */
export function decideFleet(fleet: FleetView, command: FleetCommand): Decision<FleetEvent> {
  const decide = decisions.get(command.type);
  if (decide === undefined) throw new Error(`no resource of the fleet decides the command ${command.type}`);
  const decision = decide(fleet, command);
  const oversized = decision.ok ? oversizedDefinition(fleet, decision.value) : undefined;
  return oversized === undefined ? decision : err(oversized);
}

/** A context for measuring an event; no definition depends on it. */
const undecided = {
  at: timestamp(0),
  commandId: '',
  revision: -1,
  actor: { type: 'system', id: '', name: '' },
} as const;

/**
 * The refusal of a create or an edit that makes a definition too large. No event holds more than two definitions, so with
 * this bound every event fits into a command, and what can be created can be edited, deployed, deleted and reverted. Older
 * logs may hold larger definitions, which can still be deployed and deleted.
 */
function oversizedDefinition(fleet: FleetView, events: readonly FleetEvent[]): Refusal | undefined {
  for (const event of events) {
    const declaring = declaringResource(event);
    if (declaring.kind !== 'resource') continue;
    const { type, noun, fields, evolve } = declaring.declaration;
    if (event.type !== `${noun}Created` && event.type !== `${noun}Updated`) continue;
    const before = fleet.get<AnyState>({ type }, resourceOf(event).id);
    const after = evolve(before, event, undecided);
    if (after === undefined) continue;
    const bytes = Buffer.byteLength(JSON.stringify(pick(after, fields)));
    if (bytes <= limits.fleet.definitionBytes) continue;
    return {
      code: 'payload_too_large',
      message: `the definition of the ${type} would be ${bytes} bytes as JSON; expected at most ${limits.fleet.definitionBytes}`,
    };
  }
  return undefined;
}
