/** What the status writer knows of the fleet now. `observer.ts` derives it from reports; tests simulate it. */
import type { Observed } from '../domain/status/decide.js';
import type { StatusKey } from '../domain/status/status.js';

export interface StatusSource {
  /** Every resource that may have a status. */
  keys(): Iterable<StatusKey>;
  /**
   * @param from since when the grace for agents that come back counts, milliseconds since the epoch
   * @returns undefined for a resource that is gone
   */
  observe(key: StatusKey, from: number): Observed | undefined;
  /** Whether the resource had a status before anything was told: it is older than this log's `svc-status`. */
  isOlder(key: StatusKey): boolean;
  /** Calls back with each resource whose status may have changed. @returns how to stop */
  onChange(listener: (key: StatusKey) => void): () => void;
}
