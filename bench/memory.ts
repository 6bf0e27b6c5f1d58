/**
 * Memory of the service per connected agent, after three heartbeats and a push, with garbage collected. Floor: a bare
 * grpc-js server whose streams have exchanged the same number of messages of the same sizes.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '../scripts/stack/process.js';
import { watchApplies } from './applies.js';
import { collectable } from '../scripts/stack/service.js';
import { startChild } from './child.js';
import { rounded } from './figures.js';
import type { Figure, Report } from './figures.js';
import type { Push } from './floors/bare-grpc.js';
import { createFleet, snapshotBytes } from './fleet-over-rest.js';
import { usualAgents } from './options.js';
import type { BenchOptions } from './options.js';
import type { StartAgents } from './processes/agents.js';
import { memoryOf, withFolder, withService } from './stack.js';

interface Memory {
  readonly rss: number;
  readonly heap: number;
}

const heartbeats = 3;
const heartbeatSeconds = 2;

export async function memory(options: BenchOptions): Promise<Report> {
  const agents = usualAgents(options);
  const floor = await floorMemory(agents);
  const service = await serviceMemory(agents);
  const perAgentKib = (from: Memory, to: Memory): { rss: number; heap: number } => ({
    rss: rounded((to.rss - from.rss) / agents / 1024),
    heap: rounded((to.heap - from.heap) / agents / 1024),
  });
  const [perAgent, least] = [perAgentKib(service.before, service.after), perAgentKib(floor.before, floor.after)];
  const mib = ({ rss, heap }: Memory): Figure => ({ rss: rounded(rss / 2 ** 20), heap: rounded(heap / 2 ** 20) });
  return {
    bench: 'memory',
    figures: {
      agents,
      kib_per_agent: {
        service: perAgent,
        floor: least,
        ratio: { rss: rounded(perAgent.rss / least.rss), heap: rounded(perAgent.heap / least.heap) },
      },
      service_mib: { without_agents: mib(service.before), with_agents: mib(service.after) },
      floor_mib: { without_agents: mib(floor.before), with_agents: mib(floor.after) },
    },
  };
}

async function serviceMemory(count: number): Promise<{ readonly before: Memory; readonly after: Memory }> {
  return withService({ env: collectable }, async (service) => {
    const child = startChild('processes/agents');
    try {
      const settings = { heartbeat_interval_secs: heartbeatSeconds };
      await service.admin.call('PUT', '/api/settings/connectivity', settings);
      const fleet = await createFleet(service, count);
      const ids = fleet.nodes.map((node) => node.nodeId);
      await delay(1_000);
      const before = await memoryOf(service.process);
      const applies = watchApplies(child);
      const first = applies.next(ids, 120_000);
      const { hostname, port } = new URL(service.process.controlEndpoint);
      await child.ask(
        'start',
        { host: hostname, port: Number(port), agents: fleet.nodes } satisfies StartAgents,
        120_000,
      );
      await first;
      const pushed = applies.next(ids);
      const edit = { health_check_interval_ms: 5_000 };
      await service.admin.call('PUT', `/api/l4-upstreams/${fleet.sharedUpstreamId}`, edit);
      await pushed;
      // The first heartbeat comes within two seconds of the connection.
      await delay((2 + heartbeats * heartbeatSeconds + 1) * 1_000);
      return { before, after: await memoryOf(service.process) };
    } finally {
      await child.close();
    }
  });
}

async function floorMemory(count: number): Promise<{ readonly before: Memory; readonly after: Memory }> {
  return withFolder(async (folder) => {
    const server = startChild('floors/bare-grpc', [folder], ['--expose-gc']);
    const child = startChild('processes/bare-agents');
    try {
      const port = await server.ask<number>('listen');
      const before = await server.ask<Memory>('memory');
      await child.ask('start', { port, count });
      await eventually('the bare agents are connected', async () =>
        (await server.ask<number>('connected')) === count ? true : undefined,
      );
      for (let beat = 0; beat < heartbeats; beat += 1) {
        await child.ask('heartbeat');
        await delay(1_000);
      }
      await server.ask('push', { to: 'all', size: snapshotBytes(), edit: 'x'.repeat(500) } satisfies Push);
      await delay(1_000);
      return { before, after: await server.ask<Memory>('memory') };
    } finally {
      await Promise.all([server.close(), child.close()]);
    }
  });
}
