/**
 * When an agent's version is above its node's (the store was restored) the node's generation is raised above it, at
 * most once a minute per node; a version that no log could have given is a conflict, recorded and refused.
 * Implements `docs/contract/domain.md`, `NodeGenerationRaised`.
 */
import type { AgentEvent } from '../domain/agents/facts.js';
import type { Clock } from '../kernel/clock.js';
import { limits } from '../kernel/limits.js';
import { createLru } from '../kernel/lru.js';
import { tuning } from './tuning.js';

export type RaiseOutcome =
  | { readonly kind: 'raised' }
  | { readonly kind: 'too_soon'; readonly retryAfterMs: number }
  /** The command could not be written, or did not come back in time. */
  | { readonly kind: 'unavailable' };

export interface GenerationRaises {
  /** Raises the node above `reported`, and waits until the committed fold has it. */
  raise(nodeId: string, reported: number): Promise<RaiseOutcome>;
  /** A raise was seen in the log, by whichever instance. @param at RFC 3339 */
  seen(nodeId: string, at: string): void;
  /** Records an absurd version, at most once a minute per node. */
  conflict(nodeId: string, reported: bigint): void;
}

export interface GenerationRaisesDeps {
  readonly clock: Clock;
  raiseGeneration(nodeId: string, reported: number): Promise<void>;
  /** True once the node's generation is above `reported`. */
  passed(nodeId: string, reported: number): Promise<boolean>;
  recordFact(nodeId: string, event: AgentEvent): Promise<void>;
  onError(nodeId: string, error: unknown): void;
}

export function createGenerationRaises(deps: GenerationRaisesDeps): GenerationRaises {
  const { clock } = deps;
  const raisedAt = createLru<string, number>({ maxEntries: tuning.rememberedNodes });
  const conflictAt = createLru<string, number>({ maxEntries: tuning.rememberedNodes });

  const remainingMs = (last: number | undefined, everyMs: number): number =>
    last === undefined ? 0 : Math.min(everyMs, Math.max(0, last + everyMs - clock.now()));

  return {
    async raise(nodeId, reported) {
      const retryAfterMs = remainingMs(raisedAt.get(nodeId), limits.fleet.generationRaiseEveryMs);
      if (retryAfterMs > 0) return { kind: 'too_soon', retryAfterMs };
      const startedAt = clock.now();
      raisedAt.set(nodeId, startedAt);
      try {
        await deps.raiseGeneration(nodeId, reported);
      } catch (error) {
        // Nothing is known to have been written: the next try is not too soon.
        if (raisedAt.get(nodeId) === startedAt) raisedAt.delete(nodeId);
        deps.onError(nodeId, error);
        return { kind: 'unavailable' };
      }
      return (await deps.passed(nodeId, reported)) ? { kind: 'raised' } : { kind: 'unavailable' };
    },
    seen(nodeId, at) {
      const time = Date.parse(at);
      if (remainingMs(time, limits.fleet.generationRaiseEveryMs) > 0) raisedAt.set(nodeId, time);
    },
    conflict(nodeId, reported) {
      if (remainingMs(conflictAt.get(nodeId), tuning.versionConflictEveryMs) > 0) return;
      conflictAt.set(nodeId, clock.now());
      const event: AgentEvent = {
        type: 'AgentVersionConflict',
        data: { node_id: nodeId, reported: String(reported) },
      };
      deps.recordFact(nodeId, event).catch((error: unknown) => {
        conflictAt.delete(nodeId);
        deps.onError(nodeId, error);
      });
    },
  };
}
