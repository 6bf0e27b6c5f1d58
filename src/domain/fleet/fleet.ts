/**
 * The fleet: all intent of one installation, as one consistency boundary. Holds tables, singletons and indexes, and answers
 * the questions of `resource/fleet-view.ts`. Decides nothing. Implements
 * `docs/contract/domain.md#one-consistency-boundary-the-fleet` and `#generation`.
 */
import {
  createCell,
  createIndex,
  createTable,
  draftOf,
  type Cell,
  type Draft,
  type Table,
  type Index,
} from '../aggregate/containers.js';
import { createIdempotencyTable, type IdempotencyTable } from '../aggregate/idempotency.js';
import type { Need } from '../confirmation/confirmation.js';
import type { LeftTable } from '../fleet-set/left-by-apply.js';
import {
  createClaimEntries,
  claimIndexOn,
  type ClaimIndex,
  type Claim,
  type ClaimEntries,
} from '../listeners/claims.js';
import { emptyChain, type ChainHead } from '../log-chain/links.js';
import type { FleetView } from '../resource/fleet-view.js';
import {
  resourceTypes,
  singletons,
  singletonTypes,
  resourceOfType,
  type AnyState,
  type AnyResource,
  type ResourceType,
  type SingletonType,
  type SingletonState,
  type StateOf,
} from './resources.js';
import { jsonEqual } from '../../kernel/json.js';
import { groupBy } from '../../kernel/maps.js';
import { collisionOf, collisionSentence } from '../listeners/collisions.js';
import { describeOwner, ownerOf, splitOwner, type Owner } from '../references/references.js';
import { nameIndexKey, type ResourceMeta } from '../resource/meta.js';
import type { Refusal } from '../resource/refusal.js';
import { describeOwners } from '../resource/rules.js';
import { effectiveMultiplex } from '../settings/settings.js';
import { generationWith, type Membership } from '../rollout/rollout.js';
import type { RevertTable } from '../aggregate/reverts.js';

/** A resource that exists, with its declaration. */
interface Resolved {
  readonly type: string;
  readonly id: string;
  readonly declaration: AnyResource;
  readonly state: AnyState;
}

/** Answers about the edit of a resource to which others refer. @param of the view that includes these answers */
function editQuestions(
  of: () => FleetView,
  references: Index,
  resolve: (owner: Owner) => Resolved | undefined,
): Pick<FleetView, 'objectionTo' | 'nodesUsing' | 'nodesChangedBy'> {
  /** The referrers that object to an edit, by their sentence. */
  function objections(type: string, edited: ResourceMeta): ReadonlyMap<string, readonly Owner[]> {
    return groupBy(references.get(ownerOf(type, edited.id)), (owner) => {
      const referrer = resolve(owner);
      return referrer?.declaration.objectionTo?.(referrer.state, type, edited);
    });
  }

  /** The first collision of the referrers' listeners once they follow the edit. */
  function collisionAfter(type: string, edited: AnyState): Refusal | undefined {
    const view = of();
    const before = view.get<AnyState>({ type }, edited.id);
    const shaping = resourceOfType(type)?.indexed?.shapesClaims ?? [];
    if (before === undefined || shaping.every((field) => jsonEqual(before[field], edited[field]))) return undefined;
    const after = { get: withEdited(type, edited) };
    for (const owner of references.get(ownerOf(type, edited.id))) {
      const referrer = resolve(owner);
      for (const claim of referrer?.declaration.indexed?.claims(referrer.state, after) ?? []) {
        const collision = collisionOf(view, claim);
        if (collision === undefined) continue;
        const follower = `${describeOwner(view, owner)} would follow this edit`;
        return { code: 'conflict', message: collisionSentence(view, collision, follower) };
      }
    }
    return undefined;
  }

  /** The referrers with rules, direct ones or those of a referrer without rules. */
  function* usersOf(type: string, id: string): Generator<Resolved & { readonly of: { type: string; id: string } }> {
    for (const owner of references.get(ownerOf(type, id))) {
      const user = resolve(owner);
      if (user === undefined) continue;
      if (user.declaration.compiled === null) yield* usersOf(user.declaration.type, user.state.id);
      else yield { ...user, of: { type, id } };
    }
  }

  /** Finds resources as they are, and one as edited. */
  function withEdited(type: string, edited: ResourceMeta): FleetView['get'] {
    return <S>(key: { readonly type: string }, id: string | null | undefined) =>
      key.type === type && id === edited.id ? (edited as S) : of().get<S>(key, id);
  }

  return {
    objectionTo(type, edited): Refusal | undefined {
      const sentences = [...objections(type, edited)].map(([sentence, owners]) =>
        sentence.replace('{}', () => describeOwners(of(), owners)),
      );
      if (sentences.length > 0) return { code: 'conflict', message: sentences.join('; ') };
      return collisionAfter(type, edited as AnyState);
    },
    nodesUsing(type, id) {
      const nodes = new Set<string>();
      for (const owner of references.get(ownerOf(type, id))) {
        const user = resolve(owner);
        if (user === undefined) continue;
        for (const nodeId of user.declaration.compiled?.nodesUsing(user.state, type, id) ?? []) nodes.add(nodeId);
      }
      return nodes;
    },
    nodesChangedBy(type, edited) {
      const view = of();
      const after: FleetView = { ...view, get: withEdited(type, edited) };
      const changed = new Set<string>();
      for (const { declaration, state: user, of } of usersOf(type, edited.id)) {
        for (const nodeId of declaration.compiled?.nodesUsing(user, of.type, of.id) ?? []) {
          const [old, next] = [view, after].map((one) => declaration.compiled?.rulesOn(one, user, nodeId));
          if (!jsonEqual(old, next)) changed.add(nodeId);
        }
      }
      return changed;
    },
  };
}

