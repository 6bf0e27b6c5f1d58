/**
 * Each kind of hop between two reference agents beside two bare relays of `node:net`, `node:tls` and `node:dgram` in a row: bytes, new clients
 * and processor time, measured in turn, and what a client that stays holds in memory.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { hopKinds, startHopChains } from '../scripts/stack/hop-chains.js';
import { eventually, freePorts } from '../scripts/stack/process.js';
import { collectable } from '../scripts/stack/service.js';
import { startChild } from './child.js';
import { beside, rounded, type Figure, type Report } from './figures.js';
import type { BareHop } from './floors/bare-relay.js';
import { httpClients, tcpClients, udpClients, type Clients } from './hops/clients.js';
import type { BenchOptions } from './options.js';
import type { HopTargets } from './processes/hop-target.js';
import { processorSeconds, residentBytes, withService } from './stack.js';

interface Amounts {
  readonly rounds: number;
  readonly mebibytes: number;
  readonly visits: number;
  /** Clients that stay: the first ones fill the free part of the heap, the others are measured. */
  readonly staying: { readonly first: number; readonly measured: number };
}

/**
 * Fewer clients come over UDP: a flow lasts for a minute, a socket has 8,192 flows, and 500 handshakes a second are
 * answered.
 */
const amounts = {
  tcp: { rounds: 3, mebibytes: 64, visits: 500, staying: { first: 1_000, measured: 1_000 } },
  udp: { rounds: 3, mebibytes: 16, visits: 300, staying: { first: 1_000, measured: 1_000 } },
} as const;
const quickly = { rounds: 1, mebibytes: 2, visits: 40, staying: { first: 40, measured: 40 } } as const;

/** Clients that come at once. */
const atOnce = 8;
const httpHost = 'web.example';

/** Two relays in a row, and their clients. */
interface Way {
  readonly clients: Clients;
  readonly pids: readonly number[];
}

export async function hops({ quick, only }: BenchOptions): Promise<Report> {
  const [target, ...relays] = ['processes/hop-target', 'floors/bare-relay', 'floors/bare-relay'].map((name) =>
    startChild(name, [], ['--expose-gc']),
  );
  if (target === undefined) throw new Error('expected a target');
  try {
    const targets = await target.ask<HopTargets>('start');
    /** The entry of a way over both bare relays. */
    const bare = async (transports: readonly BareHop['transport'][], to: number): Promise<number> => {
      let next = to;
      for (const [at, relay] of relays.entries())
        next = await relay.ask<number>('relay', { transport: transports[at] ?? 'tcp', next } satisfies BareHop);
      return next;
    };
    const [tcp, tls, udp] = [
      await bare(['tcp', 'tcp'], targets.tcp),
      await bare(['from_tls', 'to_tls'], targets.tcp),
      await bare(['udp', 'udp'], targets.udp),
    ];
    const floors = { tcp, tls, reality: tls, udp, enc: udp };
    const floorPids = relays.map(({ pid }) => pid);
    return await withService({}, async ({ admin, process: service }) => {
      const chains = await startHopChains({
        rest: admin,
        controlEndpoint: service.controlEndpoint,
        kinds: hopKinds,
        gateways: 2,
        targets,
        prefix: 'bench-',
        env: { ...collectable, SVC_LOG_LEVEL: 'warn' },
      });
      const pids = chains.gateways.map(({ agent }) => agent.pid);
      try {
        const ways = chains.chains.map(({ kind, transport, port }) => {
          const of = transport === 'tcp' ? tcpClients : udpClients;
          return { kind: kind as string, transport, service: of(port), floor: of(floors[kind]) };
        });
        const [httpPort = 0, secondPort = 0] = await freePorts(2);
        await admin.call('POST', '/api/routes', {
          name: 'bench-http',
          host: httpHost,
          path_prefix: '/',
          hops: [httpPort, secondPort].map((listen_port, at) => ({
            node_id: chains.gateways[at]?.nodeId,
            listen_addr: '127.0.0.1',
            listen_port,
          })),
          backend: `127.0.0.1:${targets.http}`,
        });
        const http = httpClients(httpPort, httpHost);
        await eventually('the route answers', () =>
          http.visit().then(
            () => true as const,
            () => undefined,
          ),
        );
        const bareHttp = httpClients(await bare(['tcp', 'tcp'], targets.http), httpHost);
        ways.push({ kind: 'http', transport: 'tcp', service: http, floor: bareHttp });

        const figures: Record<string, Figure> = {};
        for (const way of ways.filter(({ kind }) => only.length === 0 || only.includes(kind)))
          figures[way.kind] = await measured(
            { clients: way.service, pids },
            { clients: way.floor, pids: floorPids },
            quick ? quickly : amounts[way.transport],
          );
        return { bench: 'hops', figures };
      } finally {
        await chains.close();
      }
    });
  } finally {
    await Promise.all([target, ...relays].map((child) => child.close()));
  }
}

