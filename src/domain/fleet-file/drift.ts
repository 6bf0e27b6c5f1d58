/**
 * Drift: how a set's resources differ from what its last apply left. Whatever the document leaves open or does not name
 * never counts, such as the deploy of a chain that it does not deploy. The fold keeps what applies left
 * (`fleet-set/left-by-apply.ts`); the audit knows who changed it. Implements
 * `docs/contract/automation.md#the-fleet-as-a-file`, drift.
 */
import { definitionOf, deployedField, type ChainDefinition } from '../chain/chain.js';
import { definitionChanges } from '../chain/declaration.js';
import { credentialKey, namesOfSelfSigned, type CertificateDetails } from '../credential/credential.js';
import { describedFields } from '../fleet/apply.js';
import type { Fleet } from '../fleet/fleet.js';
import { resourceTypes, type AnyState, type ResourceType } from '../fleet/resources.js';
import { baseOf, isAmong, type DriftBase } from '../fleet-set/declaration.js';
import { fieldIn, settingsOwner, type Left } from '../fleet-set/left-by-apply.js';
import { nameOfPolicy, policyKey } from '../listener-policy/policy.js';
import { labelChanges, type Labels } from '../node/labels.js';
import { nodeKey } from '../node/node.js';
import { splitOwner } from '../references/references.js';
import { fieldChange, fieldChanges, type AuditChange } from '../resource/audit-change.js';
import { sortedBy } from '../../kernel/compare-text.js';
import { jsonEqual } from '../../kernel/json.js';
import { getOrMake } from '../../kernel/maps.js';
import { forEach } from '../../kernel/pieces.js';
import { sortKey } from '../resource/meta.js';
import { fieldsOfSettings } from '../settings/evolve.js';

export interface DriftedResource {
  readonly resource: { readonly type: string; readonly id: string; readonly name: string };
  /** From the values that the apply left to the present ones. */
  readonly changes: readonly AuditChange[];
}

export interface FleetSet {
  readonly set: string;
  /** How many resources it owns, by type; types without any are left out. */
  readonly resources: { readonly [type: string]: number };
  /** The apply from which drift is measured; null before the first, or when it was reverted. */
  readonly base: DriftBase | null;
  /** How many resources have drifted. */
  readonly drift: number;
}

/** Resources counted, and compared, at a time. */
const perPiece = { counted: 2_000, compared: 100 };

/** All sets that own something or have a base, by name. Yields between two pieces. */
export function* setsOf(fleet: Fleet): Generator<void, readonly FleetSet[]> {
  const bases = fleet.singletons.fleet.value;
  const counts = new Map<string, Record<string, number>>(Object.keys(bases).map((set) => [set, {}]));
  let counted = 0;
  for (const type of resourceTypes) {
    for (const { managed_by } of fleet.tables[type].values() as Iterable<AnyState>) {
      counted += 1;
      if (counted % perPiece.counted === 0) yield;
      if (managed_by === undefined || managed_by === null) continue;
      const count = getOrMake(counts, managed_by, () => ({}));
      count[type] = (count[type] ?? 0) + 1;
    }
  }
  const drifted = new Map<string, number>();
  yield* driftedResources(fleet, undefined, ({ set }) => drifted.set(set, (drifted.get(set) ?? 0) + 1));
  return sortedBy(counts, ([set]) => sortKey(set)).map(([set, resources]) => {
    return { set, resources, base: baseOf(bases, set) ?? null, drift: drifted.get(set) ?? 0 };
  });
}

/** Whether a set owns something or has a base. */
export function hasSet(fleet: Fleet, set: string): boolean {
  if (baseOf(fleet.singletons.fleet.value, set) !== undefined) return true;
  for (const type of resourceTypes) {
    for (const { managed_by } of fleet.tables[type].values() as Iterable<AnyState>) if (managed_by === set) return true;
  }
  return false;
}

/** The drift of a set, by type and name. Yields between two pieces. */
export function* driftOf(fleet: Fleet, set: string): Generator<void, readonly DriftedResource[]> {
  const drifted: DriftedResource[] = [];
  yield* driftedResources(fleet, set, ({ resource, changes }) => void drifted.push({ resource, changes }));
  const rank = ({ resource: { type, name, id } }: DriftedResource): string =>
    [String(resourceTypes.indexOf(type as ResourceType) + 1).padStart(2, '0'), sortKey(name), id].join('\u0000');
  return sortedBy(drifted, rank);
}

