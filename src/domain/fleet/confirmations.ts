/**
 * Changes that wait for a person to confirm them: the index of the resources that they changed last, and the refusal of later commands
 * on them. Implements `docs/contract/rollouts.md#confirmed-changes`.
 */
import { confirmationKey, type ConfirmationState } from '../confirmation/confirmation.js';
import { ownerOf, type Owner } from '../references/references.js';
import { refuse, type Decision } from '../resource/refusal.js';
import { rolloutKey } from '../rollout/rollout.js';
import type { Fleet } from './fleet.js';
import { resourceOf, type AnyState, type FleetEvent } from './resources.js';

export function moveConfirming({ confirming }: Fleet, from: AnyState | undefined, to: AnyState | undefined): void {
  const [before, after] = [from, to].map((state) => state as ConfirmationState | undefined);
  if (before?.state === after?.state) return;
  for (const owner of before?.owners ?? []) confirming.delete(owner);
  if (after?.state === 'waiting') for (const owner of after.owners) confirming.set(owner, after.id);
}

/** Facts that agents and the service record about a resource do not count as commands on it. */
const ofService: ReadonlySet<FleetEvent['type']> = new Set<FleetEvent['type']>([
  'NodeGenerationRaised',
  'NodeReportedAddressChanged',
  'NodePskCandidateProven',
  'NodePskCandidateDropped',
  'CredentialOverlapEnded',
  'WebhookStopped',
  'JoinTokenUsed',
  'CompilerVersionRaised',
  'CompilerVersionLowered',
]);

/** The decision, or a refusal if it is about what waits for a confirmation. @param reverted the entry it takes back */
export function unlessConfirming(
  fleet: Fleet,
  decision: Decision<FleetEvent>,
  reverted: string | undefined,
): Decision<FleetEvent> {
  if (!decision.ok) return decision;
  for (const event of decision.value) {
    const { type, id } = resourceOf(event);
    const entry = fleet.get(confirmationKey, fleet.confirmingOf(type, id))?.name;
    if (entry === undefined || entry === reverted || ofService.has(event.type)) continue;
    const name = fleet.nameOf(type, id) ?? id;
    return refuse(
      'conflict',
      `the last change of the ${type} "${name}" waits to be confirmed: confirm or revert the entry ${entry} first`,
    );
  }
  return decision;
}

/** What the events change, each once; a rollout or a confirmation itself changes nothing. */
export function ownersChanged(events: readonly FleetEvent[]): readonly Owner[] {
  const aside: readonly string[] = [rolloutKey.type, confirmationKey.type];
  const found = events.map((event) => resourceOf(event)).filter(({ type }) => !aside.includes(type));
  return [...new Set(found.map(({ type, id }) => ownerOf(type, id)))];
}
