/**
 * The reference agent as one object, data plane and session loop together: for `main.ts`, and for tests that run it in
 * their own process.
 */
import { randomBytes } from 'node:crypto';
import type { ConfigApplyReport } from '../gen/svc/control/v1/config.js';
import type { RuntimeListener } from '../gen/svc/control/v1/heartbeat.js';
import { systemClock, type Clock } from '../kernel/clock.js';
import { silentLogger, type Logger } from '../kernel/logger.js';
import { build } from '../kernel/version.js';
import type { AgentConfig } from './config.js';
import type { ReadPsks } from './control/psk-choice.js';
import { startSessionLoop, type SessionEvents, type SessionLoop } from './control/session-loop.js';
import { diagnose } from './diagnosis/diagnose.js';
import { keepLastLines } from './diagnosis/last-lines.js';
import type { Gateway } from './gateway.js';
import { createUsageMeter, hostAddresses } from './host.js';
import { createRuntime } from './runtime.js';
import { unconfirmedFile } from './unconfirmed-file.js';

export const agentName = 'reference-agent';

/** As sent in SessionOffer and AgentHello. */
export const agentVersion = `${agentName} ${build}`;

/** The features of `docs/contract/agent-protocol.md#configuration` that this agent supports. */
const kinds = ['tcp_raw', 'tcp_sni', 'tcp_tls', 'tcp_reality', 'udp_raw', 'udp_enc', 'http'] as const;
const features = [...kinds, 'confirm', 'diagnostics', 'route_state'];

export interface AgentOptions {
  readonly config: Omit<AgentConfig, 'logLevel' | 'metrics'>;
  /** The PSKs of the identity file; by default there is none. */
  readonly readPsks?: ReadPsks;
  readonly logger?: Logger;
  readonly clock?: Clock;
  /** 0..1, for jitter. */
  readonly random?: () => number;
  readonly events?: SessionEvents;
  /** The data plane; by default, one that relays. */
  readonly gateway?: Gateway;
}

interface AgentState {
  readonly connected: boolean;
  /** Undefined until this process has applied a snapshot. */
  readonly generation: number | undefined;
  readonly lastReport: ConfigApplyReport | undefined;
  readonly listeners: readonly RuntimeListener[];
}

export interface AgentHandle {
  readonly nodeId: string;
  state(): AgentState;
  /** Switches to the PSK that the identity file now prefers, if it is another. Touches no listener. */
  reload(): Promise<void>;
  /** Reports the counters again, ends the session with SessionClose NORMAL, then closes listeners and connections. */
  close(): Promise<void>;
}

/** Starts an agent. Resolves before it is connected; it keeps trying until `close`. */
export async function startAgent(options: AgentOptions): Promise<AgentHandle> {
  const { config, clock = systemClock, random = Math.random, events = {} } = options;
  const { logger, lines: logLines } = keepLastLines(options.logger ?? silentLogger, clock);
  const gateway = options.gateway ?? createRuntime({ rejectUnsupported: config.rejectUnsupported, logger, clock });
  // The gateway's counters start at 0 with each process id.
  const processId = randomBytes(16);

  const loop: SessionLoop = startSessionLoop({
    config,
    agentVersion,
    readPsks: options.readPsks ?? (async () => []),
    gateway,
    unconfirmed:
      config.stateDir === undefined ? undefined : unconfirmedFile(config.stateDir, config.nodeId, clock, logger),
    hello: () => {
      const { publicIpv4, publicIpv6, detected } = hostAddresses();
      return {
        nodeId: config.nodeId,
        publicIpv4,
        publicIpv6,
        agentVersion,
        // This agent never shares one port among several listeners, whatever its configuration says.
        multiplex: false,
        multiplexPort: 0,
        detectedAddresses: detected,
        features,
        processId,
      };
    },
    diagnose: (offset, signal) =>
      diagnose({ agentVersion, gateway, clock, lastReport: () => loop.lastReport, logLines }, offset, signal),
    usage: createUsageMeter(),
    logger,
    clock,
    random,
    events,
  });

  return {
    nodeId: config.nodeId,
    state: () => ({
      connected: loop.connected,
      generation: gateway.applied === undefined ? undefined : Number(gateway.applied.generation),
      lastReport: loop.lastReport,
      listeners: gateway.runtimeListeners(),
    }),
    reload: loop.reload,
    async close() {
      await loop.close();
      await gateway.close();
    },
  };
}