/** @param only this set */
function* driftedResources(
  fleet: Fleet,
  only: string | undefined,
  found: (one: DriftedResource & { readonly set: string }) => void,
): Generator<void> {
  const ofSet = [...fleet.left.values()].filter(({ set }) => only === undefined || set === only);
  yield* forEach(ofSet, perPiece.compared, (left) => {
    const base = baseOf(fleet.singletons.fleet.value, left.set);
    if (base === undefined) return;
    const changes = left.owner === settingsOwner ? ofSettings(fleet, left, base) : ofResource(fleet, left, base);
    if (changes.length === 0) return;
    const { type, id } = splitOwner(left.owner);
    found({ set: left.set, resource: { type, id, name: nameOf(fleet, type, id, left) }, changes });
  });
}

function nameOf(fleet: Fleet, type: string, id: string, { state }: Left): string {
  if (type !== policyKey.type) return fleet.nameOf(type, id) ?? String(fieldIn(state, 'name') ?? id);
  return nameOfPolicy(id, (node) => fleet.nameOf(nodeKey.type, node));
}

function ofSettings(fleet: Fleet, { state }: Left, { settings = [] }: DriftBase): readonly AuditChange[] {
  return changedFields(state, fieldsOfSettings(fleet.singletons.connectivity.value), settings);
}

function ofResource(fleet: Fleet, left: Left, base: DriftBase): readonly AuditChange[] {
  const { type, id } = splitOwner(left.owner);
  const { state, set } = left;
  // Resources that the document did not name never drift.
  if (state === null || fieldIn(state, 'managed_by') !== set || !isNamed(base, type, id)) return [];
  const now = fleet.get<AnyState>({ type }, id);
  // Another set may have adopted it.
  const owner = now === undefined ? (left.goneFrom === undefined ? set : left.goneFrom) : (now.managed_by ?? null);
  if (owner !== set) return [];
  return differencesOf(type as ResourceType, state, now, base.open !== undefined && isAmong(base.open, id));
}

function isNamed({ sections, unnamed }: DriftBase, type: string, id: string): boolean {
  if (sections?.includes(type) === false) return false;
  return unnamed === undefined || !isAmong(unnamed, id);
}

/** @param open whether the document leaves open what is deployed, or the key */
function differencesOf(
  type: ResourceType,
  left: object,
  now: AnyState | undefined,
  open: boolean,
): readonly AuditChange[] {
  const fields = describedFields(type).filter((field) => field !== deployedField && field !== 'managed_by');
  if (now === undefined) return changedFields(left, undefined, fields);
  const keyIsOpen = type === credentialKey.type && (open || isRenewed(left, now));
  const compared = keyIsOpen ? fields.filter((field) => !keyFields.has(field)) : fields;
  return [...changedFields(left, now, compared), ...(open ? [] : deployChanges(left, now))];
}

const keyFields: ReadonlySet<string> = new Set(['public_key', 'certificate_pem', 'certificate']);

/** Whether a self-signed certificate was renewed for the same names. */
function isRenewed(left: object, now: object): boolean {
  const [before, after] = [left, now].map((state) => {
    const certificate = Reflect.get(state, 'certificate') as CertificateDetails | null | undefined;
    return certificate === null || certificate === undefined ? undefined : namesOfSelfSigned(certificate);
  });
  return before !== undefined && jsonEqual(before, after);
}

/** Field changes as the audit shows them. */
function changedFields(
  left: object | null,
  now: object | undefined,
  fields: readonly string[],
): readonly AuditChange[] {
  return fields.flatMap((field) => {
    const [from, to] = [fieldIn(left, field), fieldIn(now, field)];
    if (jsonEqual(from, to)) return [];
    if (field === 'labels') return fieldChanges(labelChanges((from ?? {}) as Labels, (to ?? {}) as Labels));
    return fieldChange(field, from, to);
  });
}

/** A deploy counts as drift if the apply left the chain deployed as defined. */
function deployChanges(left: object, now: object): readonly AuditChange[] {
  const deployedIn = (state: object): ChainDefinition | null => {
    const deployed = Reflect.get(state, deployedField) as ChainDefinition | null | undefined;
    return deployed === null || deployed === undefined ? null : definitionOf(deployed);
  };
  const [before, after] = [deployedIn(left), deployedIn(now)];
  if (before === null || !jsonEqual(before, definitionOf(left as ChainDefinition)) || jsonEqual(before, after))
    return [];
  return definitionChanges(before, after).map((change) => ({ ...change, path: `${deployedField}.${change.path}` }));
}
