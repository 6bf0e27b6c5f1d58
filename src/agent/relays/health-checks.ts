/**
 * Checks upstream clusters without traffic, each at its own interval: opens a TCP connection to one of its endpoints,
 * with TLS and pins if the rule that dials it has them. Implements
 * `docs/contract/agent-protocol.md#the-reference-agent`.
 */
import { isDeepStrictEqual } from 'node:util';
import { sleep } from '../../kernel/background.js';
import type { Clock } from '../../kernel/clock.js';
import type { HealthCheck } from '../plan/plan.js';
import { reach } from './reach.js';
import type { Upstreams } from './upstreams.js';

export interface HealthChecks {
  /** Replaces the set of checks. A new or changed check runs at once; an unchanged one keeps its schedule. */
  set(checks: ReadonlyMap<string, HealthCheck>): void;
  close(): Promise<void>;
}

interface Running {
  readonly check: HealthCheck;
  readonly stop: AbortController;
  readonly done: Promise<void>;
}

export function createHealthChecks(upstreams: Pick<Upstreams, 'checked'>, clock: Clock): HealthChecks {
  const running = new Map<string, Running>();

  async function run(name: string, check: HealthCheck, stopped: AbortSignal): Promise<void> {
    while (!stopped.aborted) {
      const healthy = await reachable(check, clock, stopped);
      if (stopped.aborted) return;
      upstreams.checked(name, healthy);
      await sleep(check.everyMs, stopped);
    }
  }

  return {
    set(checks) {
      for (const [name, { check, stop }] of running) {
        if (isDeepStrictEqual(checks.get(name), check)) continue;
        running.delete(name);
        stop.abort();
      }
      for (const [name, check] of checks) {
        if (running.has(name)) continue;
        const stop = new AbortController();
        running.set(name, { check, stop, done: run(name, check, stop.signal) });
      }
    },
    async close() {
      for (const { stop } of running.values()) stop.abort();
      await Promise.all(Array.from(running.values(), ({ done }) => done));
      running.clear();
    },
  };
}

/** Whether one of the endpoints accepts a connection, and proves a pinned key if TLS is required. */
async function reachable({ endpoints, tls }: HealthCheck, clock: Clock, signal: AbortSignal): Promise<boolean> {
  const security = tls === undefined ? ({ kind: 'raw' } as const) : ({ kind: 'tls', ...tls } as const);
  for (const endpoint of endpoints) {
    if ((await reach({ endpoint, transport: 'tcp', security }, clock, signal)) === undefined) return true;
  }
  return false;
}
