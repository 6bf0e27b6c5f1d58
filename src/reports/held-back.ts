/**
 * What nodes tell while it is still read what they told before: held back, so that counters go on from there. All nodes are
 * held at the start, and one while its session begins here that may have been elsewhere. Only what a node told last is kept.
 */

/** Of one node. */
const mostHeld = 8;

export interface HeldBack {
  /** Enters what a node tells: at once, or when the node is no longer held. */
  enter(nodeId: string, enter: () => void): void;
  hold(nodeId: string): void;
  release(nodeId: string): void;
  /** Every node that is not held for itself. */
  releaseAll(): void;
}

export function createHeldBack(): HeldBack {
  const held = new Map<string, (() => void)[]>();
  const own = new Set<string>();
  let all = true;

  const isHeld = (nodeId: string): boolean => all || own.has(nodeId);
  const letGo = (nodeId: string): void => {
    const enters = held.get(nodeId) ?? [];
    held.delete(nodeId);
    for (const enter of enters) enter();
  };
  return {
    enter(nodeId, enter) {
      if (!isHeld(nodeId)) return enter();
      const enters = held.get(nodeId) ?? [];
      held.set(nodeId, enters);
      enters.push(enter);
      if (enters.length > mostHeld) enters.shift();
    },
    hold: (nodeId) => void own.add(nodeId),
    release(nodeId) {
      own.delete(nodeId);
      if (!isHeld(nodeId)) letGo(nodeId);
    },
    releaseAll() {
      all = false;
      for (const nodeId of held.keys()) if (!isHeld(nodeId)) letGo(nodeId);
    },
  };
}
