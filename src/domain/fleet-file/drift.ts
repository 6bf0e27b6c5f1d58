/**
 * Drift: what was changed by hand of what a set owns since its last apply, and still is otherwise. What the document leaves
 * open is none: a deploy of a chain that it does not deploy, a key that it does not give. The fold keeps the changes
 * (`fleet-set/hand-changes.ts`); here they are compared with what is now. Implements
 * `docs/contract/automation.md#the-fleet-as-a-file`, drift.
 */
import type { ChainDefinition, ChainState } from '../chain/chain.js';
import { chainKey, definitionOf, deployedField } from '../chain/chain.js';
import type { CertificateDetails } from '../credential/credential.js';
import { credentialKey, namesOfSelfSigned } from '../credential/credential.js';
import type { Fleet } from '../fleet/fleet.js';
import type { AnyState, ResourceType } from '../fleet/resources.js';
import { eventDeclaration, resourceOfType, resourceTypes } from '../fleet/resources.js';
import type { DriftBase } from '../fleet-set/declaration.js';
import { baseOf } from '../fleet-set/declaration.js';
import type { HandChange, HandChanged } from '../fleet-set/hand-changes.js';
import { since } from '../fleet-set/hand-changes.js';
import { nodeOfPolicy, policyKey } from '../listener-policy/policy.js';
import { labelChanges } from '../node/labels.js';
import { nodeKey } from '../node/node.js';
import type { Labels } from '../node/node.js';
import { splitOwner } from '../references/references.js';
import type { AuditChange } from '../resource/audit-change.js';
import type { Changes } from '../resource/change.js';
import type { AnyEvent } from '../resource/lifecycle.js';
import type { Json, JsonObject } from '../../kernel/json.js';
import { jsonEqual } from '../../kernel/json.js';

/** One field, from the value that the apply left to the one that it has now. */
export interface Drifted extends AuditChange {
  /** The newest entry that changed it. */
  readonly entry_id: string;
}

export interface DriftedResource {
  readonly resource: { readonly type: string; readonly id: string; readonly name: string };
  readonly changes: readonly Drifted[];
}

/** A set, as what it owns and the apply that its drift counts from. */
export interface FleetSet {
  readonly set: string;
  /** How many resources of each type it owns, without types that it owns none of. */
  readonly resources: { readonly [type: string]: number };
  /** Null when no document was applied, or the only apply was taken back. */
  readonly base: DriftBase | null;
  /** How many resources have drifted. */
  readonly drift: number;
}

/** All sets that own something or have a base, by name. */
export function setsOf(fleet: Fleet): readonly FleetSet[] {
  const bases = fleet.singletons.fleet.value;
  const counts = new Map<string, Record<string, number>>(Object.keys(bases).map((set) => [set, {}]));
  for (const type of resourceTypes) {
    for (const { managed_by } of fleet.tables[type].values() as Iterable<AnyState>) {
      if (managed_by === undefined || managed_by === null) continue;
      const count = counts.get(managed_by) ?? {};
      counts.set(managed_by, count);
      count[type] = (count[type] ?? 0) + 1;
    }
  }
  const drifted = new Map<string, number>();
  for (const { set } of driftedResources(fleet)) drifted.set(set, (drifted.get(set) ?? 0) + 1);
  return [...counts]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([set, resources]) => ({
      set,
      resources,
      base: baseOf(bases, set) ?? null,
      drift: drifted.get(set) ?? 0,
    }));
}

/** Whether a set owns something or has a base. */
export function hasSet(fleet: Fleet, set: string): boolean {
  if (baseOf(fleet.singletons.fleet.value, set) !== undefined) return true;
  for (const type of resourceTypes) {
    for (const { managed_by } of fleet.tables[type].values() as Iterable<AnyState>) if (managed_by === set) return true;
  }
  return false;
}

/** The drift of a set, by type and name. */
export function driftOf(fleet: Fleet, set: string): readonly DriftedResource[] {
  const drifted = [...driftedResources(fleet, set)].map(({ resource, changes }) => ({ resource, changes }));
  const rank = ({ resource: { type, name, id } }: DriftedResource): string =>
    [String(resourceTypes.indexOf(type as ResourceType) + 1).padStart(2, '0'), name, id].join('\u0000');
  return drifted.sort((a, b) => (rank(a) < rank(b) ? -1 : 1));
}

/** @param only this set */
function* driftedResources(fleet: Fleet, only?: string): Generator<DriftedResource & { readonly set: string }> {
  for (const [owner, known] of fleet.handChanges.entries()) {
    const { set } = known;
    const base = baseOf(fleet.singletons.fleet.value, set);
    if (base === undefined || (only !== undefined && set !== only)) continue;
    const { type, id } = splitOwner(owner);
    const changes = type === settingsType ? ofSettings(fleet, known, base) : ofResource(fleet, type, id, known, base);
    if (changes.length > 0) yield { set, resource: { type, id, name: nameOf(fleet, type, id, known) }, changes };
  }
}

const settingsType = 'connectivity';

