/**
 * All read models, as one group: one subscription, one position, one version, so that what is shown together is never
 * out of step. Opens their collections. Implements `docs/architecture.md` ("(projection, version) names its collections").
 */
import type { Collection, ReadStore } from '../storage/read-store.js';
import { audit } from './models/audit.js';
import type { AuditFields } from './models/audit.js';
import { chains } from './models/chains.js';
import type { ChainFields } from './models/chains.js';
import { deployments } from './models/deployments.js';
import type { DeploymentFields } from './models/deployments.js';
import { names } from './models/names.js';
import type { NameFields } from './models/names.js';
import { nodes } from './models/nodes.js';
import type { NodeFields } from './models/nodes.js';
import type { ReadModel } from './read-model.js';
import { upstreams } from './models/upstreams.js';
import type { UpstreamFields } from './models/upstreams.js';

/** Names the checkpoint and the pointer of the group. */
export const groupName = 'read_models';

/**
 * Raise it when a read model's fold, fields or keys change, what `describeCommand` calls an action included: the new
 * version fills beside the old one and is shown once it has caught up. A new index alone needs no new version.
 */
export const groupVersion = 1;

export const readModels: readonly ReadModel[] = [
  nodes as ReadModel,
  upstreams as ReadModel,
  chains as ReadModel,
  deployments as ReadModel,
  names as ReadModel,
  audit as ReadModel,
];

/** The version of a read model's collection: see `layout.ts`. */
export type VersionOf = (model: string) => number;

/** The collections by name of the read model, for those who write them. */
export type OpenCollections = ReadonlyMap<string, Collection>;

export async function openCollections(
  store: ReadStore,
  models: readonly ReadModel[],
  version: number | VersionOf,
): Promise<OpenCollections> {
  const versionOf = typeof version === 'number' ? () => version : version;
  const opened = await Promise.all(
    models.map(
      async ({ name, indexes }) => [name, await store.collection({ name, version: versionOf(name), indexes })] as const,
    ),
  );
  return new Map(opened);
}

/** The same collections, typed, for those who query them. */
export interface QueryCollections {
  readonly nodes: Collection<NodeFields>;
  readonly upstreams: Collection<UpstreamFields>;
  readonly chains: Collection<ChainFields>;
  readonly deployments: Collection<DeploymentFields>;
  readonly names: Collection<NameFields>;
  readonly audit: Collection<AuditFields>;
}

export async function openForQueries(store: ReadStore, versionOf: VersionOf): Promise<QueryCollections> {
  const [n, u, c, d, r, a] = await Promise.all([
    store.collection<NodeFields>({ ...specOf(nodes), version: versionOf(nodes.name) }),
    store.collection<UpstreamFields>({ ...specOf(upstreams), version: versionOf(upstreams.name) }),
    store.collection<ChainFields>({ ...specOf(chains), version: versionOf(chains.name) }),
    store.collection<DeploymentFields>({ ...specOf(deployments), version: versionOf(deployments.name) }),
    store.collection<NameFields>({ ...specOf(names), version: versionOf(names.name) }),
    store.collection<AuditFields>({ ...specOf(audit), version: versionOf(audit.name) }),
  ]);
  return { nodes: n, upstreams: u, chains: c, deployments: d, names: r, audit: a };
}

const specOf = ({ name, indexes }: Pick<ReadModel, 'name' | 'indexes'>) => ({ name, indexes });
