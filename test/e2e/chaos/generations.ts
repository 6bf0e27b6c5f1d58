/**
 * Watches the generations that each instance shows over REST and that agents are sent. None may fall, neither at one
 * instance across restarts nor at one agent across instances.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { RestClient } from '../../../scripts/stack/rest-client.js';
import type { Gateway, AppliedConfig } from '../../../src/agent/gateway.js';
import { DiagnosticsReport } from '../../../src/gen/svc/control/v1/diagnostics.js';
import { startSessionLoop } from '../../../src/agent/control/session-loop.js';
import { agentVersion } from '../../../src/agent/agent.js';
import { ConfigApplyStatus } from '../../../src/gen/svc/control/v1/config.js';
import { systemClock } from '../../../src/kernel/clock.js';
import { limits } from '../../../src/kernel/limits.js';
import { silentLogger } from '../../../src/kernel/logger.js';
import { agentKeysFrom } from '../../../src/channel/noise/control-psk.js';

export interface ShownNode {
  readonly id: string;
  /** Null while only the read models have the node: it is being created or deleted. */
  readonly generation: number | null;
}

export interface Watched {
  /** Highest generation seen per node. */
  readonly seen: ReadonlyMap<string, number>;
  stop(): Promise<void>;
}

type OnFault = (fault: string) => void;

function watermark(who: string, onFault: OnFault): { seen: Map<string, number>; look(node: ShownNode): void } {
  const seen = new Map<string, number>();
  return {
    seen,
    look({ id, generation }) {
      if (generation === null) return;
      const before = seen.get(id) ?? 0;
      if (generation < before) onFault(`${who}: node ${id} fell from generation ${before} to ${generation}`);
      else seen.set(id, generation);
    },
  };
}

/** Polls an instance for all nodes; ignores requests that fail. */
export function watchInstance(client: RestClient, who: string, everyMs: number, onFault: OnFault): Watched {
  const marks = watermark(who, onFault);
  let running = true;
  const watching = (async () => {
    while (running) {
      const { items } = await client
        .call<{ items: readonly ShownNode[] }>('GET', '/api/nodes?page_size=500')
        .catch(() => ({ items: [] }));
      for (const node of items) marks.look(node);
      await delay(everyMs);
    }
  })();
  return {
    seen: marks.seen,
    async stop() {
      running = false;
      await watching;
    },
  };
}

/** An agent that applies every snapshot and reconnects after every loss. */
export function startWatchedAgent(
  node: { readonly id: string; readonly control_psk: string },
  port: number,
  onFault: OnFault,
): Watched {
  const keys = agentKeysFrom(node.control_psk);
  if (!keys.ok) throw new Error(keys.error);
  const marks = watermark(`agent of ${node.id}`, onFault);
  let applied: AppliedConfig | undefined;
  const gateway: Gateway = {
    get applied() {
      return applied;
    },
    async apply({ generation, checksum }) {
      marks.look({ id: node.id, generation: Number(generation) });
      applied = { generation, checksum: Buffer.from(checksum) };
      return { generation, checksum: applied.checksum, status: ConfigApplyStatus.APPLIED, errors: [], durationMs: 0n };
    },
    runtimeListeners: () => [],
    linkMetrics: () => [],
    report: () => ({ connections: undefined, bandwidth: undefined, gateway: undefined }),
    watch: () => undefined,
    probe: async () => [],
    close: async () => undefined,
  };
  const loop = startSessionLoop({
    config: {
      nodeId: node.id,
      endpoint: { host: '127.0.0.1', port },
      keys: keys.value,
      rekeyIntervalSeconds: limits.agentControl.rekeyDefaultSeconds,
    },
    readPsks: async () => [],
    agentVersion,
    gateway,
    unconfirmed: undefined,
    diagnose: async () => DiagnosticsReport.create(),
    hello: () => ({
      nodeId: node.id,
      publicIpv4: '',
      publicIpv6: '',
      agentVersion,
      multiplex: false,
      multiplexPort: 0,
      detectedAddresses: [],
      features: [],
      processId: Buffer.alloc(0),
    }),
    usage: () => ({ cpu: 0, memory: 0 }),
    logger: silentLogger,
    clock: systemClock,
    random: Math.random,
    events: {},
  });
  return { seen: marks.seen, stop: () => loop.close() };
}
