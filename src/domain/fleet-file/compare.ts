/**
 * What a document asks of the fleet, as commands in the order in which they are carried out: creates, edits and adoptions,
 * then deploys, then deletes. A resource that is as the document says asks for nothing. In pieces, because a large document
 * takes a while. Nothing is decided here: `carry-out.ts` tries the commands together.
 * Implements `docs/contract/automation.md#the-fleet-as-a-file`.
 */
import type { ChainDefinition } from '../chain/chain.js';
import { chainKey, definitionOf } from '../chain/chain.js';
import { credentialKey } from '../credential/credential.js';
import { decideFleet } from '../fleet/decide.js';
import type { Fleet } from '../fleet/fleet.js';
import type { AnyResource, AnyState, FleetCommand, ResourceType } from '../fleet/resources.js';
import { resources, resourceTypes } from '../fleet/resources.js';
import type { FleetSaid } from '../fleet-set/declaration.js';
import { someOf } from '../fleet-set/declaration.js';
import { policyFields, policyId, policyKey } from '../listener-policy/policy.js';
import type { PolicyDefinition, PolicyKey, PolicyState } from '../listener-policy/policy.js';
import { pick } from '../resource/lifecycle.js';
import { overrideField } from '../settings/evolve.js';
import type { Json, JsonObject } from '../../kernel/json.js';
import { jsonEqual } from '../../kernel/json.js';
import { forEach } from '../../kernel/pieces.js';
import type { DocumentMistake, FileFlags, FleetDocument, Wanted } from './document.js';
import { noReferences, withOtherIds } from './naming.js';
import type { Resolved } from './resolve.js';
import { resolveNames } from './resolve.js';

export type StepAction = 'create' | 'update' | 'rename' | 'delete' | 'deploy' | 'adopt';

/** One command that the document asks for. */
export interface Wish {
  readonly action: StepAction;
  readonly resource: { readonly type: string; readonly name: string; readonly id: string };
  readonly command: FleetCommand;
  /** Of the entry of the document that asks for it; undefined for a delete. */
  readonly at?: readonly PropertyKey[];
}

export interface Comparison {
  readonly wishes: readonly Wish[];
  readonly mistakes: readonly DocumentMistake[];
  /** Why nothing may be carried out, whatever the commands. */
  readonly obstacles: readonly string[];
  /** Ids of the document's resources that exist, and of those to be deleted, with the versions that were compared. */
  readonly versions: readonly (readonly [type: string, id: string, version: number])[];
  /** What the document leaves open, or names of the settings, for the drift of its set. */
  readonly said: FleetSaid;
}

/** So many resources are compared at a time. */
const perPiece = 200;

const nounOf = (type: ResourceType): string => (resources[type] as unknown as AnyResource).noun;
const command = (verb: string, type: ResourceType, fields: object): FleetCommand =>
  ({ type: `${verb}${nounOf(type)}`, ...fields }) as unknown as FleetCommand;

/** Yields between two pieces. The fleet must not change before the end. */
export function* compareWithFleet(
  fleet: Fleet,
  document: FleetDocument,
  flags: FileFlags,
): Generator<void, Comparison> {
  const names = yield* resolveNames(fleet, document);
  const asked: Asked = {
    wishes: [],
    deploys: [],
    obstacles: [],
    mistakes: [...names.mistakes],
    versions: [],
    open: [],
    given: [],
  };
  yield* forEach(inOrder(document.resources), perPiece, (wanted) => {
    compareOne(fleet, document, flags, names, wanted, asked);
  });
  yield* comparePolicies(fleet, document, flags, names, asked);
  compareSettings(fleet, document, names, asked);
  yield;
  const gone = unnamed(fleet, document, names);
  yield;
  const deletes = flags.prune ? gone.map(([type, state]) => deletion(fleet, type, state)) : [];
  for (const { resource } of deletes) asked.versions.push([resource.type, resource.id, versionOf(fleet, resource)]);
  const owned = document.set === null ? 0 : sizeOfSet(fleet, document.set);
  const most = flags.maxDeletes ?? Math.max(10, Math.floor(owned / 5));
  if (deletes.length > most) {
    asked.obstacles.push(
      `${deletes.length} resources would be deleted, more than the ${most} allowed; raise max_deletes if that is meant`,
    );
  }
  yield;
  const { wishes, deploys, mistakes, obstacles, versions } = asked;
  const sections = [...document.sections, ...(document.policies === undefined ? [] : [policyKey.type])];
  const kept = flags.prune ? [] : gone.map(([, { id }]) => id);
  const said: FleetSaid = {
    // What is too much to name is left open, and counts as named.
    ...(asked.open.length === 0 ? {} : { open: someOf(asked.open, asked.given) ?? 'all' }),
    sections,
    ...(kept.length === 0 ? {} : { unnamed: someOf(kept, namedIds(document, names)) ?? [] }),
    ...(document.settings === undefined ? {} : { settings: namedSettings(document.settings, names) }),
  };
  return { wishes: [...wishes, ...deploys, ...deletes], mistakes, obstacles, versions, said };
}

