/**
 * A node's snapshot at an earlier generation, as operators see it: compiled elsewhere (`src/history/`) with secrets sealed,
 * which are opened here only to compute the checksum of the bytes that an agent would get. Answers are kept for a while:
 * what lies in the past does not change. Implements `docs/contract/rest.md#nodes`.
 */
import type { NodeSnapshot } from '../domain/snapshot/snapshot.js';
import { createLru } from '../kernel/lru.js';
import { stampOf } from './cache.js';
import { encodeSnapshot } from './encode.js';
import type { SnapshotJson } from './port.js';
import type { SecretOpener } from './secrets.js';
import { openSecrets } from './secrets.js';
import { snapshotToJson } from './snapshot-json.js';
import { tuning } from './tuning.js';

export interface EarlierSnapshotsDeps {
  /** Undefined when the node had no generation so early. @throws ServiceError `unavailable` */
  compileEarlier(nodeId: string, generation: number): Promise<NodeSnapshot | undefined>;
  readonly openSecret: SecretOpener;
}

/**
 * @returns a function that gives the snapshot at the newest generation not above the wanted one; undefined when there is
 *   none. It throws ServiceError `unavailable`, and SecretUnreadableError
 */
export function createEarlierSnapshots(
  deps: EarlierSnapshotsDeps,
): (nodeId: string, generation: number) => Promise<SnapshotJson | undefined> {
  const answers = createLru<string, { readonly answer: SnapshotJson; readonly bytes: number }>({
    maxEntries: tuning.earlierEntries,
    maxWeight: tuning.earlierBytes,
    weigh: ({ bytes }) => bytes,
  });
  /** Callers who want the same at the same time wait for one answer. */
  const making = new Map<string, Promise<SnapshotJson | undefined>>();

  const make = async (nodeId: string, generation: number): Promise<SnapshotJson | undefined> => {
    const snapshot = await deps.compileEarlier(nodeId, generation);
    if (snapshot === undefined) return undefined;
    const push = encodeSnapshot(snapshot, openSecrets(snapshot, deps.openSecret));
    const answer = { ...stampOf(push), snapshot: snapshotToJson(snapshot, push.checksum) };
    for (const each of new Set([generation, answer.generation])) {
      answers.set(keyOf(nodeId, each), { answer, bytes: push.payload.length });
    }
    return answer;
  };

  return async (nodeId, generation) => {
    const key = keyOf(nodeId, generation);
    const known = answers.get(key);
    if (known !== undefined) return known.answer;
    const underWay = making.get(key);
    if (underWay !== undefined) return underWay;
    const made = make(nodeId, generation).finally(() => making.delete(key));
    making.set(key, made);
    return made;
  };
}

const keyOf = (nodeId: string, generation: number): string => `${nodeId}@${generation}`;
