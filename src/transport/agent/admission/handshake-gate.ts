/**
 * The bounds on all handshakes of this instance: the number of sessions that are pending or handshaking, and the
 * processor time that handshakes use. Callers over the bounds wait in one line.
 * Implements `docs/contract/agent-protocol.md#opensession` ("admission is delayed up to 2 s"; "A global CPU budget").
 */
import type { Clock } from '../../../kernel/clock.js';
import { createLine } from './line.js';

/** Processor time that handshakes may use at once after a quiet period. */
const handshakeBurstMs = 250;
/** Handshakes that run at the same time. */
const handshakesAtOnce = 32;

interface HandshakePlace {
  /** The handshake is over and has cost `cpuMs`. Only the first call counts. */
  leave(cpuMs: number): void;
}

export interface HandshakeGate {
  /** A place, or undefined if none became free within `waitMs`. */
  enter(waitMs: number): Promise<HandshakePlace | undefined>;
  /** A pending session is gone, so a place may be free. */
  poke(): void;
  close(): void;
  readonly waiting: number;
}

interface HandshakeGateOptions {
  readonly clock: Clock;
  /** At most this many sessions are pending or handshaking; as many again may wait. */
  readonly maxSessions: number;
  readonly cpuShare: number;
  pending(): number;
}

export function createHandshakeGate(options: HandshakeGateOptions): HandshakeGate {
  const { clock, maxSessions } = options;
  const cpu = createCpuShare(options.cpuShare, clock.monotonic());
  let handshaking = 0;
  let charged = 0;
  const line = createLine({
    delay() {
      const full = options.pending() + handshaking >= maxSessions || handshaking >= handshakesAtOnce;
      return full ? Number.POSITIVE_INFINITY : cpu.wait(clock.monotonic());
    },
    take() {
      handshaking += 1;
      charged = cpu.take(clock.monotonic());
    },
    maxWaiting: maxSessions,
  });
  return {
    async enter(waitMs) {
      const passed = await line.enter(waitMs);
      if (!passed) return undefined;
      const estimate = charged;
      let left = false;
      return {
        leave(cpuMs) {
          if (left) return;
          left = true;
          handshaking -= 1;
          cpu.settle(estimate, cpuMs);
          // Not at once: sockets get a turn between two batches of handshakes.
          if (line.waiting > 0) setImmediate(line.poke);
        },
      };
    },
    poke() {
      if (line.waiting > 0) line.poke();
    },
    close: () => line.close(),
    get waiting() {
      return line.waiting;
    },
  };
}

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

/**
 * How much of one processor handshakes may use: a budget in milliseconds that refills with time. Each handshake is charged an
 * average of the earlier ones, and corrected once its own cost is known. Implements SVC_HANDSHAKE_CPU_SHARE of
 * `docs/contract/configuration.md`.
 * @param share share of one processor, above 0 and at most 1
 * @internal exported for tests
 */
export function createCpuShare(share: number, start: number): CpuShare {
  let balance: number = handshakeBurstMs;
  let refilledAt = start;
  let estimate = firstEstimateMs;
  const refill = (now: number): void => {
    balance = Math.min(handshakeBurstMs, balance + Math.max(0, now - refilledAt) * share);
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
