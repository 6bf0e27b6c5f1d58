/**
 * The reference agent as one object: data plane and session loop together. For `main.ts`, the demo and tests in the
 * same process.
 */
import type { ConfigApplyReport } from '../gen/svc/control/v1/config.js';
import type { RuntimeListener } from '../gen/svc/control/v1/heartbeat.js';
import { sleep } from '../kernel/background.js';
import { systemClock } from '../kernel/clock.js';
import type { Clock } from '../kernel/clock.js';
import { silentLogger } from '../kernel/logger.js';
import type { Logger } from '../kernel/logger.js';
import type { AgentConfig } from './config.js';
import type { Gateway } from './gateway.js';
import { createUsageMeter, hostAddresses } from './host.js';
import { createRuntime } from './runtime.js';
import { startSessionLoop } from './session-loop.js';
import type { SessionEvents } from './session-loop.js';
import { agentVersion } from './version.js';

export interface AgentOptions {
  readonly config: Omit<AgentConfig, 'logLevel'>;
  readonly logger?: Logger;
  readonly clock?: Clock;
  /** 0..1, for jitter. */
  readonly random?: () => number;
  readonly events?: SessionEvents;
  /** What snapshots are applied to; relays for real when absent. */
  readonly gateway?: Gateway;
}

export interface AgentState {
  readonly connected: boolean;
  /** undefined: this process has applied nothing. */
  readonly generation: number | undefined;
  readonly lastReport: ConfigApplyReport | undefined;
  readonly listeners: readonly RuntimeListener[];
}

export interface AgentHandle {
  readonly nodeId: string;
  state(): AgentState;
  /** Resolves true as soon as the state is so, false after `timeoutMs`. */
  waitUntil(condition: (state: AgentState) => boolean, timeoutMs: number): Promise<boolean>;
  /** SessionClose NORMAL, then listeners and connections are closed. */
  close(): Promise<void>;
}

/** How often `waitUntil` looks. */
const pollMs = 5;

/** Starts an agent; resolves at once, before it is connected. It goes on trying until `close`. */
export async function startAgent(options: AgentOptions): Promise<AgentHandle> {
  const { config, logger = silentLogger, clock = systemClock, random = Math.random, events = {} } = options;
  const gateway = options.gateway ?? createRuntime({ rejectUnsupported: config.rejectUnsupported, logger, clock });
  let lastReport: ConfigApplyReport | undefined;

  const loop = startSessionLoop({
    config,
    agentVersion,
    gateway,
    hello: () => {
      const { publicIpv4, publicIpv6, detected } = hostAddresses();
      return {
        nodeId: config.nodeId,
        publicIpv4,
        publicIpv6,
        agentVersion,
        // This agent never shares one port among listeners, whatever it was told.
        multiplex: false,
        multiplexPort: 0,
        detectedAddresses: detected,
      };
    },
    usage: createUsageMeter(),
    logger,
    clock,
    random,
    events: {
      ...events,
      onReport(report) {
        lastReport = report;
        events.onReport?.(report);
      },
    },
  });

  const state = (): AgentState => ({
    connected: loop.connected,
    generation: gateway.applied === undefined ? undefined : Number(gateway.applied.generation),
    lastReport,
    listeners: gateway.runtimeListeners(),
  });

  return {
    nodeId: config.nodeId,
    state,
    async waitUntil(condition, timeoutMs) {
      const deadline = clock.monotonic() + timeoutMs;
      while (!condition(state())) {
        if (clock.monotonic() >= deadline) return false;
        await sleep(pollMs);
      }
      return true;
    },
    async close() {
      await loop.close();
      await gateway.close();
    },
  };
}
