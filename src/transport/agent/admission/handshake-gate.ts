/**
 * The bounds on all handshakes of this instance: the number of sessions that are pending or handshaking, and the CPU
 * time of handshakes (SVC_HANDSHAKE_CPU_SHARE of `docs/contract/configuration.md`). Callers over the bounds wait in one
 * line. Implements `docs/contract/agent-protocol.md#opensession` ("admission is delayed up to 2 s"; "A global CPU
 * budget").
 */
import type { Clock } from '../../../kernel/clock.js';
import { createTokenBucket } from '../../../kernel/token-bucket.js';
import { createLine } from './line.js';

/** CPU time that handshakes may use at once after a quiet period. */
const handshakeBurstMs = 250;
/** Handshakes that run at the same time. */
const handshakesAtOnce = 32;

/** The handshake is over and has cost `cpuMs`. */
type Leave = (cpuMs: number) => void;

interface HandshakeGateOptions {
  readonly clock: Clock;
  /** At most this many sessions are pending or handshaking; as many again may wait. */
  readonly maxSessions: number;
  readonly cpuShare: number;
  pending(): number;
}

export type HandshakeGate = ReturnType<typeof createHandshakeGate>;

export function createHandshakeGate(options: HandshakeGateOptions) {
  const { clock, maxSessions } = options;
  /** Milliseconds of CPU time. Each handshake is charged when its cost is known. */
  const cpu = createTokenBucket(options.cpuShare * 1_000, handshakeBurstMs, clock.monotonic());
  let handshaking = 0;
  const line = createLine({
    delay() {
      const full = options.pending() + handshaking >= maxSessions || handshaking >= handshakesAtOnce;
      return full ? Number.POSITIVE_INFINITY : cpu.wait(clock.monotonic(), 0);
    },
    take() {
      handshaking += 1;
    },
    maxWaiting: maxSessions,
  });
  return {
    /** Takes a place; undefined if none became free within `waitMs`. */
    async enter(waitMs: number): Promise<Leave | undefined> {
      const passed = await line.enter(waitMs);
      if (!passed) return undefined;
      return (cpuMs) => {
        handshaking -= 1;
        cpu.take(clock.monotonic(), cpuMs);
        // Deferred, so that sockets get a turn between two batches of handshakes.
        if (line.waiting > 0) setImmediate(line.poke);
      };
    },
    /** A pending session is gone, so a place may be free. */
    poke(): void {
      if (line.waiting > 0) line.poke();
    },
    close: (): void => line.close(),
    get waiting(): number {
      return line.waiting;
    },
  };
}