async function measured(service: Way, floor: Way, of: Amounts): Promise<Figure> {
  const found = { service: new Array<Round>(), floor: new Array<Round>() };
  const kibPerClient = { service: await held(service, of.staying), floor: await held(floor, of.staying) };
  // Warms up; a hop that must first learn something about its target learns it here.
  for (const way of [service, floor]) await round(way, { ...of, mebibytes: 1, visits: Math.ceil(of.visits / 4) });
  for (let turn = 0; turn < of.rounds; turn += 1) {
    found.floor.push(await round(floor, of));
    found.service.push(await round(service, of));
  }
  const figure = (name: keyof Round) =>
    beside(
      found.service.map((one) => one[name]),
      found.floor.map((one) => one[name]),
    );
  return {
    mib_per_second: figure('mibPerSecond'),
    cpu_ms_per_mib: figure('cpuMsPerMib'),
    clients_per_second: figure('clientsPerSecond'),
    cpu_ms_per_client: figure('cpuMsPerClient'),
    kib_per_client: kibPerClient,
  };
}

interface Round {
  readonly mibPerSecond: number;
  readonly cpuMsPerMib: number;
  readonly clientsPerSecond: number;
  readonly cpuMsPerClient: number;
}

async function round({ clients, pids }: Way, { mebibytes, visits }: Amounts): Promise<Round> {
  const moved = await timed(pids, () => clients.move(mebibytes));
  const came = await timed(pids, () => several(visits, () => clients.visit()));
  return {
    mibPerSecond: mebibytes / moved.seconds,
    cpuMsPerMib: (moved.cpuSeconds * 1_000) / mebibytes,
    clientsPerSecond: visits / came.seconds,
    cpuMsPerClient: (came.cpuSeconds * 1_000) / visits,
  };
}

/** Several at a time, up to a total. */
async function several(count: number, act: () => Promise<void>): Promise<void> {
  let left = count;
  const one = async (): Promise<void> => {
    for (; left > 0;) {
      left -= 1;
      await act();
    }
  };
  await Promise.all(Array.from({ length: atOnce }, one));
}

async function timed(pids: readonly number[], act: () => Promise<unknown>) {
  const cpu = async (): Promise<number> => sum(await Promise.all(pids.map(processorSeconds)));
  const [cpuBefore, began] = [await cpu(), performance.now()];
  await act();
  return { seconds: (performance.now() - began) / 1_000, cpuSeconds: (await cpu()) - cpuBefore };
}

/** Growth of both relays together for each client that stays, in KiB, with garbage collected. */
async function held({ clients, pids }: Way, { first, measured: count }: Amounts['staying']): Promise<number> {
  const memory = async (): Promise<number> => {
    for (const pid of pids) process.kill(pid, 'SIGUSR2');
    await delay(1_000);
    return sum((await Promise.all(pids.map(residentBytes))).map(({ anonymous }) => anonymous));
  };
  const ends: (() => void)[] = [];
  const stay = async (): Promise<void> => void ends.push(await clients.stay());
  await several(first, stay);
  const before = await memory();
  await several(count, stay);
  const after = await memory();
  for (const end of ends) end();
  return rounded((after - before) / count / 1_024);
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
