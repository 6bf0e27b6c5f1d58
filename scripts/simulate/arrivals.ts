/**
 * When changes arrive: which agents already have a change, and how long each took. Pure. An agent has a change when it
 * has applied the change's generation or a later one, so skipped pushes count too.
 */
import type { AppliedEvent } from './process.js';

export interface Arrival {
  readonly kind: 'one' | 'all';
  readonly tookMs: number;
  /** When the agent applied it. */
  readonly at: number;
}

interface Change {
  readonly kind: 'one' | 'all';
  readonly generation: number;
  readonly sentAt: number;
  readonly missing: Set<string>;
}

export interface Arrivals {
  /** An agent has applied a generation. @returns the changes that it has with that */
  applied(event: AppliedEvent): readonly Arrival[];
  /**
   * A change was answered, so its generation is known now.
   * @param expected the agents that must get it
   * @returns the agents that had it before the answer
   */
  changed(kind: 'one' | 'all', sentAt: number, generation: number, expected: Iterable<string>): readonly Arrival[];
  /** Agents that lack a change they should have. */
  behind(): number;
  /** For each change of all nodes that has reached every agent: milliseconds until the last one had it. */
  readonly lasts: readonly number[];
}

/** Events kept for changes whose answer is still to come. */
const rememberedMax = 60_000;
/** How far events of several processes may be out of order. */
const outOfOrderMs = 1_000;
/** Pending changes; above it, the oldest is forgotten and never counts as arrived. */
const changesMax = 500;

export function createArrivals(): Arrivals {
  const remembered: AppliedEvent[] = [];
  const newest = new Map<string, number>();
  let changes: Change[] = [];
  const lasts: number[] = [];

  const arrive = (change: Change, { nodeId, generation, at }: AppliedEvent): Arrival | undefined => {
    if (generation < change.generation || at < change.sentAt || !change.missing.delete(nodeId)) return undefined;
    const tookMs = at - change.sentAt;
    if (change.missing.size === 0 && change.kind === 'all') lasts.push(tookMs);
    return { kind: change.kind, tookMs, at };
  };

  return {
    lasts,
    applied(event) {
      newest.set(event.nodeId, Math.max(event.generation, newest.get(event.nodeId) ?? 0));
      remembered.push(event);
      if (remembered.length > 2 * rememberedMax) remembered.splice(0, rememberedMax);
      const found: Arrival[] = [];
      for (const change of changes) {
        const arrival = arrive(change, event);
        if (arrival !== undefined) found.push(arrival);
      }
      if (found.length > 0) changes = changes.filter(({ missing }) => missing.size > 0);
      return found;
    },
    changed(kind, sentAt, generation, expected) {
      const change: Change = { kind, generation, sentAt, missing: new Set(expected) };
      const found: Arrival[] = [];
      let from = remembered.length;
      while (from > 0 && (remembered[from - 1]?.at ?? 0) >= sentAt - outOfOrderMs) from -= 1;
      for (const event of remembered.slice(from)) {
        const arrival = arrive(change, event);
        if (arrival !== undefined) found.push(arrival);
      }
      if (change.missing.size > 0) changes.push(change);
      if (changes.length > changesMax) changes.shift();
      return found;
    },
    behind() {
      const late = new Set<string>();
      for (const { missing, generation } of changes) {
        for (const nodeId of missing) if ((newest.get(nodeId) ?? 0) < generation) late.add(nodeId);
      }
      return late.size;
    },
  };
}
