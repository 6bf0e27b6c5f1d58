/**
 * The newest snapshot of a node: compiled from the committed fleet, secrets opened, encoded. Only its stamp is cached, because
 * most requests need nothing else. A snapshot that cannot be made is withheld and logged, and other nodes are served. Nothing is
 * compiled while the log is at another compiler version, whose generations it would carry. Implements `docs/architecture.md#a-push`.
 */
import { compileNode } from '../domain/compile/compile-node.js';
import { compilerVersion } from '../kernel/release.js';
import type { Fleet } from '../domain/fleet/fleet.js';
import { ServiceError, errorText } from '../kernel/errors.js';
import type { Logger } from '../kernel/logger.js';
import { createLru } from '../kernel/lru.js';
import { encodeSnapshot } from './encode.js';
import type { SnapshotPush } from './port.js';
import type { SecretOpener } from './secrets.js';
import { stampOf, type Stamp } from './target.js';
import { tuning } from './tuning.js';

export type Newest<T> =
  | { readonly kind: 'made'; readonly stamp: Stamp; readonly value: T }
  | { readonly kind: 'unknown_node' }
  /** It cannot be compiled, or a secret cannot be opened. */
  | { readonly kind: 'withheld' };

export interface NewestSnapshotsDeps {
  fleet(): Fleet;
  readonly openSecret: SecretOpener;
  readonly logger: Logger;
  readonly compile?: typeof compileNode | undefined;
  /** This release's compiler version; tests pass another. */
  readonly compilerVersion?: number | undefined;
}

export type NewestSnapshots = ReturnType<typeof createNewestSnapshots>;

export function createNewestSnapshots(deps: NewestSnapshotsDeps) {
  const { logger, compile = compileNode } = deps;
  const ownVersion = deps.compilerVersion ?? compilerVersion;
  const stamps = createLru<Stamp>(tuning.rememberedNodes);
  /** The withheld generation that was logged for each node, so that it is logged once. */
  const logged = createLru<number>(tuning.rememberedNodes);

  /**
   * Checked whenever the fleet is read, because the log may move to another version during a request.
   * @throws ServiceError `unavailable` if the log is at another compiler version
   */
  const checkCompilerVersion = (): void => {
    const logVersion = deps.fleet().singletons.service.value;
    if (logVersion === ownVersion) return;
    throw new ServiceError(
      'unavailable',
      `the log is at compiler version ${logVersion} and this instance has ${ownVersion}: ask another instance`,
    );
  };

  /** @throws the error if a later try may succeed */
  const withheld = (nodeId: string, generation: number, error: unknown): Newest<SnapshotPush> => {
    if (error instanceof ServiceError && error.code === 'unavailable') throw error;
    if (logged.get(nodeId) !== generation) {
      logged.set(nodeId, generation);
      logger.error({ node_id: nodeId, generation, error: errorText(error) }, 'the configuration of a node is withheld');
    }
    return { kind: 'withheld' };
  };

  /** @throws like `checkCompilerVersion` */
  const get = (nodeId: string): Newest<SnapshotPush> => {
    checkCompilerVersion();
    const generation = deps.fleet().generationOf(nodeId);
    if (generation === undefined) return { kind: 'unknown_node' };
    try {
      const snapshot = compile(deps.fleet(), nodeId);
      const push = encodeSnapshot(snapshot, deps.openSecret);
      const stamp = stampOf(push);
      stamps.set(nodeId, stamp);
      return { kind: 'made', stamp, value: push };
    } catch (error) {
      return withheld(nodeId, generation, error);
    }
  };

  return {
    get,
    checkCompilerVersion,
    /** The node was deleted. */
    forget: (nodeId: string): void => void stamps.delete(nodeId),
    /** Generation and checksum only, often without compiling. @throws like `get` */
    stamp(nodeId: string): Newest<undefined> {
      checkCompilerVersion();
      const known = stamps.get(nodeId);
      if (known !== undefined && known.generation === deps.fleet().generationOf(nodeId)) {
        return { kind: 'made', stamp: known, value: undefined };
      }
      const newest = get(nodeId);
      return newest.kind === 'made' ? { kind: 'made', stamp: newest.stamp, value: undefined } : newest;
    },
  };
}
