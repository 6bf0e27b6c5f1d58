/**
 * Guided rotation under a connected fleet: every node gets a candidate of its PSK and its agent takes it, 20 at a time; then the
 * identity of the service is rotated, every node gets another candidate, and the old identity is retired. `refused` and `lost`
 * must be 0.
 */
import { eventually } from '../scripts/stack/process.js';
import { startChild, type Child } from './child.js';
import { rounded, type Figure, type Report } from './figures.js';
import { createNodes, spreadOver } from './fleet-over-rest.js';
import type { BenchOptions } from './options.js';
import type { RotatingCounts } from './processes/rotating-agents.js';
import { processorSeconds, withService, type BenchService } from './stack.js';

interface Identity {
  readonly nodes: { readonly current: number; readonly next: number };
}

const withinMs = 300_000;

export async function rotation({ quick, agents = quick ? 50 : 1_000 }: BenchOptions): Promise<Report> {
  return withService({}, async (service) => {
    await service.admin.call('PUT', '/api/settings/connectivity', { heartbeat_interval_secs: 3_600 });
    const nodes = await createNodes(service, agents);
    const child = startChild('processes/rotating-agents');
    try {
      const [host = '', port = ''] = service.process.controlEndpoint.replace('http://', '').split(':');
      await child.ask('start', { host, port: Number(port), agents: nodes }, withinMs);
      const counts = (): Promise<RotatingCounts> => child.ask<RotatingCounts>('counts');
      await eventually(
        'all agents are connected',
        async () => (await counts()).connected === agents || undefined,
        withinMs,
      );
      // While 1,000 agents start at once, some are told to try again later.
      const before = await counts();

      const ids = nodes.map(({ nodeId }) => nodeId);
      const psks = await candidates(service, child, ids);
      const [rotateMs] = await timed(() => service.admin.call('POST', '/api/service/identity/rotate'));
      const identities = await candidates(service, child, ids);
      const shown = await service.admin.call<Identity>('GET', '/api/service/identity');
      const [retireMs, retired] = await timed(() =>
        service.admin.call<Identity>('POST', '/api/service/identity/retire'),
      );
      const after = await counts();
      await child.ask('stop', undefined, withinMs);
      return {
        bench: 'rotation',
        figures: {
          agents,
          psks,
          rotate_ms: rotateMs,
          identity: identities,
          nodes_on_next: shown.nodes.next,
          retire_ms: retireMs,
          nodes_after: retired.nodes.current,
          refused: after.refused,
          too_many: after.tooMany,
          lost: after.lost - before.lost,
          rekeyed: after.rekeyed,
        },
      };
    } finally {
      await child.close();
    }
  });
}

/** Issues a candidate for every node, and has the agents take theirs. */
async function candidates(service: BenchService, child: Child, ids: readonly string[]): Promise<Figure> {
  const { pid } = service.process.program();
  const cpu = () => processorSeconds(pid);
  const [cpuBefore, began] = [await cpu(), performance.now()];
  const psks = await spreadOver(service, ids.length, async (post, index) => {
    const nodeId = ids[index] ?? '';
    const { control_psk } = await post<{ control_psk: string }>(`/api/nodes/${nodeId}/psk?mode=candidate`);
    return { nodeId, controlPsk: control_psk };
  });
  const [cpuIssued, issued] = [await cpu(), performance.now()];
  await child.ask('take', psks, withinMs);
  await eventually(
    'every candidate is proven',
    async () => {
      const left = await withCandidate(service);
      return left === 0 || undefined;
    },
    withinMs,
  );
  const [cpuProven, proven] = [await cpu(), performance.now()];
  return {
    issue_all_seconds: rounded((issued - began) / 1_000),
    issue_cpu_ms_of_each: rounded(((cpuIssued - cpuBefore) * 1_000) / ids.length),
    take_all_seconds: rounded((proven - issued) / 1_000),
    take_cpu_ms_of_each: rounded(((cpuProven - cpuIssued) * 1_000) / ids.length),
  };
}

async function withCandidate(service: BenchService): Promise<number> {
  let count = 0;
  for (let page = 1; ; page += 1) {
    const { items } = await service.admin.call<{ items: readonly { readonly psk_candidate: object | null }[] }>(
      'GET',
      `/api/nodes?page_size=500&page=${page}`,
    );
    if (items.length === 0) return count;
    count += items.filter(({ psk_candidate: one }) => one !== null).length;
  }
}

async function timed<T>(work: () => Promise<T>): Promise<readonly [milliseconds: number, result: T]> {
  const began = performance.now();
  const result = await work();
  return [rounded(performance.now() - began), result];
}