function viewOf(state: FleetState): FleetView & Pick<Fleet, 'resolve'> {
  const { tables, singletons, touched, names, references, contributors, members, needs, confirming, revision } = state;
  const claims = claimIndexOn(state.claimEntries);

  const tableOf = (type: string): Table<AnyState> | undefined =>
    Object.hasOwn(tables, type) ? (tables[type as ResourceType] as Table<AnyState>) : undefined;

  function resolve(owner: Owner): Resolved | undefined {
    const { type, id } = splitOwner(owner);
    const declaration = resourceOfType(type);
    const resource = tableOf(type)?.get(id);
    return declaration === undefined || resource === undefined ? undefined : { type, id, declaration, state: resource };
  }

  const get = <S>({ type }: { readonly type: string }, id: string | null | undefined): S | undefined =>
    id === null || id === undefined ? undefined : (tableOf(type)?.get(id) as S | undefined);

  const nameOf = (type: string, id: string): string | undefined => tableOf(type)?.get(id)?.name;

  const view: FleetView & Pick<Fleet, 'resolve'> = {
    revision,
    claims,
    get,
    resolve,
    singleton: <S>(key: { readonly singleton: string }) => singletons[key.singleton as SingletonType].value as S,
    has: (type, id) => tableOf(type)?.has(id) ?? false,
    ids: (type) => tableOf(type)?.ids() ?? [],
    nameOf,
    idOfName: (type, name) => names.get(nameIndexKey(type, name)),
    referrersOf: (type, id) => references.get(ownerOf(type, id)),
    multiplexPortOf: (nodeId) => effectiveMultiplex(singletons.connectivity.value, nodeId).multiplex_port,
    ...editQuestions(() => view, references, resolve),
    contributorsTo: (nodeId) => [...contributors.get(nodeId)].map(splitOwner),
    diallersOf(nodeId) {
      return [...contributors.get(nodeId)].flatMap((owner) => {
        const dialling = resolve(owner);
        const diallerIds = dialling?.declaration.compiled?.diallersOf(dialling.state, nodeId) ?? [];
        return diallerIds.map((diallerId) => ({ owner, diallerId }));
      });
    },
    touchedAt: (nodeId) => touched.get(nodeId),
    rolloutOf: (nodeId) => members.get(nodeId),
    heldBy(nodeId, applied = 0) {
      const member = members.get(nodeId);
      const rollout = member && tables.rollout.get(member.rolloutId);
      if (member === undefined || rollout === undefined || member.wave <= rollout.wave) return undefined;
      return applied < generationWith(rollout, tables.node.get(nodeId)) ? rollout.id : undefined;
    },
    confirmingOf: (type, id) => confirming.get(ownerOf(type, id)),
    needOf(nodeId) {
      const node = tables.node.get(nodeId);
      const need = needs.get(nodeId);
      if (node === undefined || need === undefined) return undefined;
      return { generation: 1 + need.revision + node.generation_offset, secs: need.secs };
    },
    /** No counter is kept, so every instance and every rebuild computes the same number. */
    generationOf(nodeId) {
      const node = tables.node.get(nodeId);
      const touchedAt = touched.get(nodeId);
      return node === undefined || touchedAt === undefined ? undefined : 1 + touchedAt + node.generation_offset;
    },
  };
  return view;
}

