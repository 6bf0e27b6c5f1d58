/**
 * Raises a node's generation above the version that its agent reports, which is higher after a restore of the store: at most
 * once a minute and six times an hour per node, because each raise is kept forever. A version that no log can have produced is
 * recorded as a conflict. Implements `docs/contract/domain.md#generation`.
 */
import type { AgentEvent, RecordFact } from '../domain/agents/facts.js';
import type { Clock } from '../kernel/clock.js';
import { limits } from '../kernel/limits.js';
import { createLru } from '../kernel/lru.js';
import { hourMs, remainingMs, waitMs, withTime } from '../kernel/spacing.js';
import { tuning } from './tuning.js';

/** At most one version conflict per node is recorded in this time. */
const versionConflictEveryMs = 60_000;

export type RaiseOutcome =
  | { readonly kind: 'raised' }
  | { readonly kind: 'too_soon'; readonly retryAfterMs: number }
  /** The command was not written, or did not reach the fold in time. */
  | { readonly kind: 'unavailable' };

export interface GenerationRaisesDeps {
  readonly clock: Clock;
  raiseGeneration(nodeId: string, reported: number): Promise<void>;
  /** True once the node's generation is above `reported`. */
  passed(nodeId: string, reported: number): Promise<boolean>;
  readonly recordFact: RecordFact;
  onError(nodeId: string, error: unknown): void;
}

export type GenerationRaises = ReturnType<typeof createGenerationRaises>;

export function createGenerationRaises(deps: GenerationRaisesDeps) {
  const { clock } = deps;
  const spacing = limits.fleet.generationRaises;
  /** Times of recent raises, oldest first. */
  const raisedAt = createLru<readonly number[]>(tuning.rememberedNodes);
  const conflictAt = createLru<number>(tuning.rememberedNodes);

  return {
    /** Raises the node's generation above `reported`, and waits until the committed fleet has the raise. */
    async raise(nodeId: string, reported: number): Promise<RaiseOutcome> {
      const startedAt = clock.now();
      const earlier = raisedAt.get(nodeId) ?? [];
      const retryAfterMs = waitMs(earlier, startedAt, spacing);
      if (retryAfterMs > 0) return { kind: 'too_soon', retryAfterMs };
      raisedAt.set(nodeId, withTime(earlier, startedAt, spacing));
      try {
        await deps.raiseGeneration(nodeId, reported);
      } catch (error) {
        // Perhaps nothing was written, so the next attempt is not too soon.
        if (raisedAt.get(nodeId)?.at(-1) === startedAt) raisedAt.set(nodeId, earlier);
        deps.onError(nodeId, error);
        return { kind: 'unavailable' };
      }
      return (await deps.passed(nodeId, reported)) ? { kind: 'raised' } : { kind: 'unavailable' };
    },
    /** Notes a raise in the log, by any instance. @param at time of the command, RFC 3339 */
    seen(nodeId: string, at: string): void {
      // A clock that is ahead delays the next one no longer than one that is right.
      const [time, known] = [Math.min(Date.parse(at), clock.now()), raisedAt.get(nodeId) ?? []];
      // This instance's own raises are already noted, slightly earlier.
      const last = known.at(-1);
      const times = last !== undefined && time - last < spacing.everyMs ? known.slice(0, -1) : known;
      if (clock.now() - time < hourMs) raisedAt.set(nodeId, withTime(times, time, spacing));
    },
    /** Records a version that no log can have produced. */
    conflict(nodeId: string, sessionId: string, reported: bigint): void {
      if (remainingMs(conflictAt.get(nodeId), versionConflictEveryMs, clock.now()) > 0) return;
      conflictAt.set(nodeId, clock.now());
      const event: AgentEvent = {
        type: 'AgentVersionConflict',
        data: { node_id: nodeId, reported: String(reported) },
      };
      deps.recordFact(nodeId, event, sessionId).catch((error: unknown) => {
        conflictAt.delete(nodeId);
        deps.onError(nodeId, error);
      });
    },
  };
}
