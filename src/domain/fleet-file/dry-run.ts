/**
 * Tries commands together on a draft of the fleet and judges only the result: a command that conflicts on the way is tried
 * without the rules between resources, and must hold once all others are applied. So two chains may swap listeners, and an
 * upstream may be replaced in one go. Implements `docs/contract/automation.md#the-fleet-as-a-file`, "Atomic".
 */
import { applyInPieces } from '../fleet/apply.js';
import { decideFleet } from '../fleet/decide.js';
import { draftFleet, type Fleet } from '../fleet/fleet.js';
import { hypothetical } from '../fleet/hypothetical.js';
import { putResource } from '../fleet/put-resource.js';
import {
  resourceOfType,
  type AnyState,
  type FleetCommand,
  type FleetEvent,
  type ResourceType,
} from '../fleet/resources.js';
import { claimIndexOn, createClaimEntries } from '../listeners/claims.js';
import { forEach } from '../../kernel/pieces.js';
import type { Result } from '../../kernel/result.js';
import { pick } from '../resource/lifecycle.js';
import type { FleetView } from '../resource/fleet-view.js';
import type { Refusal } from '../resource/refusal.js';
import type { SettingsState } from '../settings/settings.js';
import type { Change } from './compare.js';

/** A command about one resource. */
export type Attempt = Pick<Change, 'action' | 'resource'>;

export interface DryRun<A> {
  /** The attempts that change something, in order. A refused one may be among them. */
  readonly accepted: readonly { readonly attempt: A; readonly events: readonly FleetEvent[] }[];
  readonly refused: readonly { readonly attempt: A; readonly refusal: Refusal }[];
  /** The fleet after all of them. */
  readonly after: Fleet;
  /** Ids of the touched nodes. */
  readonly touched: ReadonlySet<string>;
}

const commandsPerPiece = 25;

/** Yields between two pieces. @param commandOf makes the command of an attempt, given the fleet before it */
export function* dryRun<A extends Attempt>(
  fleet: Fleet,
  attempts: readonly A[],
  commandOf: (attempt: A, draft: Fleet) => Result<FleetCommand, Refusal>,
): Generator<void, DryRun<A>> {
  const { state: draft } = draftFleet(fleet);
  const accepted: DryRun<A>['accepted'][number][] = [];
  const tentative: { readonly attempt: A; readonly command: FleetCommand; readonly before: Before }[] = [];
  const refused: { readonly attempt: A; readonly refusal: Refusal }[] = [];
  const touched = new Set<string>();
  const missing = new Set<string>();
  for (const [index, attempt] of attempts.entries()) {
    if (index > 0 && index % commandsPerPiece === 0) yield;
    const command = commandOf(attempt, draft);
    if (!command.ok) {
      refused.push({ attempt, refusal: command.error });
      continue;
    }
    // A command that mentions a resource that could not be created would only repeat that refusal.
    if (missing.size > 0 && mentions(command.value, missing)) continue;
    const strict = decideFleet(draft, command.value);
    const alone =
      strict.ok || strict.error.code !== 'conflict' ? strict : decideFleet(withoutOthers(draft), command.value);
    if (!alone.ok) {
      refused.push({ attempt, refusal: alone.error });
      if (attempt.action === 'create') missing.add(attempt.resource.id);
      continue;
    }
    if (alone.value.length === 0) continue;
    // A change of settings looks at all nodes, and so does its fold.
    if (isSettings(attempt)) yield;
    if (!strict.ok) tentative.push({ attempt, command: command.value, before: stateOf(draft, attempt) });
    for (const id of yield* applyInPieces(draft, hypothetical(draft, alone.value))) touched.add(id);
    accepted.push({ attempt, events: alone.value });
  }
  yield* forEach(tentative, commandsPerPiece, ({ attempt, command, before }) => {
    const refusal = refusalAfter(draft, attempt, command, before);
    if (refusal !== undefined) refused.push({ attempt, refusal });
  });
  return { accepted, refused, after: draft, touched };
}

function mentions(command: FleetCommand, ids: ReadonlySet<string>): boolean {
  const text = JSON.stringify(command);
  return [...ids].some((id) => text.includes(id));
}

const nobody = new Set<string>();
const noClaims = claimIndexOn(createClaimEntries());

/** The fleet without the rules between resources. */
function withoutOthers(fleet: Fleet): FleetView {
  return {
    ...fleet,
    claims: noClaims,
    objectionTo: () => undefined,
    referrersOf: () => nobody,
    diallersOf: () => [],
    multiplexPortOf: () => null,
  };
}

/** The state before a command. */
type Before = AnyState | SettingsState | undefined;

const isSettings = ({ resource }: Attempt): boolean => resource.type === 'connectivity';

function stateOf(fleet: Fleet, attempt: Attempt): Before {
  const { type, id } = attempt.resource;
  return isSettings(attempt) ? fleet.singletons.connectivity.value : fleet.get<AnyState>({ type }, id);
}

/**
 * Why a command is refused even after all others: it is decided again, on the result with the resource's former definition.
 */
function refusalAfter(draft: Fleet, attempt: Attempt, command: FleetCommand, before: Before): Refusal | undefined {
  const { state: probe } = draftFleet(draft);
  const { type, id } = attempt.resource;
  const declaration = resourceOfType(type);
  // A later change deleted the resource.
  if (declaration !== undefined && attempt.action !== 'delete' && !draft.has(type, id)) return undefined;
  // A deploy is judged with the listeners that it leaves.
  if (attempt.action !== 'deploy') {
    if (isSettings(attempt)) probe.singletons.connectivity.set(before as SettingsState);
    else if (declaration !== undefined) {
      const after = draft.get<AnyState>({ type }, id);
      const former = before as AnyState | undefined;
      const state =
        former === undefined || after === undefined ? former : { ...after, ...pick(former, declaration.fields) };
      putResource(probe, type as ResourceType, id, state);
    }
  }
  const decision = decideFleet(probe, command);
  return decision.ok ? undefined : decision.error;
}
