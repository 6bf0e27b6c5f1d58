/**
 * The newest commands of the log as steps of the feed, in memory, bounded by number and bytes, for readers near the end.
 * Implements `docs/contract/automation.md#event-feed`.
 */
import type { FeedItem, FeedPlace } from './port.js';
import { tuning } from './tuning.js';

/** A command, or one of its items when it has several. */
export interface Step {
  readonly place: FeedPlace & { readonly cursor: string };
  readonly item: FeedItem | null;
  /** Number of events; those of a command count with its last step. */
  readonly events: number;
}

export interface Window {
  /** The place before its first step, and the place after its last. */
  readonly from: FeedPlace;
  readonly to: FeedPlace;
  add(steps: readonly Step[]): void;
  /** The steps after a place; undefined if the window begins later. */
  behind(place: FeedPlace): Iterable<Step> | undefined;
  has(place: { readonly position: number; readonly cursor: string }): boolean;
}

export interface WindowBounds {
  readonly commands: number;
  /** As `bytesOf` counts them. */
  readonly bytes: number;
}

/** Approximate memory of a step: an apply names thousands of resources. */
function bytesOf({ item }: Step): number {
  if (item === null) return 256;
  const { resources, nodes } = item.about;
  return 256 + item.json.length + 128 * (resources.length + nodes.length);
}

export function createWindow(begin: FeedPlace, bounds: WindowBounds = tuning.window): Window {
  let steps: Step[] = [];
  /** Earlier steps are dropped; the array is cut when they are half of it. */
  let first = 0;
  let bytes = 0;
  let from = begin;
  let to = begin;

  function drop(): void {
    while (steps.length - first > bounds.commands || (bytes > bounds.bytes && steps.length - first > 1)) {
      const step = steps[first];
      if (step === undefined) return;
      bytes -= bytesOf(step);
      from = step.place;
      first += 1;
    }
    if (first * 2 > steps.length) {
      steps = steps.slice(first);
      first = 0;
    }
  }

  /** Index of the first step after a position. */
  function indexBehind(position: number): number {
    let [low, high] = [first, steps.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((steps[middle]?.place.position ?? 0) <= position) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  return {
    get from() {
      return from;
    },
    get to() {
      return to;
    },
    add(more) {
      for (const step of more) {
        steps.push(step);
        bytes += bytesOf(step);
        to = step.place;
      }
      drop();
    },
    behind({ position }) {
      return position < from.position ? undefined : steps.slice(indexBehind(position));
    },
    has({ position, cursor }) {
      if (to.cursor === cursor || from.cursor === cursor) return true;
      const step = steps[indexBehind(position) - 1];
      return step?.place.position === position && step.place.cursor === cursor;
    },
  };
}