const versionOf = (fleet: Fleet, { type, id }: Wish['resource']): number =>
  fleet.get<AnyState>({ type }, id)?.version ?? 0;

/** The fields of the settings that a document names, an override as `nodes.<id>`. */
function namedSettings({ nodes = [], ...globals }: NonNullable<FleetDocument['settings']>, names: Resolved): string[] {
  return [...Object.keys(globals), ...nodes.map(({ node_id }) => overrideField(names.idOf(node_id)))];
}

interface Asked {
  readonly wishes: Wish[];
  readonly deploys: Wish[];
  readonly obstacles: string[];
  readonly mistakes: DocumentMistake[];
  readonly versions: (readonly [type: string, id: string, version: number])[];
  /** Chains whose deployment, and credentials whose key, the document leaves as they are, and those that it gives. */
  readonly open: string[];
  readonly given: string[];
}

/** What others refer to comes first, and names are given up before others take them. */
function inOrder(wanted: readonly Wanted[]): readonly Wanted[] {
  const rank = ({ type, was, fields }: Wanted): number =>
    resourceTypes.indexOf(type) * 4 +
    (was === undefined ? 2 : 0) +
    (typeof fields['x25519_credential_id'] === 'string' ? 1 : 0);
  const byRank: Wanted[][] = [];
  for (const one of wanted) (byRank[rank(one)] ??= []).push(one);
  return byRank.flat();
}

function compareOne(
  fleet: Fleet,
  document: FleetDocument,
  flags: FileFlags,
  names: Resolved,
  wanted: Wanted,
  { wishes, deploys, obstacles, mistakes, versions, open, given }: Asked,
): void {
  const { type, name, at } = wanted;
  const id = names.idOf(wanted.id);
  const resource = { type, name, id };
  const references = document.referenceFields.get(type) ?? noReferences;
  const withIds = (given: JsonObject): object => withOtherIds(given, references, names.idOf) as object;
  const fields = withIds(wanted.fields);
  const before = names.isNew(wanted) ? undefined : fleet.get<AnyState>({ type }, id);
  if (before === undefined) {
    const owner = document.set === null ? {} : { managed_by: document.set };
    wishes.push({
      action: 'create',
      resource,
      command: command('Create', type, { id, name, ...fields, ...owner }),
      at,
    });
  } else {
    versions.push([type, id, before.version]);
    const obstacle = ownership(document.set, flags, resource, before);
    if (obstacle !== undefined) obstacles.push(obstacle);
    const keyType: unknown = Reflect.get(fields, 'key_type');
    if (type === credentialKey.type && keyType !== Reflect.get(before, 'key_type')) {
      obstacles.push(
        `the credential "${name}" has another key_type; a key_type cannot be changed, so give it another name`,
      );
      return;
    }
    if (document.set !== null && (before.managed_by ?? null) !== document.set) {
      wishes.push({ action: 'adopt', resource, command: ownerChange(type, before, document.set), at });
    }
    const edit = command('Update', type, {
      id,
      ifMatch: undefined,
      name,
      ...(wanted.edited === undefined ? fields : withIds(wanted.edited)),
    });
    const decision = decideFleet(fleet, edit);
    // A refusal is found again, together with everything else.
    if (!decision.ok || decision.value.length > 0) {
      const action = before.name === name ? 'update' : 'rename';
      wishes.push({ action, resource, command: edit, at });
    }
  }
  if (type === credentialKey.type) (wanted.keepsKey === true ? open : given).push(id);
  if (type === chainKey.type) (wanted.deploy ? given : open).push(id);
  if (!wanted.deploy) return;
  if (Reflect.get(fields, 'enabled') === false) {
    mistakes.push({ at: [...at, 'deploy'], message: 'expected false, or none, of a chain that is not enabled' });
    return;
  }
  const chain = before === undefined ? undefined : fleet.get(chainKey, id);
  const wantedDefinition = definitionOf(fields as ChainDefinition) as unknown as Json;
  const deployed = chain?.deployed ?? null;
  if (deployed !== null && jsonEqual(definitionOf(deployed) as unknown as Json, wantedDefinition)) return;
  deploys.push({ action: 'deploy', resource, command: { type: 'DeployChain', id, ifMatch: undefined }, at });
}

/** Gives a resource another owner; null for none. */
export function ownerChange(type: string, state: AnyState, managed_by: string | null): FleetCommand {
  if (type !== policyKey.type) {
    return command('Update', type as ResourceType, { id: state.id, ifMatch: undefined, managed_by });
  }
  const policy = pick(state as unknown as PolicyState, policyFields);
  return { type: 'SaveListenerPolicy', ifMatch: undefined, ...policy, managed_by };
}

