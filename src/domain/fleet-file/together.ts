/**
 * Commands that are tried together on a draft of the fleet, where the result alone is judged: one that the fleet refuses on
 * the way is tried without the rules among resources, and must hold once all others are carried out too. So two chains may
 * trade listeners, and an upstream may be replaced in one go. Documents are carried out so, and applies taken back. In
 * pieces, because many commands take a while. Implements `docs/contract/automation.md#the-fleet-as-a-file`, "Atomic".
 */
import { applyInPieces, putResource } from '../fleet/apply.js';
import { decideFleet } from '../fleet/decide.js';
import type { Fleet } from '../fleet/fleet.js';
import { draftFleet } from '../fleet/fleet.js';
import { hypothetical } from '../fleet/hypothetical.js';
import type { AnyState, FleetCommand, FleetEvent, ResourceType } from '../fleet/resources.js';
import { resourceOfType } from '../fleet/resources.js';
import { claimIndexOn, createClaimEntries } from '../listeners/claims.js';
import { forEach } from '../../kernel/pieces.js';
import type { Result } from '../../kernel/result.js';
import { pick } from '../resource/lifecycle.js';
import type { FleetView } from '../resource/fleet-view.js';
import type { Refusal } from '../resource/refusal.js';
import type { SettingsState } from '../settings/settings.js';
import type { StepAction } from './compare.js';

/** What is tried: a command about one resource. */
export interface Attempt {
  readonly action: StepAction;
  readonly resource: { readonly type: string; readonly name: string; readonly id: string };
}

export interface Held<A> {
  readonly attempt: A;
  readonly events: readonly FleetEvent[];
}

export interface TriedTogether<A> {
  /** Those that change something, in their order. */
  readonly held: readonly Held<A>[];
  readonly refused: readonly { readonly attempt: A; readonly refusal: Refusal }[];
  /** The fleet behind all of them. */
  readonly after: Fleet;
  readonly touched: ReadonlySet<string>;
}

/** So many are tried at a time. */
const perPiece = 25;

/** Yields between two pieces. @param commandOf on what those before it leave */
export function* triedTogether<A extends Attempt>(
  fleet: Fleet,
  attempts: readonly A[],
  commandOf: (attempt: A, draft: Fleet) => Result<FleetCommand, Refusal>,
): Generator<void, TriedTogether<A>> {
  const { state: draft } = draftFleet(fleet);
  const held: Held<A>[] = [];
  const tentative: { readonly attempt: A; readonly command: FleetCommand; readonly before: Before }[] = [];
  const refused: { readonly attempt: A; readonly refusal: Refusal }[] = [];
  const touched = new Set<string>();
  const missing = new Set<string>();
  for (const [index, attempt] of attempts.entries()) {
    if (index > 0 && index % perPiece === 0) yield;
    const command = commandOf(attempt, draft);
    if (!command.ok) {
      refused.push({ attempt, refusal: command.error });
      continue;
    }
    // What refers to a resource that could not be created would be refused for that alone.
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
    // Settings look at all nodes, and so does what follows.
    if (isSettings(attempt)) yield;
    if (!strict.ok) tentative.push({ attempt, command: command.value, before: stateOf(draft, attempt) });
    for (const id of yield* applyInPieces(draft, hypothetical(draft, alone.value))) touched.add(id);
    held.push({ attempt, events: alone.value });
  }
  yield* forEach(tentative, perPiece, ({ attempt, command, before }) => {
    const refusal = refusalAfter(draft, attempt, command, before);
    if (refusal !== undefined) refused.push({ attempt, refusal });
  });
  return { held, refused, after: draft, touched };
}

function mentions(command: FleetCommand, ids: ReadonlySet<string>): boolean {
  const text = JSON.stringify(command);
  return [...ids].some((id) => text.includes(id));
}

const nobody = new Set<string>();
const noClaims = claimIndexOn(createClaimEntries());

/** The fleet without the rules among resources. */
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
 * Why a command does not hold although everything else has been carried out: it is decided once more, on the result with
 * the definition that was there before it.
 */
function refusalAfter(draft: Fleet, attempt: Attempt, command: FleetCommand, before: Before): Refusal | undefined {
  const { state: probe } = draftFleet(draft);
  const { type, id } = attempt.resource;
  const declaration = resourceOfType(type);
  // Nothing is left of what was done to a resource that has gone since.
  if (declaration !== undefined && attempt.action !== 'delete' && !draft.has(type, id)) return undefined;
  // A deploy is judged by the listeners that it leaves.
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
