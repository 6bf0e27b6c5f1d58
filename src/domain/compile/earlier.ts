/**
 * The configuration of a node at an earlier generation: folds the log again until the node's generation would pass the wanted
 * one, and compiles the node there with today's compiler. `src/projections/history/` provides the commands.
 * Implements `docs/contract/rest.md#nodes`.
 */
import { lastEvent, type RecordedCommand } from '../../kernel/event.js';
import { applyCommand } from '../fleet/apply.js';
import { draftFleet, type Fleet } from '../fleet/fleet.js';
import type { NodeSnapshot } from '../snapshot/snapshot.js';
import { compileNode } from './compile-node.js';

export interface EarlierFold {
  /**
   * Folds the next command, which `log/upcast.ts` has read.
   * @returns false when the command is past the wanted generation, as all later ones are; the fleet is then unchanged
   */
  fold(command: RecordedCommand): boolean;
  /** The snapshot at the newest generation not above the wanted one, or undefined. */
  snapshot(): NodeSnapshot | undefined;
}

/** Whether an event at the revision is too new for the generation, since generations never lag behind revisions. */
export const isPast = (revision: number, generation: number): boolean => 1 + revision > generation;

/**
 * Whether a fold may begin at this fleet, because it holds nothing past the wanted generation. A fleet without the node
 * proves nothing: the node may have been deleted, and restored later.
 */
export function mayBeginAt(fleet: Fleet, nodeId: string, generation: number): boolean {
  const at = fleet.generationOf(nodeId);
  return at !== undefined && at <= generation;
}

/** @param fleet an empty one, or one that `mayBeginAt` accepts; it is changed */
export function earlierFold(fleet: Fleet, nodeId: string, generation: number): EarlierFold {
  /** The last snapshot of the node before it was deleted. */
  let deleted: NodeSnapshot | undefined;
  return {
    fold(command) {
      if (isPast(lastEvent(command).revision, generation)) return false;
      const before = fleet.generationOf(nodeId);
      const { state: draft, merge } = draftFleet(fleet);
      applyCommand(draft, command);
      const after = draft.generationOf(nodeId);
      if (after !== undefined && after > generation) return false;
      // Until a restore, the last snapshot stays the newest.
      if (before !== undefined && after === undefined) deleted = compileNode(fleet, nodeId);
      merge();
      return true;
    },
    snapshot: () => (fleet.generationOf(nodeId) === undefined ? deleted : compileNode(fleet, nodeId)),
  };
}
