/**
 * When changes arrive: which agents have a change already, and how long each took. Pure: the times come with the events. An
 * agent has a change when it has applied the change's generation or a later one, so pushes that were left out count too.
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
   * A change was answered: from now on it is known which generation holds it.
   * @param expected the agents that must get it
   * @returns the agents that had it before the answer
   */
  changed(kind: 'one' | 'all', sentAt: number, generation: number, expected: Iterable<string>): readonly Arrival[];
  /** Agents that lack a change which they should have. */
  behind(): number;
  /** Milliseconds from each change of all nodes until the last agent had it, of those that all have. */
  readonly lasts: readonly number[];
}

/** Events that a change may look back at: those from before its answer. */
const rememberedMax = 60_000;
/** How far events of several processes may be out of order. */
const outOfOrderMs = 1_000;
/** Changes that may be under way; the oldest is forgotten beyond it, and never counts as arrived. */
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
