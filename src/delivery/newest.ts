/**
 * The newest snapshot of a node: compiled from the committed fleet, secrets opened, encoded once, cached. If one node's
 * snapshot cannot be made, an error is logged, its newest snapshot is withheld, and all other nodes are served. Nothing
 * is compiled while the log is at another compiler version: the output would carry generations of that compiler.
 * Implements `docs/architecture.md#a-push`.
 */
import { compileNode } from '../domain/compile/compile-node.js';
import { compilerVersion } from '../domain/compile/version.js';
import type { Fleet } from '../domain/fleet/fleet.js';
import type { NodeSnapshot } from '../domain/snapshot/snapshot.js';
import { ServiceError, errorText } from '../kernel/errors.js';
import type { Logger } from '../kernel/logger.js';
import { createLru } from '../kernel/lru.js';
import type { SnapshotCache } from './cache.js';
import { stampOf } from './cache.js';
import { encodeSnapshot } from './encode.js';
import type { SnapshotPush } from './port.js';
import type { OpenedSecrets, SecretOpener } from './secrets.js';
import { openSecrets } from './secrets.js';
import type { Stamp } from './target.js';
import { tuning } from './tuning.js';

export type Newest<T> =
  | { readonly kind: 'made'; readonly stamp: Stamp; readonly value: T }
  | { readonly kind: 'unknown_node' }
  /** It cannot be compiled, or one of its secrets cannot be opened. */
  | { readonly kind: 'withheld' };

export interface NewestSnapshots {
  /**
   * A plain value when nothing has to be waited for: an edit may ask for ten thousand nodes at once.
   * @throws ServiceError `unavailable` when the log is at another compiler version
   */
  get(nodeId: string): Newest<SnapshotPush> | Promise<Newest<SnapshotPush>>;
  /** Generation and checksum only: when both are cached, nothing is compiled. @throws as `get` */
  stamp(nodeId: string): Promise<Newest<undefined>>;
}

export interface CompilerCheck {
  /** @throws ServiceError `unavailable` when the log is at another compiler version */
  checkCompilerVersion(): void;
}

export interface NewestSnapshotsDeps {
  fleet(): Fleet;
  readonly cache: SnapshotCache;
  readonly openSecret: SecretOpener;
  readonly logger: Logger;
  readonly compile?: typeof compileNode | undefined;
  /** This release's compiler version; tests pass another. */
  readonly compilerVersion?: number | undefined;
}

export function createNewestSnapshots(deps: NewestSnapshotsDeps): NewestSnapshots & CompilerCheck {
  const { cache, logger } = deps;
  const compile = deps.compile ?? compileNode;
  const ownVersion = deps.compilerVersion ?? compilerVersion;
  /** The withheld generation of each node that was logged: once, not at every request. */
  const logged = createLru<string, number>({ maxEntries: tuning.rememberedNodes });

  const make = (nodeId: string, generation: number): SnapshotPush | Promise<SnapshotPush> => {
    const snapshot = compile(deps.fleet(), nodeId);
    const opened = openSecrets(snapshot, deps.openSecret);
    return opened instanceof Promise
      ? opened.then((secrets) => encode(nodeId, generation, snapshot, secrets))
      : encode(nodeId, generation, snapshot, opened);
  };

  const encode = (nodeId: string, generation: number, snapshot: NodeSnapshot, secrets: OpenedSecrets): SnapshotPush => {
    const push = encodeSnapshot(snapshot, secrets);
    // While secrets were opened, the generation may have changed, or another call may have cached this one.
    if (cache.stamp(nodeId, generation) === undefined && deps.fleet().generationOf(nodeId) === generation) {
      cache.put(nodeId, push, secrets.size > 0);
    }
    return push;
  };

  /** Checked where the fleet is read: the log may have moved to another version since the request began. */
  const checkCompilerVersion = (): void => {
    const logVersion = deps.fleet().singletons.service.value;
    if (logVersion === ownVersion) return;
    throw new ServiceError(
      'unavailable',
      `the log is at compiler version ${logVersion} and this instance has ${ownVersion}: ask another instance`,
    );
  };

  const made = (nodeId: string, push: SnapshotPush): Newest<SnapshotPush> => ({
    kind: 'made',
    stamp: cache.stamp(nodeId, push.generation) ?? stampOf(push),
    value: push,
  });

  /** @throws the error again when a later try may succeed */
  const withheld = (nodeId: string, generation: number, error: unknown): Newest<SnapshotPush> => {
    if (error instanceof ServiceError && error.code === 'unavailable') throw error;
    if (logged.get(nodeId) !== generation) {
      logged.set(nodeId, generation);
      logger.error({ node_id: nodeId, generation, error: errorText(error) }, 'the configuration of a node is withheld');
    }
    return { kind: 'withheld' };
  };

  const get = (nodeId: string): Newest<SnapshotPush> | Promise<Newest<SnapshotPush>> => {
    checkCompilerVersion();
    const generation = deps.fleet().generationOf(nodeId);
    if (generation === undefined) return { kind: 'unknown_node' };
    try {
      const push = cache.get(nodeId, generation) ?? make(nodeId, generation);
      if (!(push instanceof Promise)) return made(nodeId, push);
      return push.then(
        (late) => made(nodeId, late),
        (error: unknown) => withheld(nodeId, generation, error),
      );
    } catch (error) {
      return withheld(nodeId, generation, error);
    }
  };

  return {
    get,
    checkCompilerVersion,
    async stamp(nodeId) {
      checkCompilerVersion();
      const generation = deps.fleet().generationOf(nodeId);
      const cached = generation === undefined ? undefined : cache.stamp(nodeId, generation);
      if (cached !== undefined) return { kind: 'made', stamp: cached, value: undefined };
      const newest = await get(nodeId);
      return newest.kind === 'made' ? { kind: 'made', stamp: newest.stamp, value: undefined } : newest;
    },
  };
}
