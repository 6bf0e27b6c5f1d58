/**
 * The bound over all handshakes of the instance: sessions that are pending or handshaking, and the processor time that
 * handshakes use. Who finds it shut waits in one line. Implements `docs/contract/agent-protocol.md#opensession` ("admission is
 * delayed up to 2 s, then refused"; "A global CPU budget for handshakes bounds the rest").
 */
import type { Clock } from '../../../kernel/clock.js';
import { createCpuShare } from './cpu-share.js';
import { createLine } from './line.js';
import { tuning } from '../tuning.js';

export interface HandshakePlace {
  /** The handshake is over; `cpuMs` is what it cost. Counts once. */
  leave(cpuMs: number): void;
}

export interface HandshakeGate {
  /** A place, or undefined when there was none within `waitMs`. */
  enter(waitMs: number): Promise<HandshakePlace | undefined>;
  /** A pending session has gone. */
  poke(): void;
  close(): void;
  readonly waiting: number;
}

export interface HandshakeGateOptions {
  readonly clock: Clock;
  /** Sessions pending or handshaking at most; as many again may wait. */
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
          // Not at once: sockets get a turn between two lots of handshakes.
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