export interface FleetState {
  /** The revision of `svc-fleet` that the fold has reached; -1 when the fleet is empty. */
  readonly revision: Cell<number>;
  /** The log position of that revision. */
  readonly position: Cell<number>;
  /** The head of the log chain at that revision. The reader of the log checks and advances it. */
  readonly logChain: Cell<ChainHead>;

  readonly tables: { readonly [T in ResourceType]: Table<StateOf<T>> };
  readonly singletons: { readonly [T in SingletonType]: Cell<SingletonState<T>> };
  /** Node id → the revision of the last event of the last command that touched the node. */
  readonly touched: Table<number>;
  readonly idempotency: IdempotencyTable;
  readonly reverts: RevertTable;
  /** What the applies of sets left, where the fleet may differ now. */
  readonly left: LeftTable;
  /** Node id → the last command whose change the node must confirm. */
  readonly needs: Table<Need>;
  /** The highest version of a deleted resource that belonged to a node. */
  readonly deletedVersion: Cell<number>;

  // Indexes. A checkpoint does not hold them; they are derived again.
  /** `nameIndexKey` → id. */
  readonly names: Table<string>;
  /** Owner → owners whose current or deployed definition refers to it. */
  readonly references: Index;
  /** Node id → owners that may have rules in its snapshot. */
  readonly contributors: Index;
  /** Node id → its place in a rollout that has not ended. */
  readonly members: Table<Membership>;
  /** Owner → the confirmation that its last change waits for. */
  readonly confirming: Table<string>;
  /** Node id → when the candidate of its PSK expires, RFC 3339. */
  readonly candidates: Table<string>;
  readonly claimEntries: ClaimEntries;
  /** Owner → its claims in `claimEntries`. */
  readonly claimsOf: Table<readonly Claim[]>;
}

export interface Fleet extends FleetState, FleetView {
  readonly state: FleetState;
  readonly revision: Cell<number>;
  readonly claims: ClaimIndex;
  /** The resource of an owner; undefined for one that does not exist, and for the settings. */
  resolve(owner: Owner): Resolved | undefined;
}

/** The fleet on given tables and indexes. @internal exported for tests */
export function fleetOn(state: FleetState): Fleet {
  return { ...viewOf(state), ...state, state };
}

export function emptyFleet(): Fleet {
  return fleetOn({
    revision: createCell(-1),
    position: createCell(0),
    logChain: createCell(emptyChain),
    tables: Object.fromEntries(resourceTypes.map((type) => [type, createTable<AnyState>()])) as FleetState['tables'],
    singletons: Object.fromEntries(
      singletonTypes.map((type) => [type, createCell<unknown>(singletons[type].initial)]),
    ) as FleetState['singletons'],
    touched: createTable(),
    idempotency: createIdempotencyTable(),
    reverts: createTable(),
    left: createTable(),
    needs: createTable(),
    deletedVersion: createCell(0),
    names: createTable(),
    references: createIndex(),
    contributors: createIndex(),
    members: createTable(),
    confirming: createTable(),
    candidates: createTable(),
    claimEntries: createClaimEntries(),
    claimsOf: createTable(),
  });
}

/** A draft to try commands on, which leaves the fleet unchanged until it is merged. */
export function draftFleet(fleet: Fleet): Draft<Fleet> {
  const draft = draftOf(fleet.state);
  return { ...draft, state: fleetOn(draft.state) };
}
