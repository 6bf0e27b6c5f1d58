/**
 * The cost of each attack for the service, and for a good agent that connects once a second meanwhile. Each attack gets a
 * new service. There is no floor; the first row is the service without an attack.
 */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { collectable } from '../scripts/stack/service.js';
import { systemClock } from '../src/kernel/clock.js';
import { agentStreams } from '../src/kernel/event.js';
import { silentLogger } from '../src/kernel/logger.js';
import { openEmbedded } from '../src/storage/embedded/open-embedded.js';
import { startChild } from './child.js';
import { rounded, spread, type Figure, type Report } from './figures.js';
import { createNodes } from './fleet-over-rest.js';
import type { BenchOptions } from './options.js';
import { floods, type FloodKind } from './flood-kinds.js';
import type { Attack, StartAttack } from './processes/attacker.js';
import type { Attempts, GoodAgent } from './processes/good-agent.js';
import {
  memoryOf,
  metricsOf,
  processorSeconds,
  residentBytes,
  withFolder,
  withService,
  type BenchService,
} from './stack.js';

const rows: readonly ('none' | Attack)[] = [
  'none',
  'reset',
  'idle',
  'malformed',
  'offers',
  'hello_loop',
  'reports',
  'heartbeats',
  ...floods,
];
/** A hundred idle connections fill this listener. */
const crowded = { SVC_MAX_CONNECTIONS: '100' };
/** A small heap without requested collections, to see that garbage does not pile up. */
const flooded = { NODE_OPTIONS: '--max-old-space-size=512' };
const goodNodes = 4;
/** Longer than the leftover connections of a flood live. */
const settledMs = 3_000;
const accepted = 'svc_agent_connections_accepted_total';

export async function attacks({ quick, only }: BenchOptions): Promise<Report> {
  const seconds = quick ? 5 : 60;
  const figures: Record<string, Figure> = { seconds_of_each: seconds };
  let quiet = 0;
  for (const row of rows.filter((name) => only.length === 0 || name === 'none' || only.includes(name))) {
    const { cpu_cores, sent, took, ...others } = await measure(row, seconds);
    if (row === 'none') quiet = cpu_cores;
    const each = sent === 0 ? null : rounded(((cpu_cores - quiet) * took * 1_000) / sent);
    figures[row] = { sent, cpu_cores: rounded(cpu_cores), cpu_ms_of_each: each, ...others };
  }
  return { bench: 'attacks', figures };
}

const isFlood = (attack: 'none' | Attack): attack is FloodKind => floods.some((flood) => flood === attack);

async function measure(attack: 'none' | Attack, seconds: number) {
  return withFolder(async (folder) => {
    const dataDir = join(folder, 'data');
    const { from, ...figures } = await withService(
      { dataDir, env: { SVC_LOG_LEVEL: 'info', ...(isFlood(attack) ? flooded : { ...collectable, ...crowded }) } },
      (service) => attacked(service, attack, seconds),
    );
    const stored = await bytesAfter(dataDir, from);
    return { ...figures, events_kib_per_minute: rounded((stored / 1_024) * (60 / figures.took)) };
  });
}

async function attacked(service: BenchService, attack: 'none' | Attack, seconds: number) {
  const [attackers, ...good] = await createNodes(service, 1 + goodNodes);
  if (attackers === undefined) throw new Error('no node was created');
  const { hostname: host, port } = new URL(service.process.controlEndpoint);
  const [attacker, agent] = [startChild('processes/attacker'), startChild('processes/good-agent')];
  try {
    await agent.ask('start', { host, port: Number(port), nodes: good } satisfies GoodAgent);
    await delay(3_000);
    await agent.ask<Attempts>('result');
    const { child, pid } = service.process.program();
    let logged = 0;
    child.stdout?.on('data', (chunk: Buffer) => (logged += chunk.length));
    // A service under a flood collects by itself; the signal to collect would end it.
    const heapOf = async (): Promise<number> => (isFlood(attack) ? 0 : (await memoryOf(service.process)).heap);
    const [heapBefore, { anonymous: before }] = [await heapOf(), await residentBytes(pid)];
    const gauge = await metricsOf(service.process.url);
    const [from, acceptedBefore] = [gauge('svc_projection_position'), gauge(accepted)];
    const cpuBefore = await processorSeconds(pid);
    const began = performance.now();
    if (attack !== 'none') {
      await attacker.ask('start', { attack, host, port: Number(port), ...attackers } satisfies StartAttack);
    }
    await delay(seconds * 1_000);
    const took = (performance.now() - began) / 1_000;
    const cpu = (await processorSeconds(pid)) - cpuBefore;
    const log = logged;
    const outcome = await agent.ask<Attempts>('result');
    const sent = attack === 'none' ? 0 : await attacker.ask<number>('stop');
    await delay(settledMs);
    const acceptedNow = (await metricsOf(service.process.url))(accepted);
    const { peak, anonymous: after } = await residentBytes(pid);
    const heapAfter = await heapOf();
    return {
      from,
      took,
      sent,
      connections_accepted: acceptedNow - acceptedBefore,
      cpu_cores: cpu / took,
      log_lines_kib_per_minute: rounded((log / 1_024) * (60 / took)),
      peak_mib: rounded(peak / 2 ** 20),
      resident_growth_afterwards_mib: rounded((after - before) / 2 ** 20),
      heap_growth_afterwards_mib: isFlood(attack) ? null : rounded((heapAfter - heapBefore) / 2 ** 20),
      good_agent: {
        opened: outcome.took.length,
        failed: outcome.failed.length,
        first_failure: outcome.failed[0] ?? null,
        ms: outcome.took.length === 0 ? null : { ...spread(outcome.took) },
      },
    };
  } finally {
    await Promise.all([attacker.close(), agent.close()]);
  }
}

/** Bytes of the facts of agents behind a log position, as JSON. The service must have stopped. */
async function bytesAfter(dataDir: string, position: number): Promise<number> {
  const { eventStore, close } = await openEmbedded({ dataDir, clock: systemClock, logger: silentLogger });
  const stop = new AbortController();
  let bytes = 0;
  try {
    const after = { commit: position, prepare: position };
    for await (const item of eventStore.subscribe({ streams: agentStreams, after, signal: stop.signal })) {
      if (item.kind === 'caught_up') break;
      for (const event of item.kind === 'events' ? item.events : []) bytes += JSON.stringify(event).length;
    }
  } finally {
    stop.abort();
    await close();
  }
  return bytes;
}
