/**
 * The configuration that a node had at an earlier generation: the log is folded again, command by command, until the
 * node's generation would pass the wanted one, and the node is compiled there, by today's compiler.
 * `src/projections/history/` provides the commands. Implements `docs/contract/rest.md#nodes`.
 */
import type { RecordedCommand } from '../../kernel/event.js';
import { lastEvent } from '../../kernel/event.js';
import { applyCommand } from '../fleet/apply.js';
import type { Fleet } from '../fleet/fleet.js';
import { draftFleet } from '../fleet/fleet.js';
import type { NodeSnapshot } from '../snapshot/snapshot.js';
import { compileNode } from './compile-node.js';

export interface EarlierFold {
  /**
   * Folds the next command, which `log/upcast.ts` has read.
   * @returns false when the command, or any after it, is past the wanted generation; the fleet is then as before it
   */
  fold(command: RecordedCommand): boolean;
  /** The snapshot at the newest generation not above the wanted one, or undefined. */
  snapshot(): NodeSnapshot | undefined;
}

/** A generation is never below this revision's. @returns whether no event at the revision can be part of it */
export const isPast = (revision: number, generation: number): boolean => 1 + revision > generation;

/**
 * Whether a fold may begin at this fleet: it holds nothing that is past the wanted generation. A fleet without the node says
 * nothing: the node may have been deleted before, and brought back later.
 */
export function mayBeginAt(fleet: Fleet, nodeId: string, generation: number): boolean {
  const at = fleet.generationOf(nodeId);
  return at !== undefined && at <= generation;
}

/** @param fleet an empty one, or one that `mayBeginAt` accepts; it is changed */
export function earlierFold(fleet: Fleet, nodeId: string, generation: number): EarlierFold {
  /** The generation of the node before it was deleted. */
  let deleted: NodeSnapshot | undefined;
  return {
    fold(command) {
      if (isPast(lastEvent(command).revision, generation)) return false;
      const before = fleet.generationOf(nodeId);
      const { state: draft, merge } = draftFleet(fleet);
      applyCommand(draft, command);
      const after = draft.generationOf(nodeId);
      if (after !== undefined && after > generation) return false;
      // It may be brought back; until then its last snapshot stays the newest.
      if (before !== undefined && after === undefined) deleted = compileNode(fleet, nodeId);
      merge();
      return true;
    },
    snapshot: () => (fleet.generationOf(nodeId) === undefined ? deleted : compileNode(fleet, nodeId)),
  };
}
