/** Waits for applies that the agents' process reports. */
import { timedOut, withDeadline } from '../src/kernel/background.js';
import type { Child } from './child.js';
import type { AgentEvent } from './processes/agents.js';

export interface Applies {
  /** Waits for the next apply of each of these agents; call it before the edit. Resolves with the events by agent. */
  next(agents: readonly string[], timeoutMs?: number): Promise<ReadonlyMap<string, AgentEvent>>;
}

export function watchApplies(...children: readonly Child[]): Applies {
  const waiting = new Set<(event: AgentEvent) => void>();
  for (const child of children) {
    child.onEvents((events) => {
      for (const event of events as readonly AgentEvent[]) for (const see of waiting) see(event);
    });
  }
  return {
    async next(agents, timeoutMs = 30_000) {
      const missing = new Set(agents);
      const seen = new Map<string, AgentEvent>();
      let done: () => void = () => undefined;
      const all = new Promise<void>((resolve) => {
        done = resolve;
      });
      const see = (event: AgentEvent): void => {
        if (!missing.delete(event.agent)) return;
        seen.set(event.agent, event);
        if (missing.size === 0) done();
      };
      waiting.add(see);
      try {
        if ((await withDeadline(all, timeoutMs)) === timedOut) {
          throw new Error(`${missing.size} of ${agents.length} agents have not applied within ${timeoutMs} ms`);
        }
        return seen;
      } finally {
        waiting.delete(see);
      }
    },
  };
}
