/**
 * Pairs of address and node that opened a session in the last 24 hours. Such a node does not wait behind the failures of
 * others from its address, for example behind a balancer. An attacker who knows the node's id and shares its address
 * gains only a few failures, which use up the pair's own budget; then it waits like any other.
 * Implements `docs/contract/agent-protocol.md#opensession` ("has a lane of its own"). Each instance knows only the pairs
 * that had a session with it.
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

export interface ProvenPairs {
  /** The node has proven a session from this address. */
  proven(address: string, nodeId: string): void;
  /** Charges the budget of this pair; undefined if the pair is not proven or its own failures have used it up. */
  take(address: string, nodeId: string): Charge | undefined;
}

interface Pair {
  provenAt: number;
  readonly failures: TokenBucket;
}

export function createProvenPairs(clock: Clock, maxEntries: number = tuning.provenPairs): ProvenPairs {
  const pairs = createLru<string, Pair>({ maxEntries });
  const keyOf = (address: string, nodeId: string): string => `${addressKey(address)} ${nodeId}`;
  return {
    proven(address, nodeId) {
      const now = clock.monotonic();
      const pair = pairs.getOrCreate(keyOf(address, nodeId), () => ({
        provenAt: now,
        failures: createTokenBucket(tuning.provenPairFailuresPerSecond, tuning.provenPairBurst, now),
      }));
      pair.provenAt = now;
    },
    take(address, nodeId) {
      const pair = pairs.get(keyOf(address, nodeId));
      if (pair === undefined) return undefined;
      const now = clock.monotonic();
      if (now - pair.provenAt >= limits.agent.provenPairMs || pair.failures.wait(now) > 0) return undefined;
      pair.failures.take(now);
      return chargeOf(() => pair.failures.give(clock.monotonic()));
    },
  };
}
