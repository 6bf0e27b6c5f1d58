/**
 * Many agents without a data plane in one process, to generate load: real sessions that count a snapshot as applied when
 * it arrives, and report when that was. Used by the simulator and the benchmarks.
 */
import { sleep, yieldToEventLoop } from '../kernel/background.js';
import { systemClock } from '../kernel/clock.js';
import type { Clock } from '../kernel/clock.js';
import { silentLogger } from '../kernel/logger.js';
import type { Logger } from '../kernel/logger.js';
import { ConfigApplyStatus } from '../gen/svc/control/v1/config.js';
import { limits } from '../kernel/limits.js';
import { agentKeysFrom } from '../noise/keys.js';
import type { HostPort } from '../kernel/host-port.js';
import { AgentConfigError } from './config.js';
import type { AppliedConfig, Gateway } from './gateway.js';
import { startSessionLoop } from './session-loop.js';
import type { SessionLoop } from './session-loop.js';
import { agentVersion } from './version.js';

export interface LightCredentials {
  readonly nodeId: string;
  /** `svcpsk1_…` */
  readonly controlPsk: string;
}

interface LightFleetOptions {
  readonly endpoint: HostPort;
  readonly agents: readonly LightCredentials[];
  /** How many agents are started per second; all at once by default. */
  readonly startsPerSecond?: number;
  readonly clock?: Clock;
  readonly logger?: Logger;
  /** Called at each apply, before the report is sent; `at` is monotonic, in milliseconds. */
  readonly onApplied?: (nodeId: string, generation: number, at: number) => void;
}

export interface LightFleet {
  readonly size: number;
  connected(): number;
  /** The generation that a node applied last, and when, in monotonic milliseconds. */
  applied(nodeId: string): { readonly generation: number; readonly at: number } | undefined;
  /** How often a connection was lost, all agents together. */
  disconnects(): number;
  close(): Promise<void>;
}

/** How many agents one process may simulate. */
export const lightFleetMax = 20_000;

/**
 * Starts the agents. Resolves when all are started, not when they are connected.
 * @throws AgentConfigError for a malformed PSK, RangeError for more agents than `lightFleetMax`
 */
export async function startLightFleet(options: LightFleetOptions): Promise<LightFleet> {
  const { endpoint, agents, clock = systemClock, logger = silentLogger } = options;
  if (agents.length > lightFleetMax)
    throw new RangeError(`agents: expected at most ${lightFleetMax}, got ${agents.length}`);
  const identities = agents.map(({ nodeId, controlPsk }) => {
    const keys = agentKeysFrom(controlPsk);
    if (!keys.ok) throw new AgentConfigError([`${nodeId}: ${keys.error}`]);
    return { nodeId, keys: keys.value };
  });
  const appliedAt = new Map<string, { readonly generation: number; readonly at: number }>();
  const loops: SessionLoop[] = [];
  let disconnects = 0;

  for (const { nodeId, keys } of identities) {
    const gateway = acknowledging((applied) => {
      const generation = Number(applied.generation);
      const at = clock.monotonic();
      appliedAt.set(nodeId, { generation, at });
      options.onApplied?.(nodeId, generation, at);
    });
    loops.push(
      startSessionLoop({
        config: { nodeId, endpoint, keys, rekeyIntervalSeconds: limits.agentControl.rekeyDefaultSeconds },
        agentVersion,
        gateway,
        hello: () => ({
          nodeId,
          publicIpv4: '',
          publicIpv6: '',
          agentVersion,
          multiplex: false,
          multiplexPort: 0,
          detectedAddresses: [],
        }),
        // Reading the processor times for each of a thousand agents would be most of the load.
        usage: () => ({ cpu: 0, memory: 0 }),
        logger,
        clock,
        random: Math.random,
        events: { onDisconnected: () => void (disconnects += 1) },
      }),
    );
    if (options.startsPerSecond === undefined) await yieldToEventLoop();
    else await sleep(1000 / options.startsPerSecond);
  }

  return {
    size: loops.length,
    connected: () => loops.filter((loop) => loop.connected).length,
    applied: (nodeId) => appliedAt.get(nodeId),
    disconnects: () => disconnects,
    async close() {
      await Promise.all(loops.map((loop) => loop.close()));
    },
  };
}

/** A data plane that remembers only the applied generation. */
function acknowledging(onApplied: (applied: AppliedConfig) => void): Gateway {
  let applied: AppliedConfig | undefined;
  return {
    get applied() {
      return applied;
    },
    async apply({ generation, checksum }) {
      if (applied !== undefined && generation < applied.generation) return undefined;
      applied = { generation, checksum: Buffer.from(checksum) };
      onApplied(applied);
      return { generation, checksum: applied.checksum, status: ConfigApplyStatus.APPLIED, errors: [], durationMs: 0n };
    },
    runtimeListeners: () => [],
    linkMetrics: () => [],
    report: () => ({ connections: undefined, bandwidth: undefined, gateway: undefined }),
    diagnostics: () => ({}),
    close: async () => undefined,
  };
}
