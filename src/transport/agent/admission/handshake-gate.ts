/**
 * The bounds on all handshakes of this instance: the number of sessions that are pending or handshaking, and the
 * processor time that handshakes use. Callers over the bounds wait in one line.
 * Implements `docs/contract/agent-protocol.md#opensession` ("admission is delayed up to 2 s"; "A global CPU budget").
 */
import type { Clock } from '../../../kernel/clock.js';
import { createCpuShare } from './cpu-share.js';
import { createLine } from './line.js';
import { tuning } from '../tuning.js';

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
      const full = options.pending() + handshaking >= maxSessions || handshaking >= tuning.handshakesAtOnce;
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
