/** The service with the fleet's nodes, and the processes of their agents. */
import { join } from 'node:path';
import { eventually } from '../../scripts/stack/process.js';
import { collectable } from '../../scripts/stack/service.js';
import { addedCounts } from '../../scripts/simulate/crowd.js';
import type { FleetCounts, Heartbeats, LightCredentials } from '../../scripts/simulate/light/fleet.js';
import { watchApplies, type Applies } from '../applies.js';
import { startChild, type Child } from '../child.js';
import { nodeId } from '../fleet-log.js';
import { spreadOver } from '../fleet-over-rest.js';
import type { StartAgents } from '../processes/agents.js';
import { metricsOf, processorSeconds, withFolder, withService, writeFleet, type BenchService } from '../stack.js';
import type { Extent } from './rows.js';

export interface World {
  readonly service: BenchService;
  /** Processor seconds of a start with the same fleet and no agents, until it was ready. */
  readonly startSeconds: number;
  /** The few agents, then the others in two processes. */
  readonly groups: readonly Group[];
  readonly applies: Applies;
  /** Sum of what the groups answer. */
  sum(what: 'connected' | 'configured'): Promise<number>;
  counts(): Promise<FleetCounts>;
  beat(heartbeats: Heartbeats): Promise<void>;
  /** Processor seconds of the service so far. */
  cpu(): Promise<number>;
  /** Processor seconds of the agents' processes so far. */
  agentsCpu(): Promise<number>;
  /** Waits until the service has recorded what agents reported: it waits for no node, and its log does not grow. */
  recorded(): Promise<void>;
  /** How many nodes run what they should by the read models. Reads them all, so not while something is measured. */
  converged(): Promise<number>;
}

export interface Group {
  readonly child: Child;
  readonly ids: readonly string[];
}

/** Longer than any row, so that no agent counts as silent while heartbeats are not measured. */
const heartbeatSeconds = 3_600;
const setUpWithinMs = 300_000;
/** For what takes a minute on a machine with nothing else to do. */
const waitMs = 480_000;
/** In each process: enough to keep the service busy, few enough that nobody waits until its timeout. */
const connectingAtOnce = 32;

/** Runs `use` with a freshly started service and agents that wait to connect. */
export async function withWorld<T>(extent: Extent, use: (world: World) => Promise<T>): Promise<T> {
  return withFolder(async (folder) => {
    const dataDir = join(folder, 'data');
    await writeFleet(dataDir, { nodes: extent.agents, own: extent.own });
    const env = { ...collectable, SVC_MAX_CONNECTIONS: String(2 * extent.agents + 1_000) };
    return withService({ dataDir, env }, async (service) => {
      await service.admin.call('PUT', '/api/settings/connectivity', { heartbeat_interval_secs: heartbeatSeconds });
      const credentials = await spreadOver(service, extent.agents, async (post, index): Promise<LightCredentials> => {
        const { control_psk } = await post<{ control_psk: string }>(`/api/nodes/${nodeId(index)}/psk`);
        return { nodeId: nodeId(index), controlPsk: control_psk };
      });
      // A process that has only started shows what agents cost, without what creating them has left.
      await service.process.stop();
      await service.process.start();
      return withAgents(extent, service, credentials, use);
    });
  });
}

async function withAgents<T>(
  { few, agents }: Extent,
  service: BenchService,
  credentials: readonly LightCredentials[],
  use: (world: World) => Promise<T>,
): Promise<T> {
  const cpu = (): Promise<number> => processorSeconds(service.process.program().pid);
  const startSeconds = await cpu();
  const middle = Math.ceil((agents + few) / 2);
  const shares = [credentials.slice(0, few), credentials.slice(few, middle), credentials.slice(middle)];
  const groups = shares.map((share) => ({
    child: startChild('processes/agents'),
    ids: share.map((one) => one.nodeId),
  }));
  const { hostname, port } = new URL(service.process.controlEndpoint);
  try {
    const applies = watchApplies(...groups.map(({ child }) => child));
    await Promise.all(
      groups.map(({ child }, index) => {
        const place = {
          host: hostname,
          port: Number(port),
          heartbeats: { everyMs: 0 },
          startNow: false,
          connectingAtOnce,
        };
        return child.ask('start', { ...place, agents: shares[index] ?? [] } satisfies StartAgents, setUpWithinMs);
      }),
    );
    const ask = <R>(what: string, body?: unknown): Promise<R[]> =>
      Promise.all(groups.map(({ child }) => child.ask<R>(what, body)));
    return await use({
      service,
      startSeconds,
      groups,
      applies,
      cpu,
      sum: async (what) => (await ask<number>(what)).reduce((total, each) => total + each, 0),
      counts: async () => (await ask<FleetCounts>('counts')).reduce(addedCounts),
      beat: async (heartbeats) => void (await ask('heartbeats', heartbeats)),
      agentsCpu: async () => {
        const each = await Promise.all(groups.map(({ child }) => processorSeconds(child.pid)));
        return each.reduce((total, one) => total + one, 0);
      },
      recorded: () => recordedBy(service),
      converged: () => convergedNodes(service),
    });
  } finally {
    await Promise.all(groups.map(({ child }) => child.close()));
  }
}

interface NodeView {
  readonly generation: number;
  readonly applied_generation: number | null;
}

const pageSize = 500;

async function convergedNodes({ admin }: BenchService): Promise<number> {
  let converged = 0;
  for (let page = 1; ; page += 1) {
    const path = `/api/nodes?page_size=${pageSize}&page=${page}`;
    const { items } = await admin.call<{ items: readonly NodeView[] }>('GET', path);
    converged += items.filter(({ generation, applied_generation }) => generation === applied_generation).length;
    if (items.length < pageSize) return converged;
  }
}

async function recordedBy({ process }: BenchService): Promise<void> {
  let last: number | undefined;
  await eventually(
    'the service has recorded what agents told',
    async () => {
      const gauge = await metricsOf(process.url);
      const before = last;
      last = gauge('svc_projection_position');
      return gauge('svc_delivery_waiting_nodes') === 0 && last === before ? true : undefined;
    },
    waitMs,
    500,
  );
}

/** Asks until the answer is `expected`. @throws Error with the last answer after `timeoutMs` */
export async function until(
  what: string,
  ask: () => Promise<number>,
  expected: number,
  timeoutMs = waitMs,
  everyMs = 50,
): Promise<void> {
  let last = 0;
  const see = async (): Promise<true | undefined> => ((last = await ask()) === expected ? true : undefined);
  await eventually(what, see, timeoutMs, everyMs).catch((error: unknown) => {
    throw new Error(`${error instanceof Error ? error.message : String(error)}: ${last} of ${expected}`);
  });
}
