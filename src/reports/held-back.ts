/**
 * Holds back reports while a node's earlier ones are still being read, so that its counters continue from there: of all nodes
 * at the start, and of one node while its session opens, because it may come from another instance.
 */
import { getOrMake } from '../kernel/maps.js';

/** Newest reports of one node that are held. */
const maxHeld = 8;

export type HeldBack = ReturnType<typeof createHeldBack>;

export function createHeldBack() {
  const held = new Map<string, (() => void)[]>();
  const own = new Set<string>();
  let all = true;

  const isHeld = (nodeId: string): boolean => all || own.has(nodeId);
  const flush = (nodeId: string): void => {
    const enters = held.get(nodeId) ?? [];
    held.delete(nodeId);
    for (const enter of enters) enter();
  };
  return {
    /** Calls `enter` at once, or when the node is released. */
    enter(nodeId: string, enter: () => void): void {
      if (!isHeld(nodeId)) return enter();
      const enters = getOrMake(held, nodeId, () => []);
      enters.push(enter);
      if (enters.length > maxHeld) enters.shift();
    },
    hold: (nodeId: string): void => void own.add(nodeId),
    release(nodeId: string): void {
      own.delete(nodeId);
      if (!isHeld(nodeId)) flush(nodeId);
    },
    /** Releases every node that is not held individually. */
    releaseAll(): void {
      all = false;
      for (const nodeId of held.keys()) if (!isHeld(nodeId)) flush(nodeId);
    },
  };
}
