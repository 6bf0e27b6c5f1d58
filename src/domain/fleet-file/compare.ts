/**
 * Compares a document with the fleet and lists the commands that would make the fleet match it, in order: creates, edits and
 * adoptions, then deploys, then deletes. Decides nothing: `carry-out.ts` tries the commands together.
 * Implements `docs/contract/automation.md#the-fleet-as-a-file`.
 */
import { chainKey, definitionOf, type ChainDefinition } from '../chain/chain.js';
import { credentialKey } from '../credential/credential.js';
import { decideFleet } from '../fleet/decide.js';
import type { Fleet } from '../fleet/fleet.js';
import { commandOn, resourceTypes, type AnyState, type FleetCommand, type ResourceType } from '../fleet/resources.js';
import { someOf, type DocumentScope } from '../fleet-set/declaration.js';
import {
  nameOfPolicy,
  policyId,
  policyKey,
  type PolicyDefinition,
  type PolicyState,
} from '../listener-policy/policy.js';
import { overrideField } from '../settings/evolve.js';
import { jsonEqual, type JsonObject } from '../../kernel/json.js';
import { forEach } from '../../kernel/pieces.js';
import type { DocumentMistake, FileFlags, FleetDocument, Wanted } from './document.js';
import { noReferences, withOtherIds } from './naming.js';
import { ownerChange, ownersIn, statesIn } from './owned.js';
import { resolveNames, type Resolved } from './resolve.js';

export type StepAction = 'create' | 'update' | 'rename' | 'delete' | 'deploy' | 'adopt';

/** One command towards the document. */
export interface Change {
  readonly action: StepAction;
  readonly resource: { readonly type: string; readonly name: string; readonly id: string };
  readonly command: FleetCommand;
  /** The path of its entry in the document; undefined for a delete. */
  readonly at?: readonly PropertyKey[];
}

export interface Comparison {
  readonly changes: readonly Change[];
  readonly mistakes: readonly DocumentMistake[];
  /** Reasons to refuse the document besides those that a command meets. */
  readonly obstacles: readonly string[];
  /** The versions that were compared: of the document's resources that exist, and of those to be deleted. */
  readonly versions: readonly (readonly [type: string, id: string, version: number])[];
  readonly scope: DocumentScope;
}

const resourcesPerPiece = 200;

/** Yields between two pieces. The fleet must not change before the end. */
export function* compareWithFleet(
  fleet: Fleet,
  document: FleetDocument,
  flags: FileFlags,
): Generator<void, Comparison> {
  const names = yield* resolveNames(fleet, document);
  const comparing: Comparing = {
    fleet,
    document,
    flags,
    names,
    changes: [],
    deploys: [],
    obstacles: [],
    mistakes: [...names.mistakes],
    versions: [],
    open: [],
    given: [],
  };
  const { changes, deploys, mistakes, obstacles, versions } = comparing;
  yield* forEach(inOrder(document.resources), resourcesPerPiece, (wanted) => compareOne(comparing, wanted));
  yield* comparePolicies(comparing);
  compareSettings(comparing);
  yield;
  const gone = unnamed(comparing);
  yield;
  const deletes = flags.prune ? gone.map(([type, state]) => deletion(fleet, type, state)) : [];
  if (flags.prune) for (const [type, { id, version }] of gone) versions.push([type, id, version]);
  const most = flags.maxDeletes ?? Math.max(10, Math.floor(ownersIn(fleet, document.set).length / 5));
  if (deletes.length > most) {
    obstacles.push(
      `${deletes.length} resources would be deleted, more than the ${most} allowed; raise max_deletes if that is meant`,
    );
  }
  yield;
  const kept = flags.prune ? [] : gone.map(([, { id }]) => id);
  const scope = scopeOf(comparing, kept);
  return { changes: [...changes, ...deploys, ...deletes], mistakes, obstacles, versions, scope };
}

/** @param kept ids of the set's resources that the document does not name and does not delete */
function scopeOf({ document, names, open, given }: Comparing, kept: readonly string[]): DocumentScope {
  return {
    // Where there are too many ids to name, everything counts as left open, and as named.
    ...(open.length === 0 ? {} : { open: someOf(open, given) ?? 'all' }),
    sections: [...document.sections, ...(document.policies === undefined ? [] : [policyKey.type])],
    ...(kept.length === 0 ? {} : { unnamed: someOf(kept, namedIds(document, names)) ?? [] }),
    ...(document.settings === undefined ? {} : { settings: namedSettings(document.settings, names) }),
  };
}

