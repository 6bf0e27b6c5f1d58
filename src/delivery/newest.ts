/**
 * The newest snapshot of a node: compiled from the committed fold, secrets opened, encoded once, remembered. A node
 * whose configuration can't be made is withheld, loudly, and stops nobody else. Nothing is made of a fleet that is at
 * another compiler's number: it would go out under that one's generations.
 * Implements `docs/architecture.md` ("compile → open secrets → encode and checksum once").
 */
import { compileNode } from '../domain/compile/compile-node.js';
import { compilerVersion } from '../domain/compile/version.js';
import { generationOf } from '../domain/fleet/fleet.js';
import type { Fleet } from '../domain/fleet/fleet.js';
import { ServiceError, errorText } from '../kernel/errors.js';
import type { Logger } from '../kernel/logger.js';
import { createLru } from '../kernel/lru.js';
import type { SnapshotCache } from './cache.js';
import { stampOf } from './cache.js';
import { encodeSnapshot } from './encode.js';
import type { SnapshotPush } from './port.js';
import type { SecretOpener } from './secrets.js';
import { openSecrets } from './secrets.js';
import type { Stamp } from './target.js';
import { tuning } from './tuning.js';

export type Newest<T> =
  | { readonly kind: 'made'; readonly stamp: Stamp; readonly value: T }
  | { readonly kind: 'unknown_node' }
  /** It can't be compiled, or a secret of it can't be opened. */
  | { readonly kind: 'withheld' };

export interface NewestSnapshots {
  /** @throws ServiceError `unavailable` when the store of data keys is out of reach, or the log at another compiler */
  get(nodeId: string): Promise<Newest<SnapshotPush>>;
  /** Its generation and checksum only: no bytes are touched when they are known. @throws as `get` */
  stamp(nodeId: string): Promise<Newest<undefined>>;
}

export interface NewestSnapshotsDeps {
  fleet(): Fleet;
  readonly cache: SnapshotCache;
  readonly openSecret: SecretOpener;
  readonly logger: Logger;
  readonly compile?: typeof compileNode;
  /** This release's number; tests give another. */
  readonly compilerVersion?: number;
}

export function createNewestSnapshots(deps: NewestSnapshotsDeps): NewestSnapshots {
  const { cache, logger } = deps;
  const compile = deps.compile ?? compileNode;
  const ownVersion = deps.compilerVersion ?? compilerVersion;
  /** The generation of each node last complained of: said once, not at every request. */
  const complained = createLru<string, number>({ maxEntries: tuning.rememberedNodes });

  const make = async (nodeId: string, generation: number): Promise<SnapshotPush> => {
    // Nothing is awaited before the compiler has read the fleet: it sees one state of it.
    const snapshot = compile(deps.fleet(), nodeId);
    const opened = openSecrets(snapshot, deps.openSecret);
    const secrets = opened instanceof Promise ? await opened : opened;
    const push = encodeSnapshot(snapshot, secrets);
    // Meanwhile a newer one may have been put.
    if (cache.stamp(nodeId, generation) === undefined && generationOf(deps.fleet(), nodeId) === generation) {
      cache.put(nodeId, push, secrets.size > 0);
    }
    return push;
  };

  /** Looked at where the fleet is read: an answer that was begun before the log moved on must not end wrong. */
  const refuseOthers = (): void => {
    const logVersion = deps.fleet().compilerVersion.value;
    if (logVersion === ownVersion) return;
    throw new ServiceError(
      'unavailable',
      `configurations are compiled by version ${logVersion} now and this instance has ${ownVersion}: ask another one`,
    );
  };

  const get = async (nodeId: string): Promise<Newest<SnapshotPush>> => {
    refuseOthers();
    const generation = generationOf(deps.fleet(), nodeId);
    if (generation === undefined) return { kind: 'unknown_node' };
    try {
      const push = cache.get(nodeId, generation) ?? (await make(nodeId, generation));
      return { kind: 'made', stamp: cache.stamp(nodeId, push.generation) ?? stampOf(push), value: push };
    } catch (error) {
      if (error instanceof ServiceError && error.code === 'unavailable') throw error;
      if (complained.get(nodeId) !== generation) {
        complained.set(nodeId, generation);
        logger.error(
          { node_id: nodeId, generation, error: errorText(error) },
          'the configuration of a node is withheld',
        );
      }
      return { kind: 'withheld' };
    }
  };

  return {
    get,
    async stamp(nodeId) {
      refuseOthers();
      const generation = generationOf(deps.fleet(), nodeId);
      const known = generation === undefined ? undefined : cache.stamp(nodeId, generation);
      if (known !== undefined) return { kind: 'made', stamp: known, value: undefined };
      const made = await get(nodeId);
      return made.kind === 'made' ? { ...made, value: undefined } : made;
    },
  };
}
