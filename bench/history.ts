/**
 * The cost of history: processor time of telemetry for each heartbeat with history and without, as the share of a core that
 * it adds to a fleet, the memory of the last hour in minutes, and the disk of a node with a chain and an upstream after 31 days.
 * In this process, on the embedded read store and a clock that the benchmark moves.
 */
import { readFileSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { silentLogger } from '../src/kernel/logger.js';
import { openEmbedded } from '../src/storage/embedded/open-embedded.js';
import { openHistory } from '../src/reports/history/history.js';
import { keepMinutes } from '../src/reports/history/minutes.js';
import { minuteMs, slotMs, type Growth } from '../src/reports/history/points.js';
import type { Carriers, HeartbeatFacts, PresenceFacts } from '../src/reports/port.js';
import { tableOfListeners } from '../src/reports/listener-table.js';
import { heartbeatFacts } from '../src/reports/reported.js';
import { HeartbeatRequest } from '../src/gen/svc/control/v1/heartbeat.js';
import { openReports } from '../src/reports/reports.js';
import { median, rounded, type Report } from './figures.js';
import type { BenchOptions } from './options.js';
import { withFolder } from './stack.js';

const fleetNodes = 10_000;
const heartbeatSeconds = 10;
/** Three slots are written in it: the warm-up is longer than a slot waits for late reports. */
const simulatedSeconds = 900;
const warmUpTurns = 7;
const days = 31;

const idOf = (kind: string, index: number): string =>
  `${kind}0000000-0000-4000-8000-${index.toString(16).padStart(12, '0')}`;

export async function history({ quick }: BenchOptions): Promise<Report> {
  const nodes = quick ? 50 : 1_000;
  const runs = { with: [] as number[], without: [] as number[] };
  for (let round = 0; round < (quick ? 1 : 3); round += 1) {
    runs.without.push(await withFolder((folder) => heartbeatCores(folder, nodes, false)));
    runs.with.push(await withFolder((folder) => heartbeatCores(folder, nodes, true)));
  }
  const [on, off] = [median(runs.with), median(runs.without)];
  const stored = quick ? 5 : 100;
  const disk = await withFolder((folder) => diskOf(folder, stored));
  return {
    bench: 'history',
    figures: {
      cores_of_telemetry_for_10000_nodes: {
        with: rounded(on),
        without: rounded(off),
        added: rounded(on - off),
        runs: { with: runs.with.map(rounded), without: runs.without.map(rounded) },
      },
      nodes_driven: nodes,
      minutes: minutesInMemory(quick ? 100 : fleetNodes),
      disk: {
        nodes: stored,
        days,
        kib_per_node_with_chain_and_upstream: rounded(disk.kib),
        kib_per_node_with_the_reserve_of_the_store: rounded(disk.withReserve),
        fold_cores: rounded(disk.foldCores),
      },
    },
  };
}

const processorMs = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};

/** Each node has one chain that begins and ends on it, with an upstream. */
function carriersOf(nodeId: string): Carriers {
  const [chain, upstream] = [nodeId.replace('a', 'b'), nodeId.replace('a', 'c')];
  return {
    chains: new Set([chain]),
    ends: new Map([[chain, [chain, upstream]]]),
    chainOfListener: new Map([['tcp/0.0.0.0/443', chain]]),
    begins: new Set(['tcp/0.0.0.0/443']),
    upstreams: new Set([upstream]),
  };
}

function beatOf(nodeId: string, turn: number): HeartbeatFacts {
  const [bytes, sessions] = [BigInt(turn * 91_357), BigInt(turn * 3)];
  const counters = { bytesIn: bytes, bytesOut: bytes, totalSessions: sessions, errorSessions: 0n };
  const runtimeListeners = [
    { transport: 'tcp', listenAddr: '0.0.0.0', listenPort: 443, state: 'running', routes: [], ...counters },
  ];
  const links = { resourceType: 'l4_chain', resourceId: nodeId.replace('a', 'b'), peerEndpoint: '192.0.2.1:443' };
  const linkMetrics = [{ ...links, rttMs: 12 + (turn % 7) / 10, bytesIn: bytes, bytesOut: bytes }];
  const heartbeat = HeartbeatRequest.fromPartial({ linkMetrics, runtimeListeners });
  const wire = HeartbeatRequest.encode(HeartbeatRequest.fromPartial({ linkMetrics })).finish();
  const tables = { links: { bytes: wire }, listeners: tableOfListeners(heartbeat.runtimeListeners) };
  return heartbeatFacts(heartbeat, tables, { process_id: '00', runs_generation: null });
}