/** The fields of the settings that a document names, an override as `nodes.<id>`. */
function namedSettings({ nodes = [], ...globals }: NonNullable<FleetDocument['settings']>, names: Resolved): string[] {
  return [...Object.keys(globals), ...nodes.map(({ node_id }) => overrideField(names.idOf(node_id)))];
}

/** A comparison in progress. */
interface Comparing {
  readonly fleet: Fleet;
  readonly document: FleetDocument;
  readonly flags: FileFlags;
  readonly names: Resolved;
  readonly changes: Change[];
  readonly deploys: Change[];
  readonly obstacles: string[];
  readonly mistakes: DocumentMistake[];
  readonly versions: Comparison['versions'][number][];
  /** Chains whose deployment, and credentials whose key, the document leaves alone, and those that it gives. */
  readonly open: string[];
  readonly given: string[];
}

/** Resources before those that refer to them, and renames before resources that take a former name. */
function inOrder(wanted: readonly Wanted[]): readonly Wanted[] {
  const rank = ({ type, was, fields }: Wanted): number =>
    resourceTypes.indexOf(type) * 4 +
    (was === undefined ? 2 : 0) +
    (typeof fields['x25519_credential_id'] === 'string' ? 1 : 0);
  const byRank: Wanted[][] = [];
  for (const one of wanted) (byRank[rank(one)] ??= []).push(one);
  return byRank.flat();
}

function compareOne(comparing: Comparing, wanted: Wanted): void {
  const { fleet, document, names, changes, obstacles, open, given } = comparing;
  const { type, name, at } = wanted;
  const id = names.idOf(wanted.id);
  const resource = { type, name, id };
  const references = document.referenceFields.get(type) ?? noReferences;
  const withIds = (given: JsonObject): object => withOtherIds(given, references, names.idOf) as object;
  const fields = withIds(wanted.fields);
  const before = names.isNew(wanted) ? undefined : fleet.get<AnyState>({ type }, id);
  if (before === undefined) {
    const create = commandOn('Create', type, { id, name, ...fields, ...ownedBy(document) });
    changes.push({ action: 'create', resource, command: create, at });
  } else {
    if (type === credentialKey.type && Reflect.get(fields, 'key_type') !== Reflect.get(before, 'key_type')) {
      compareOwner(comparing, resource, before);
      obstacles.push(
        `the credential "${name}" has another key_type; a key_type cannot be changed, so give it another name`,
      );
      return;
    }
    const values = wanted.edited === undefined ? fields : withIds(wanted.edited);
    const edit = commandOn('Update', type, { id, ifMatch: undefined, name, ...values });
    compareExisting(comparing, resource, before, edit, at);
  }
  if (type === credentialKey.type) (wanted.keepsKey === true ? open : given).push(id);
  if (type === chainKey.type) (wanted.deploy ? given : open).push(id);
  if (wanted.deploy) compareDeploy(comparing, resource, fields, at);
}

const ownedBy = ({ set }: FleetDocument): object => (set === null ? {} : { managed_by: set });

/** Adopts and edits a resource that exists, as far as it differs. */
function compareExisting(
  comparing: Comparing,
  resource: Change['resource'],
  before: AnyState,
  edit: FleetCommand,
  at: readonly PropertyKey[],
): void {
  const { fleet, document, changes } = comparing;
  compareOwner(comparing, resource, before);
  if (document.set !== null && (before.managed_by ?? null) !== document.set) {
    changes.push({ action: 'adopt', resource, command: ownerChange(resource.type, before, document.set), at });
  }
  const decision = decideFleet(fleet, edit);
  // The dry run of all changes meets a refusal again.
  if (decision.ok && decision.value.length === 0) return;
  const isSameName = resource.type === policyKey.type || before.name === resource.name;
  changes.push({ action: isSameName ? 'update' : 'rename', resource, command: edit, at });
}

function compareOwner(
  { document, flags, versions, obstacles }: Comparing,
  resource: Change['resource'],
  before: AnyState,
): void {
  versions.push([resource.type, resource.id, before.version]);
  const obstacle = ownership(document.set, flags, resource, before);
  if (obstacle !== undefined) obstacles.push(obstacle);
}

function compareDeploy(
  { fleet, deploys, mistakes }: Comparing,
  resource: Change['resource'],
  fields: object,
  at: readonly PropertyKey[],
): void {
  if (Reflect.get(fields, 'enabled') === false) {
    mistakes.push({ at: [...at, 'deploy'], message: 'expected false, or none, of a chain that is not enabled' });
    return;
  }
  const deployed = fleet.get(chainKey, resource.id)?.deployed ?? null;
  if (deployed !== null && jsonEqual(definitionOf(deployed), definitionOf(fields as ChainDefinition))) return;
  deploys.push({
    action: 'deploy',
    resource,
    command: { type: 'DeployChain', id: resource.id, ifMatch: undefined },
    at,
  });
}