function nameOf(fleet: Fleet, type: string, id: string, { name }: HandChanged): string {
  if (type !== policyKey.type) return name;
  const nodeId = nodeOfPolicy(id);
  return (fleet.nameOf(nodeKey.type, nodeId) ?? nodeId) + id.slice(nodeId.length);
}

function ofSettings(fleet: Fleet, known: HandChanged, base: DriftBase): readonly Drifted[] {
  const { nodes, ...globals } = fleet.singletons.connectivity.value;
  const now = new Map<string, Json>([
    ...Object.entries(globals),
    ...Object.entries(nodes).map(([id, override]) => [`nodes.${id}`, { ...override }] as const),
  ]);
  const changes = changesSince(known, base, (field) => now.get(field) ?? null);
  return shown(since(known, base), { type: 'ConnectivityUpdated', data: { changes } });
}

function ofResource(fleet: Fleet, type: string, id: string, known: HandChanged, base: DriftBase): readonly Drifted[] {
  const declaration = resourceOfType(type);
  const state = fleet.get<AnyState>({ type }, id);
  // Another set may have taken it over.
  if (declaration === undefined || (state !== undefined && (state.managed_by ?? null) !== known.set)) return [];
  const { noun, singular } = declaration;
  const changed = since(known, base);
  const event = (verb: string, data: object): AnyEvent => ({
    type: `${noun}${verb}`,
    data: { [`${singular}_id`]: id, ...data },
  });
  const applied = new Map(changed.map((one) => [one.field, one.applied]));
  if (state === undefined) {
    applied.delete(deployedField);
    return shown(changed, event('Deleted', Object.fromEntries(applied)));
  }
  const { labels, ...fields } = withoutOpen(
    changesSince(known, base, (field) => (Reflect.get(state, field) as Json | undefined) ?? null),
    isOpen(base, id) && type === credentialKey.type,
  );
  const { [deployedField]: deployed, ...definition } = fields;
  const updated = event('Updated', {
    changes: {
      ...definition,
      ...(labels === undefined ? {} : labelChanges((labels.from ?? {}) as Labels, (labels.to ?? {}) as Labels)),
    },
  });
  const deploys = deployed === undefined ? [] : ofDeploy(fleet.get(chainKey, id), applied, deployed, isOpen(base, id));
  return [...shown(changed, updated), ...withEntries(changed, deploys)];
}

/** The fields that have another value than the base left. */
function changesSince(known: HandChanged, base: DriftBase, now: (field: string) => Json): Changes {
  return Object.fromEntries(
    since(known, base).flatMap(({ field, applied: from }) => {
      const to = now(field);
      return jsonEqual(from, to) ? [] : [[field, { from, to }]];
    }),
  );
}

const isOpen = ({ open = [] }: DriftBase, id: string): boolean => open === 'all' || open.includes(id);

const keyFields = ['public_key', 'certificate_pem', 'certificate'] as const;

/** Without a key that the document leaves as it is, and a self-signed certificate that was renewed for the same names. */
function withoutOpen(changes: Changes, keyIsOpen: boolean): Changes {
  const { certificate } = changes;
  const [before, after] = [certificate?.from, certificate?.to].map((value) =>
    value === undefined || value === null ? undefined : namesOfSelfSigned(value as unknown as CertificateDetails),
  );
  const renewed =
    before !== undefined && jsonEqual(before as unknown as JsonObject, (after ?? null) as unknown as Json);
  if (!keyIsOpen && !renewed) return changes;
  return Object.fromEntries(Object.entries(changes).filter(([field]) => !keyFields.some((key) => key === field)));
}

/** A deploy is drift where the apply left the chain deployed as it was defined, and does not leave that open. */
function ofDeploy(
  chain: ChainState | undefined,
  applied: ReadonlyMap<string, Json>,
  { from, to }: Changes[string],
  open: boolean,
): readonly AuditChange[] {
  if (chain === undefined || open || from === null) return [];
  const definition = (value: Json): ChainDefinition | null =>
    value === null ? null : definitionOf(value as unknown as ChainDefinition);
  const then = definitionOf({ ...chain, ...Object.fromEntries(applied) });
  const [before, after] = [definition(from), definition(to)];
  if (!jsonEqual(before as unknown as Json, then as unknown as Json)) return [];
  const deployed = { type: 'ChainDeployed', data: { chain_id: chain.id, definition: { from: before, to: after } } };
  return eventDeclaration(deployed)
    .audit(deployed)
    .changes.map((change) => ({ ...change, path: `${deployedField}.${change.path}` }));
}

/** The changes that an event would have in the audit. */
function shown(changed: readonly HandChange[], event: AnyEvent): readonly Drifted[] {
  return withEntries(changed, eventDeclaration(event).audit(event).changes);
}

/** The changes, each with the entry that changed its field. */
function withEntries(changed: readonly HandChange[], changes: readonly AuditChange[]): readonly Drifted[] {
  return changes.map((change) => {
    const entry_id = changed.find(({ field }) => isIn(field, change.path))?.entry_id ?? '';
    return { ...change, entry_id };
  });
}

const isIn = (field: string, path: string): boolean =>
  path.startsWith(field) && ['', '.', '['].includes(path.charAt(field.length));