/** Cores that telemetry takes for the whole fleet, with every table changed in every heartbeat. */
async function heartbeatCores(folder: string, nodes: number, recorded: boolean): Promise<number> {
  let now = Math.floor(Date.now() / slotMs) * slotMs;
  const clock = { now: () => now, monotonic: () => now };
  const stores = await openEmbedded({ dataDir: folder, clock, logger: silentLogger });
  const byNode = new Map(Array.from({ length: nodes }, (_, index) => [idOf('a', index), carriersOf(idOf('a', index))]));
  const nothing = carriersOf('');
  const carriers = (nodeId: string): Carriers => byNode.get(nodeId) ?? nothing;
  const reports = await openReports({
    readStore: stores.readStore,
    instanceId: 'bench',
    clock,
    logger: silentLogger,
    deletionTime: clock.now,
    carriers: recorded ? carriers : undefined,
  });
  const presence: PresenceFacts = { session_id: 's', instance_id: 'i', pushed_generation: 0, pushed_at: null };
  const beat = async (turn: number): Promise<void> => {
    for (const nodeId of byNode.keys()) reports.alive(nodeId, presence, 30_000, beatOf(nodeId, turn));
    await reports.flush();
    now += heartbeatSeconds * 1000;
  };
  const turns = simulatedSeconds / heartbeatSeconds;
  for (let turn = 0; turn < warmUpTurns; turn += 1) await beat(turn);
  const began = processorMs();
  for (let turn = 0; turn < turns; turn += 1) await beat(warmUpTurns + turn);
  const cores = ((processorMs() - began) / (simulatedSeconds * 1000)) * (fleetNodes / nodes);
  await reports.close();
  await stores.close();
  return cores;
}

const collectGarbage = (): void => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  for (let time = 0; time < 3; time += 1) collect();
};

/** Memory of the last hour, and the longest time to end a minute, while every node, two chains of each and 2,000 upstreams carry something. */
function minutesInMemory(nodes: number): { readonly kib_per_node: number; readonly end_of_minute_ms: number } {
  const kinds = { a: nodes, b: 2 * nodes, c: nodes / 5 };
  const ids = Object.entries(kinds).flatMap(([kind, count]) =>
    Array.from({ length: count }, (_, at) => idOf(kind, at)),
  );
  const memory = (): number => {
    collectGarbage();
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };
  let now = 0;
  const before = memory();
  const minutes = keepMinutes({ now: () => now });
  let longest = 0;
  for (let minute = 0; minute < 70; minute += 1) {
    const began = processorMs();
    minutes.read('');
    longest = Math.max(longest, processorMs() - began);
    for (const [at, id] of ids.entries()) {
      minutes.count(id, now, {
        bytes_in: 1e6 + at,
        bytes_out: 7e6 + at,
        sessions: at % 99,
        errors: 1,
        online_ms: minuteMs,
      });
      minutes.roundTrip(id, 12_500 + at);
    }
    now += minuteMs;
  }
  const kib = (memory() - before) / 1024 / nodes;
  minutes.read('');
  return { kib_per_node: rounded(kib), end_of_minute_ms: rounded(longest) };
}

interface DiskFigures {
  readonly kib: number;
  readonly withReserve: number;
  readonly foldCores: number;
}

/**
 * KiB of the files in a folder: `used` up to the last byte that is not 0, after which the store keeps a reserve; and
 * all `blocks`.
 */
function sizesOf(folder: string): { readonly used: number; readonly blocks: number } {
  const sizes = { used: 0, blocks: 0 };
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    const path = join(folder, name);
    const file = statSync(path);
    sizes.blocks += file.blocks / 2;
    if (file.isFile()) sizes.used += (readFileSync(path).findLastIndex((byte) => byte !== 0) + 1) / 1024;
  }
  return sizes;
}

/** Disk and folding, with a point in every slot, of a fleet that carries something all the time. */
async function diskOf(folder: string, nodes: number): Promise<DiskFigures> {
  let now = Math.floor(Date.now() / slotMs) * slotMs - days * 24 * 60 * 60_000;
  const clock = { now: () => now, monotonic: () => now };
  const stores = await openEmbedded({ dataDir: folder, clock, logger: silentLogger });
  const deps = { readStore: stores.readStore, clock, logger: silentLogger, deletionTime: clock.now };
  const kept = await openHistory(deps, 'bench');
  const empty = sizesOf(folder);
  let folding = 0;
  const slots = (days * 24 * 60 * 60_000) / slotMs;
  const ids = Array.from({ length: nodes }, (_, index) => idOf('a', index));
  for (let turn = 0; turn < slots; turn += 1) {
    for (const [index, nodeId] of ids.entries()) {
      const random = ((turn * 7_919 + index * 104_729) % 65_536) / 65_536;
      const bytes = Math.round(40_000_000 * random);
      const links = {
        bytes_in: bytes,
        bytes_out: Math.round(bytes * (5 + 4 * Math.cos(turn * index))),
        rtt_us: Math.round(360_000 + 9_000 * random),
        rtts: 30,
      };
      const sessions = { sessions: Math.round(900 * random), errors: Math.round(9 * random) };
      // Clients send some bytes that links do not carry.
      const listener = { ...sessions, bytes_in: links.bytes_in + 517 * sessions.sessions, bytes_out: links.bytes_out };
      const shares: readonly (readonly [string, Growth])[] = [
        [nodeId, { ...links, ...listener, online_ms: slotMs }],
        [nodeId.replace('a', 'b'), { ...links, ...sessions }],
        [nodeId.replace('a', 'c'), { ...links, sessions: sessions.sessions - sessions.errors }],
      ];
      kept.count(nodeId, now, shares);
    }
    await kept.flush();
    now += slotMs;
    if (turn % 12 === 11) {
      const began = processorMs();
      await kept.fold();
      folding += processorMs() - began;
    }
  }
  const full = sizesOf(folder);
  await kept.close();
  await stores.close();
  return {
    kib: (full.used - empty.used) / nodes,
    withReserve: (full.blocks - empty.blocks) / nodes,
    foldCores: (folding / (days * 24 * 60 * 60_000)) * (fleetNodes / nodes),
  };
}
