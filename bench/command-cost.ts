/**
 * The cost of a command that touches one node, in fleets of 100, 1,000 and 10,000 nodes, with one caller and with 32. The
 * command edits an upstream of one deployed chain. All services run at the same time and are measured in turn, so the ratio
 * of two sizes holds on any machine.
 */
import { join } from 'node:path';
import { median, rounded, type Figure, type Report } from './figures.js';
import { upstreamId } from './fleet-log.js';
import { throughput, warmUpMs, type HttpCaller } from './http-caller.js';
import type { BenchOptions } from './options.js';
import { processorSeconds, withFolder, withService, writeFleet, type BenchService } from './stack.js';

const callerCounts = [1, 32];

interface Fleet {
  readonly nodes: number;
  readonly service: BenchService;
}

interface Cost {
  readonly cpuMs: number;
  /** From the request to its answer. */
  readonly answerMs: number;
}

export async function commandCost({ quick }: BenchOptions): Promise<Report> {
  const sizes = quick ? [100, 1_000] : [100, 1_000, 10_000];
  const rounds = quick ? 2 : 7;
  const forMs = quick ? 300 : 1_000;
  return withFleets(sizes, async (fleets) => {
    const figures: Record<string, Figure> = { rounds, round_ms: forMs };
    for (const count of callerCounts) {
      const costs = new Map<Fleet, Cost[]>(fleets.map((fleet) => [fleet, []]));
      // One more, to warm up.
      for (let round = -1; round < rounds; round += 1) {
        for (const [fleet, measured] of costs) {
          // Opened for each round, because the service closes idle connections while others are measured.
          const callers = await fleet.service.callers(count);
          const cost = await measure(fleet, callers, round < 0 && !quick ? warmUpMs : forMs);
          for (const caller of callers) caller.close();
          if (round >= 0) measured.push(cost);
        }
      }
      const of = (fleet: Fleet, what: keyof Cost): number => median((costs.get(fleet) ?? []).map((one) => one[what]));
      const [smallest] = fleets;
      const shown: Record<string, Figure> = {};
      for (const fleet of fleets) {
        const [cpu, answer] = [of(fleet, 'cpuMs'), of(fleet, 'answerMs')];
        shown[`nodes_${fleet.nodes}`] = {
          cpu_ms: rounded(cpu),
          answer_ms: rounded(answer),
          cpu_ratio_to_smallest: smallest === undefined ? null : rounded(cpu / of(smallest, 'cpuMs')),
          answer_ratio_to_smallest: smallest === undefined ? null : rounded(answer / of(smallest, 'answerMs')),
          cpu_ms_of_each_round: (costs.get(fleet) ?? []).map(({ cpuMs }) => rounded(cpuMs)),
        };
      }
      figures[`callers_${count}`] = shown;
    }
    return { bench: 'command-cost', figures };
  });
}

let edits = 0;

async function measure({ nodes, service }: Fleet, callers: readonly HttpCaller[], forMs: number): Promise<Cost> {
  const request = () => {
    edits += 1;
    // Neighbouring edits touch different nodes.
    const path = `/api/l4-upstreams/${upstreamId((edits * 7919) % nodes)}`;
    return { method: 'PUT', path, body: JSON.stringify({ endpoint: `192.0.2.10:${1_024 + (edits % 60_000)}` }) };
  };
  const { pid } = service.process.program();
  const before = await processorSeconds(pid);
  const { latenciesMs } = await throughput(callers, forMs, request, 200);
  const cpu = (await processorSeconds(pid)) - before;
  return { cpuMs: (cpu * 1000) / latenciesMs.length, answerMs: median(latenciesMs) };
}

/** Runs `use` with a service for each size of fleet. */
async function withFleets(
  sizes: readonly number[],
  use: (fleets: readonly Fleet[]) => Promise<Report>,
): Promise<Report> {
  return withFolder(async (folder) => {
    const start = async (left: readonly number[], started: readonly Fleet[]): Promise<Report> => {
      const [nodes, ...rest] = left;
      if (nodes === undefined) return use(started);
      const dataDir = join(folder, `fleet-${nodes}`);
      // Each node has a chain to the next one, and each chain an upstream of its own.
      await writeFleet(dataDir, { shape: { nodes, upstreams: nodes, chains: nodes } });
      return withService({ dataDir }, (service) => start(rest, [...started, { nodes, service }]));
    };
    return start(sizes, []);
  });
}
