/**
 * All stored read models as one group with one subscription, position and version, so that an answer never mixes positions.
 * Opens their collections. Implements `docs/architecture.md#read-models`.
 */
import type { Collection, Fields, ReadStore } from '../storage/read-store.js';
import { audit, type AuditFields } from './models/audit.js';
import { deployments, type DeploymentFields } from './models/deployments.js';
import { incidents, type IncidentFields } from './models/incidents.js';
import { names, type NameFields } from './models/names.js';
import type { ReadModel } from './read-model.js';

/** The name of the group's checkpoint and of its version pointer. */
export const groupName = 'read_models';

/**
 * Raise it when the fold, fields, keys or index of a read model change, also when `describeCommand` changes an action. The new
 * version is filled beside the old one and queried once it has caught up.
 */
export const groupVersion = 5;

export const readModels: readonly ReadModel[] = [
  deployments as ReadModel,
  names as ReadModel,
  audit as ReadModel,
  incidents as ReadModel,
];

/** The version of a read model's collection (`engine/layout.ts`). */
export type VersionOf = (model: string) => number;

/** The collections by the name of the read model, for writers. */
export type OpenCollections = ReadonlyMap<string, Collection>;

export async function openCollections(
  store: ReadStore,
  models: readonly ReadModel[],
  version: number | VersionOf,
): Promise<OpenCollections> {
  const versionOf = typeof version === 'number' ? () => version : version;
  const opened = await Promise.all(
    models.map(
      async ({ name, index }) => [name, await store.collection({ name, version: versionOf(name), index })] as const,
    ),
  );
  return new Map(opened);
}

/** The same collections, typed, for queries. */
export interface QueryCollections {
  readonly deployments: Collection<DeploymentFields>;
  readonly names: Collection<NameFields>;
  readonly audit: Collection<AuditFields>;
  readonly incidents: Collection<IncidentFields>;
}

export async function openForQueries(store: ReadStore, versionOf: VersionOf): Promise<QueryCollections> {
  const open = <F extends Fields>({ name, index }: ReadModel<F>): Promise<Collection<F>> =>
    store.collection<F>({ name, index, version: versionOf(name) });
  const [deploymentsOpened, namesOpened, auditOpened, incidentsOpened] = await Promise.all([
    open(deployments),
    open(names),
    open(audit),
    open(incidents),
  ]);
  return {
    deployments: deploymentsOpened,
    names: namesOpened,
    audit: auditOpened,
    incidents: incidentsOpened,
  };
}
