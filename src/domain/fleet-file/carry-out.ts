/**
 * Carries out what a document asks for, on a draft of the fleet, and judges the result alone: a command that the fleet
 * refuses on the way is tried without the rules among resources, and must hold once all others are carried out too. So two
 * chains may trade listeners, and an upstream may be replaced in one go. The same function serves plan and apply.
 * Implements `docs/contract/automation.md#the-fleet-as-a-file`, "Atomic".
 */
import { compileNode } from '../compile/compile-node.js';
import { snapshotDifference } from '../compile/plan.js';
import { oversizedSnapshot } from '../compile/size.js';
import { applyCommand, putResource } from '../fleet/apply.js';
import { decideFleet } from '../fleet/decide.js';
import type { Fleet } from '../fleet/fleet.js';
import { draftFleet } from '../fleet/fleet.js';
import { hypothetical } from '../fleet/hypothetical.js';
import type { AnyState, FleetEvent, ResourceType } from '../fleet/resources.js';
import { eventDeclaration, resourceOfType } from '../fleet/resources.js';
import { claimIndexOn, createClaimEntries } from '../listeners/claims.js';
import type { AuditChange } from '../resource/audit-change.js';
import { pick } from '../resource/lifecycle.js';
import type { FleetView } from '../resource/fleet-view.js';
import type { Refusal } from '../resource/refusal.js';
import type { SettingsState } from '../settings/settings.js';
import type { Wish } from './compare.js';
import type { DocumentMistake } from './document.js';

export interface Step {
  readonly wish: Wish;
  readonly events: readonly FleetEvent[];
  readonly changes: readonly AuditChange[];
  /** It cannot be taken back, as a new key cannot. */
  readonly final: boolean;
}

export interface CarriedOut {
  readonly steps: readonly Step[];
  readonly mistakes: readonly DocumentMistake[];
  readonly obstacles: readonly string[];
  readonly nodes: readonly ChangedNode[];
}

/** The rules that a node gets, has changed and loses. */
export interface ChangedNode {
  readonly node_id: string;
  readonly node_name: string;
  readonly added: readonly string[];
  readonly changed: readonly string[];
  readonly removed: readonly string[];
}

/** A step that held only without the rules among resources, and the state before it. */
interface Tentative {
  readonly wish: Wish;
  readonly before: AnyState | SettingsState | undefined;
}

export function carryOut(fleet: Fleet, wishes: readonly Wish[]): CarriedOut {
  const { state: draft } = draftFleet(fleet);
  const steps: Step[] = [];
  const tentative: Tentative[] = [];
  const refusals: { readonly wish: Wish; readonly refusal: Refusal }[] = [];
  const touched = new Set<string>();
  const missing = new Set<string>();
  for (const wish of wishes) {
    // What refers to a resource that could not be created would be refused for that alone.
    if (missing.size > 0 && mentions(wish, missing)) continue;
    const strict = decideFleet(draft, wish.command);
    const decision = strict.ok || strict.error.code !== 'conflict' ? strict : decideFleet(alone(draft), wish.command);
    if (!decision.ok) {
      refusals.push({ wish, refusal: decision.error });
      if (wish.action === 'create') missing.add(wish.resource.id);
      continue;
    }
    if (decision.value.length === 0) continue;
    if (!strict.ok) tentative.push({ wish, before: stateOf(draft, wish) });
    for (const id of applyCommand(draft, hypothetical(draft, decision.value))) touched.add(id);
    const audits = decision.value.map((event) => eventDeclaration(event).audit(event));
    steps.push({
      wish,
      events: decision.value,
      changes: audits.flatMap(({ changes }) => changes),
      // As for any entry, the first event says it: a node that gets a PSK can still be taken back.
      final: (audits[0]?.notRevertibleBecause ?? null) !== null,
    });
  }
  for (const { wish, before } of tentative) {
    const refusal = refusalAfter(draft, wish, before);
    if (refusal !== undefined) refusals.push({ wish, refusal });
  }
  const oversized = oversizedSnapshot(draft, new Set([...touched].filter((id) => draft.has('node', id))));
  return {
    steps,
    mistakes: refusals.flatMap(({ wish: { at }, refusal: { code, message } }) =>
      code === 'invalid_request' && at !== undefined ? [{ at, message }] : [],
    ),
    obstacles: [
      ...refusals.flatMap(({ wish: { resource, at }, refusal: { code, message } }) =>
        code === 'invalid_request' && at !== undefined ? [] : [`the ${resource.type} "${resource.name}": ${message}`],
      ),
      ...(oversized === undefined ? [] : [oversized.message]),
    ],
    nodes: [...touched].flatMap((id) => changedNode(fleet, draft, id)),
  };
}

function mentions({ command }: Wish, ids: ReadonlySet<string>): boolean {
  const text = JSON.stringify(command);
  return [...ids].some((id) => text.includes(id));
}

const nobody = new Set<string>();
const noClaims = claimIndexOn(createClaimEntries());

/** The fleet without the rules among resources. */
function alone(fleet: Fleet): FleetView {
  return {
    ...fleet,
    claims: noClaims,
    objectionTo: () => undefined,
    referrersOf: () => nobody,
    diallersOf: () => [],
    multiplexPortOf: () => null,
  };
}

const isSettings = ({ command }: Wish): boolean => command.type === 'UpdateConnectivity';

function stateOf(fleet: Fleet, wish: Wish): Tentative['before'] {
  const { type, id } = wish.resource;
  return isSettings(wish) ? fleet.singletons.connectivity.value : fleet.get<AnyState>({ type }, id);
}

/**
 * Why a command does not hold although everything else has been carried out: it is decided once more, on the result with
 * the definition that was there before it.
 */
function refusalAfter(draft: Fleet, wish: Wish, before: Tentative['before']): Refusal | undefined {
  const { state: probe } = draftFleet(draft);
  const { type, id } = wish.resource;
  const declaration = resourceOfType(type);
  // A deploy is judged by the listeners that it leaves.
  if (wish.action !== 'deploy') {
    if (isSettings(wish)) probe.singletons.connectivity.set(before as SettingsState);
    else if (declaration !== undefined) {
      const after = draft.get<AnyState>({ type }, id);
      const former = before as AnyState | undefined;
      const state =
        former === undefined || after === undefined ? former : { ...after, ...pick(former, declaration.fields) };
      putResource(probe, type as ResourceType, id, state);
    }
  }
  const decision = decideFleet(probe, wish.command);
  return decision.ok ? undefined : decision.error;
}

function changedNode(before: Fleet, after: Fleet, id: string): readonly ChangedNode[] {
  const name = after.nameOf('node', id) ?? before.nameOf('node', id) ?? id;
  if (!after.has('node', id)) return [];
  const [old, next] = [compileNode(before, id), compileNode(after, id)];
  const difference = snapshotDifference(old, next);
  const count = difference.added.length + difference.changed.length + difference.removed.length;
  return count === 0 ? [] : [{ node_id: id, node_name: name, ...difference }];
}