/** Why a resource's owner keeps the document from changing it. */
function ownership(
  set: string | null,
  { adopt, adoptFrom }: FileFlags,
  { type, name }: Change['resource'],
  { managed_by }: AnyState,
): string | undefined {
  const owner = managed_by ?? null;
  if (owner === set) return undefined;
  if (owner === null) {
    return adopt ? undefined : `the ${type} "${name}" belongs to no set; with adopt, this set takes it over`;
  }
  if (set !== null && adoptFrom.includes(owner)) return undefined;
  return `the ${type} "${name}" belongs to the set "${owner}"; with that set in adopt_from, this one takes it over`;
}

function* comparePolicies(comparing: Comparing): Generator<void, void> {
  const { fleet, document, names, changes } = comparing;
  const nodes = new Map(
    document.resources.flatMap(({ type, id, name }) => (type === 'node' ? [[names.idOf(id), name] as const] : [])),
  );
  yield* forEach(document.policies ?? [], resourcesPerPiece, ({ fields: given, at }) => {
    const fields: PolicyDefinition = { ...given, node_id: names.idOf(given.node_id) };
    const id = policyId(fields);
    const before = fleet.get(policyKey, id);
    const name = nameOfPolicy(id, (node) => nodes.get(node) ?? fleet.nameOf('node', node));
    const resource = { type: policyKey.type, name, id };
    const save: FleetCommand = { type: 'SaveListenerPolicy', ifMatch: undefined, ...fields };
    if (before !== undefined) compareExisting(comparing, resource, before, save, at);
    else changes.push({ action: 'create', resource, command: { ...save, ...ownedBy(document) }, at });
  });
}

function compareSettings({ fleet, document: { settings }, names, changes }: Comparing): void {
  if (settings === undefined) return;
  const nodes = settings.nodes?.map((override) => ({ ...override, node_id: names.idOf(override.node_id) }));
  const edit: FleetCommand = {
    ...settings,
    ...(nodes === undefined ? {} : { nodes }),
    type: 'UpdateConnectivity',
    ifMatch: undefined,
  };
  const decision = decideFleet(fleet, edit);
  if (decision.ok && decision.value.length === 0) return;
  const resource = { type: 'connectivity', name: 'connectivity', id: 'connectivity' };
  changes.push({ action: 'update', resource, command: edit, at: ['settings'] });
}

/** The set's resources that the document does not name, referrers first. Absent sections are left alone. */
function unnamed({ fleet, document, names }: Comparing): readonly (readonly [ResourceType, AnyState])[] {
  const { set, sections } = document;
  if (set === null) return [];
  const kept = new Set(namedIds(document, names));
  return resourceTypes.toReversed().flatMap((type) => {
    const present = type === policyKey.type ? document.policies !== undefined : sections.has(type);
    if (!present) return [];
    const gone = statesIn(fleet, type, set).filter(({ id }) => !kept.has(id));
    // A credential that refers to another goes first.
    gone.sort((a, b) => Number(isReferring(b)) - Number(isReferring(a)));
    return gone.map((state) => [type, state] as const);
  });
}

const namedIds = ({ resources: named, policies = [] }: FleetDocument, names: Resolved): readonly string[] => [
  ...named.map(({ id }) => names.idOf(id)),
  ...policies.map(({ fields }) => policyId({ ...fields, node_id: names.idOf(fields.node_id) })),
];

function deletion(fleet: Fleet, type: ResourceType, state: AnyState): Change {
  const { id, name } = state;
  if (type !== policyKey.type) {
    const remove = commandOn('Delete', type, { id, ifMatch: undefined });
    return { action: 'delete', resource: { type, name, id }, command: remove };
  }
  const { node_id, transport, listen_addr, listen_port } = state as PolicyState;
  const key = { node_id, transport, listen_addr, listen_port };
  const remove: FleetCommand = { type: 'DeleteListenerPolicy', ifMatch: undefined, ...key };
  const policyName = nameOfPolicy(id, (node) => fleet.nameOf('node', node));
  return { action: 'delete', resource: { type, name: policyName, id }, command: remove };
}

const isReferring = (state: AnyState): boolean => (Reflect.get(state, 'x25519_credential_id') ?? null) !== null;