/** Why the document may not have a resource, because of who owns it. */
function ownership(
  set: string | null,
  { adopt, adoptFrom }: FileFlags,
  { type, name }: Wish['resource'],
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

function* comparePolicies(
  fleet: Fleet,
  document: FleetDocument,
  flags: FileFlags,
  names: Resolved,
  asked: Asked,
): Generator<void, void> {
  const nodes = new Map(
    document.resources.flatMap(({ type, id, name }) => (type === 'node' ? [[names.idOf(id), name] as const] : [])),
  );
  for (const [index, { fields: given, at }] of (document.policies ?? []).entries()) {
    if (index > 0 && index % perPiece === 0) yield;
    const fields: PolicyDefinition = { ...given, node_id: names.idOf(given.node_id) };
    const id = policyId(fields);
    const before = fleet.get(policyKey, id);
    const resource = { type: policyKey.type, name: nameOfPolicy(fleet, fields, nodes), id };
    const owner = document.set === null ? {} : { managed_by: document.set };
    const save: FleetCommand = { type: 'SaveListenerPolicy', ifMatch: undefined, ...fields };
    if (before === undefined) {
      asked.wishes.push({ action: 'create', resource, command: { ...save, ...owner }, at });
      continue;
    }
    asked.versions.push([policyKey.type, id, before.version]);
    const obstacle = ownership(document.set, flags, resource, before);
    if (obstacle !== undefined) asked.obstacles.push(obstacle);
    if (document.set !== null && (before.managed_by ?? null) !== document.set) {
      asked.wishes.push({ action: 'adopt', resource, command: ownerChange(policyKey.type, before, document.set), at });
    }
    const decision = decideFleet(fleet, save);
    if (!decision.ok || decision.value.length > 0) asked.wishes.push({ action: 'update', resource, command: save, at });
  }
}

/** The listener of a policy, with the name of its node. @param names of nodes in the document, by id */
function nameOfPolicy(fleet: Fleet, key: PolicyKey, names?: ReadonlyMap<string, string>): string {
  const { node_id } = key;
  return policyId({ ...key, node_id: names?.get(node_id) ?? fleet.nameOf('node', node_id) ?? node_id });
}

function compareSettings(fleet: Fleet, { settings }: FleetDocument, names: Resolved, { wishes }: Asked): void {
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
  wishes.push({ action: 'update', resource, command: edit, at: ['settings'] });
}

/** What the set owns and the document does not have, users before what they use. Absent sections are left alone. */
function unnamed(
  fleet: Fleet,
  document: FleetDocument,
  names: Resolved,
): readonly (readonly [ResourceType, AnyState])[] {
  const { set, sections } = document;
  if (set === null) return [];
  const kept = new Set(namedIds(document, names));
  return resourceTypes.toReversed().flatMap((type) => {
    const present = type === policyKey.type ? document.policies !== undefined : sections.has(type);
    if (!present) return [];
    const gone = ownedBy(fleet, type, set).filter(({ id }) => !kept.has(id));
    // A credential that another refers to goes after that one.
    gone.sort((a, b) => Number(isReferring(b)) - Number(isReferring(a)));
    return gone.map((state) => [type, state] as const);
  });
}

const namedIds = ({ resources: named, policies = [] }: FleetDocument, names: Resolved): readonly string[] => [
  ...named.map(({ id }) => names.idOf(id)),
  ...policies.map(({ fields }) => policyId({ ...fields, node_id: names.idOf(fields.node_id) })),
];

function deletion(fleet: Fleet, type: ResourceType, state: AnyState): Wish {
  const { id, name } = state;
  if (type !== policyKey.type) {
    return {
      action: 'delete',
      resource: { type, name, id },
      command: command('Delete', type, { id, ifMatch: undefined }),
    };
  }
  const { node_id, transport, listen_addr, listen_port } = state as unknown as PolicyKey;
  const key = { node_id, transport, listen_addr, listen_port };
  const remove: FleetCommand = { type: 'DeleteListenerPolicy', ifMatch: undefined, ...key };
  return { action: 'delete', resource: { type, name: nameOfPolicy(fleet, key), id }, command: remove };
}

const isReferring = (state: AnyState): boolean => (Reflect.get(state, 'x25519_credential_id') ?? null) !== null;

function ownedBy(fleet: Fleet, type: ResourceType, set: string): AnyState[] {
  const states = [...fleet.tables[type].values()] as unknown as AnyState[];
  return states.filter(({ managed_by }) => managed_by === set);
}

function sizeOfSet(fleet: Fleet, set: string): number {
  return resourceTypes.reduce((sum, type) => sum + ownedBy(fleet, type, set).length, 0);
}
