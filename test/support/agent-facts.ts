/** The facts about agents, as an instance folds them from the log. */
import type { Sealing } from '../../src/storage/sealed-checkpoint.js';
import { silentLogger, type Logger } from '../../src/kernel/logger.js';
import { followInMemory } from '../../src/projections/log-follower.js';
import { openAgentFacts, type AgentFactsFold } from '../../src/reports/facts.js';
import type { EventStore } from '../../src/storage/event-store.js';
import { expect } from 'vitest';

export interface FollowedFacts extends AgentFactsFold {
  /** Resolves once everything that is in the log now is folded. */
  settled(): Promise<void>;
  stop(): Promise<void>;
}

/** Opens the fold, at its checkpoint if there is one, and follows the log. */
export async function followFacts(
  eventStore: EventStore,
  { logger = silentLogger, sealing = { seal: (text) => `sealed ${text}` }, checkpointEvery }: FollowOptions = {},
): Promise<FollowedFacts> {
  const facts = await openAgentFacts({ eventStore, sealing, logger });
  const follower = followInMemory({ eventStore, logger, folds: [facts], checkpointEvery });
  await expect.poll(() => facts.caughtUp() || facts.failure() !== undefined, { interval: 1 }).toBe(true);
  return {
    ...facts,
    async settled() {
      const fresh = await followedHead(eventStore, facts);
      await expect.poll(() => facts.position() >= fresh, { interval: 1 }).toBe(true);
    },
    async stop() {
      await follower.close();
      facts.close();
    },
  };
}

interface FollowOptions {
  readonly logger?: Logger;
  readonly sealing?: Sealing;
  readonly checkpointEvery?: number;
}

/** Position of the newest event of the streams that the facts follow. */
async function followedHead(eventStore: EventStore, { streams }: AgentFactsFold): Promise<number> {
  let head = 0;
  for (const stream of streams) {
    for await (const { position } of eventStore.read(stream, { direction: 'backward', from: 'end', maxCount: 1 })) {
      head = Math.max(head, position);
    }
  }
  return head;
}
