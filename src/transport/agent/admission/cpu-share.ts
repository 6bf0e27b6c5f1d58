/**
 * How much of one processor handshakes may use: a budget in milliseconds that refills with time. Each handshake is
 * charged an average of the earlier ones, and corrected once its own cost is known.
 * Implements SVC_HANDSHAKE_CPU_SHARE of `docs/contract/configuration.md`.
 */
import { tuning } from '../tuning.js';

interface CpuShare {
  /** Milliseconds until a handshake may begin; 0: now. */
  wait(now: number): number;
  /**
   * Charges an estimate for one handshake.
   * @returns the estimate
   */
  take(now: number): number;
  /** Replaces a charged estimate by the actual cost. */
  settle(estimate: number, cost: number): void;
}

const firstEstimateMs = 0.5;
/** Weight of the newest handshake in the average. */
const weight = 0.1;

/** @param share share of one processor, above 0 and at most 1 */
export function createCpuShare(share: number, start: number): CpuShare {
  let balance: number = tuning.handshakeBurstMs;
  let refilledAt = start;
  let estimate = firstEstimateMs;
  const refill = (now: number): void => {
    balance = Math.min(tuning.handshakeBurstMs, balance + Math.max(0, now - refilledAt) * share);
    refilledAt = now;
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
