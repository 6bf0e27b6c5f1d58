/**
 * Lanes of nodes that were here before: a pair of address and node that opened a session in the last 24 hours does not
 * wait behind the failures of others from its address, as behind a balancer. Whoever learns a node's id and shares its
 * address can use the lane up, no more: it takes a few failures of its own, and then the pair is like any other.
 * Implements `docs/contract/agent-protocol.md#opensession` ("has a lane of its own"). A lane is known to the instance that
 * had the session.
 */
import { addressKey } from '../../../kernel/address-key.js';
import type { Clock } from '../../../kernel/clock.js';
import { limits } from '../../../kernel/limits.js';
import { createLru } from '../../../kernel/lru.js';
import { chargeOf } from './charge.js';
import type { Charge } from './charge.js';
import { createTokenBucket } from '../../../kernel/token-bucket.js';
import type { TokenBucket } from '../../../kernel/token-bucket.js';
import { tuning } from '../tuning.js';

export interface Lanes {
  /** The node has proven a session from this address. */
  proven(address: string, nodeId: string): void;
  /** Charges the lane of this pair; undefined if it has none, or its own failures have used it up. */
  take(address: string, nodeId: string): Charge | undefined;
}

interface Lane {
  provenAt: number;
  readonly failures: TokenBucket;
}

export function createLanes(clock: Clock, maxEntries: number = tuning.lanes): Lanes {
  const lanes = createLru<string, Lane>({ maxEntries });
  const keyOf = (address: string, nodeId: string): string => `${addressKey(address)} ${nodeId}`;
  return {
    proven(address, nodeId) {
      const key = keyOf(address, nodeId);
      const now = clock.monotonic();
      const lane = lanes.get(key);
      if (lane !== undefined) {
        lane.provenAt = now;
        return;
      }
      const failures = createTokenBucket(tuning.laneFailuresPerSecond, tuning.laneBurst, now);
      lanes.set(key, { provenAt: now, failures });
    },
    take(address, nodeId) {
      const lane = lanes.get(keyOf(address, nodeId));
      if (lane === undefined) return undefined;
      const now = clock.monotonic();
      if (now - lane.provenAt >= limits.agent.provenLaneMs || lane.failures.wait(now) > 0) return undefined;
      lane.failures.take(now);
      return chargeOf(() => lane.failures.give(clock.monotonic()));
    },
  };
}
