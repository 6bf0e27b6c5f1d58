/**
 * Answers what resources may ask of the fleet (`resource/fleet-view.ts`), from its tables, its indexes and the
 * declarations. Implements `docs/contract/domain.md#generation`.
 */
import type { Table } from '../aggregate/journal.js';
import type { Owner } from '../references/references.js';
import { describeOwners, ownerOf, splitOwner } from '../references/references.js';
import type { FleetView } from '../resource/fleet-view.js';
import type { ResourceMeta } from '../resource/meta.js';
import { nameIndexKey } from '../resource/names.js';
import type { Refusal } from '../resource/refusal.js';
import { effectiveMultiplex } from '../settings/settings.js';
import type { AnyResource, AnyState, ResourceType, SingletonType } from './resources.js';
import { resourceOfType } from './resources.js';
import type { FleetState } from './state.js';

interface Resolved {
  readonly declaration: AnyResource;
  readonly state: AnyState;
}

export function viewOf(state: FleetState): FleetView {
  const { tables, singletons, touched, names, references, contributors, claims, revision } = state;

  const tableOf = (type: string): Table<AnyState> | undefined =>
    Object.hasOwn(tables, type) ? (tables[type as ResourceType] as unknown as Table<AnyState>) : undefined;

  /** The state and the declaration of an owner. */
  function resolve(owner: Owner): Resolved | undefined {
    const { type, id } = splitOwner(owner);
    const declaration = resourceOfType(type);
    const resource = tableOf(type)?.get(id);
    return declaration === undefined || resource === undefined ? undefined : { declaration, state: resource };
  }

  /** The referrers that object to an edit, by their sentence. */
  function objections(type: string, edited: ResourceMeta): ReadonlyMap<string, readonly Owner[]> {
    const bySentence = new Map<string, Owner[]>();
    for (const owner of references.get(ownerOf(type, edited.id))) {
      const referrer = resolve(owner);
      const sentence = referrer?.declaration.objectionTo?.(referrer.state, type, edited);
      if (sentence === undefined) continue;
      const owners = bySentence.get(sentence);
      if (owners === undefined) bySentence.set(sentence, [owner]);
      else owners.push(owner);
    }
    return bySentence;
  }

  const nameOf = (type: string, id: string): string | undefined => tableOf(type)?.get(id)?.name;

  return {
    revision,
    claims,
    get: <S>(key: { readonly type: string }, id: string) => tableOf(key.type)?.get(id) as S | undefined,
    singleton: <S>(key: { readonly singleton: string }) => singletons[key.singleton as SingletonType].value as S,
    has: (type, id) => tableOf(type)?.has(id) ?? false,
    ids: (type) => tableOf(type)?.ids() ?? [],
    nameOf,
    idOfName: (type, name) => names.get(nameIndexKey(type, name)),
    referrersOf: (type, id) => references.get(ownerOf(type, id)),
    multiplexPortOf: (nodeId) => effectiveMultiplex(singletons.connectivity.value, nodeId).multiplex_port,
    objectionTo(type, edited): Refusal | undefined {
      const [first] = objections(type, edited);
      if (first === undefined) return undefined;
      const [sentence, owners] = first;
      return { code: 'conflict', message: sentence.replace('{}', () => describeOwners({ nameOf }, owners)) };
    },
    nodesUsing(type, id) {
      const users = [...references.get(ownerOf(type, id))].flatMap((owner) => {
        const user = resolve(owner);
        return user?.declaration.compiled?.nodesUsing(user.state, type, id) ?? [];
      });
      return new Set(users);
    },
    diallersOf(nodeId) {
      return [...contributors.get(nodeId)].flatMap((owner) => {
        const dialling = resolve(owner);
        const diallerIds = dialling?.declaration.compiled?.diallersOf(dialling.state, nodeId) ?? [];
        return diallerIds.map((diallerId) => ({ owner, diallerId }));
      });
    },
    touchedAt: (nodeId) => touched.get(nodeId),
    /** No counter is kept, so every instance and every rebuild computes the same number. */
    generationOf(nodeId) {
      const node = tables.node.get(nodeId);
      const touchedAt = touched.get(nodeId);
      return node === undefined || touchedAt === undefined ? undefined : 1 + touchedAt + node.generation_offset;
    },
  };
}
