/**
 * Checks upstream clusters without traffic, each at its own interval: a TCP connection to one of its endpoints, with TLS
 * and pins where the rule that dials it has them. Implements `docs/contract/agent-protocol.md#the-reference-agent`.
 */
import { startLoop } from '../../kernel/background.js';
import type { Loop } from '../../kernel/background.js';
import type { HealthCheck } from '../plan/plan.js';
import { dial } from './dial.js';
import { connectTls } from './tls.js';
import type { Upstreams } from './upstreams.js';

export interface HealthChecks {
  /** Replaces what is checked. A cluster with the same interval keeps its rhythm. */
  set(checks: ReadonlyMap<string, HealthCheck>): void;
  close(): Promise<void>;
}

interface Running {
  check: HealthCheck;
  readonly loop: Loop;
}

export function createHealthChecks(upstreams: Pick<Upstreams, 'checked'>): HealthChecks {
  const running = new Map<string, Running>();

  function start(name: string, check: HealthCheck): void {
    const entry: Running = {
      check,
      loop: startLoop(
        check.everyMs,
        async (signal) => {
          const healthy = await reachable(entry.check, signal);
          if (!signal.aborted) upstreams.checked(name, healthy);
        },
        // A check tells its failures by its result.
        () => undefined,
      ),
    };
    running.set(name, entry);
  }

  return {
    set(checks) {
      for (const [name, { check, loop }] of running) {
        if (checks.get(name)?.everyMs === check.everyMs) continue;
        running.delete(name);
        void loop.close();
      }
      for (const [name, check] of checks) {
        const entry = running.get(name);
        if (entry === undefined) start(name, check);
        else entry.check = check;
      }
    },
    async close() {
      await Promise.all(Array.from(running.values(), ({ loop }) => loop.close()));
      running.clear();
    },
  };
}

/** Whether one of the endpoints accepts a connection, and proves one of the pinned keys if TLS is asked for. */
async function reachable({ endpoints, tls }: HealthCheck, signal: AbortSignal): Promise<boolean> {
  for (const endpoint of endpoints) {
    const socket = await dial(endpoint, signal);
    if (typeof socket === 'string') continue;
    const abort = (): void => void socket.destroy();
    signal.addEventListener('abort', abort, { once: true });
    const outcome = tls === undefined ? 'connected' : (await connectTls(socket, tls)).kind;
    signal.removeEventListener('abort', abort);
    socket.destroy();
    if (outcome === 'connected') return true;
  }
  return false;
}
