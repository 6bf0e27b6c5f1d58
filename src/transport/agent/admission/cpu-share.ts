/**
 * How much of one processor handshakes may use: a budget in milliseconds that refills with time. Each handshake is
 * charged what handshakes have cost so far, and corrected when its own cost is known.
 * Implements `docs/contract/configuration.md`, SVC_HANDSHAKE_CPU_SHARE.
 */
import { tuning } from '../tuning.js';

export interface CpuShare {
  /** Milliseconds until a handshake may begin; 0 now. */
  wait(now: number): number;
  /** Charges the estimate; answers it. */
  take(now: number): number;
  /** Replaces a charged estimate by the cost that it had. */
  settle(estimate: number, cost: number): void;
}

const firstGuessMs = 0.5;
const weight = 0.1;

/** @param share of one processor, above 0 and at most 1 */
export function createCpuShare(share: number, start: number): CpuShare {
  let balance: number = tuning.handshakeBurstMs;
  let at = start;
  let estimate = firstGuessMs;
  const refill = (now: number): void => {
    balance = Math.min(tuning.handshakeBurstMs, balance + Math.max(0, now - at) * share);
    at = now;
  };
  return {
    wait(now) {
      refill(now);
      return balance > 0 ? 0 : -balance / share + 1;
    },
    take(now) {
      refill(now);
      balance -= estimate;
      return estimate;
    },
    settle(charged, cost) {
      balance += charged - cost;
      estimate = estimate * (1 - weight) + cost * weight;
    },
  };
}
