/** The rows of the benchmark of fleets, each measured on the service of one world. */
import { setTimeout as delay } from 'node:timers/promises';
import { rounded, sharedClock, spread, type Figure } from '../figures.js';
import { nodeId, sharedUpstreamId, upstreamId } from '../fleet-log.js';
import type { HttpCaller } from '../http-caller.js';
import { memoryOf, metricsOf, residentBytes } from '../stack.js';
import type { Figures } from './floor.js';
import { fullTable, type Extent } from './rows.js';
import { until, type World } from './world.js';

const seconds = (from: number): number => rounded((sharedClock() - from) / 1_000);
const allConverged = (world: World, count: number): Promise<void> =>
  until('all nodes run what they should', world.converged, count, 60_000, 1_000);

/** All agents connect and confirm their configuration. */
export async function connectAll(world: World, { agents }: Extent): Promise<Figures> {
  const [before, agentsBefore, began] = [await world.cpu(), await world.agentsCpu(), sharedClock()];
  await Promise.all(world.groups.map(({ child }) => child.ask('connect')));
  await until('all have their configuration', () => world.sum('configured'), agents);
  const wall = seconds(began);
  await world.recorded();
  const [recorded, cpu, agentsCpu] = [seconds(began), await world.cpu(), await world.agentsCpu()];
  await allConverged(world, agents);
  const { failedDials, refusals, losses } = await world.counts();
  return {
    cpu_ms_each: rounded((cpu - before) * (1_000 / agents)),
    agents_own_cpu_ms_each: rounded((agentsCpu - agentsBefore) * (1_000 / agents)),
    until_all_have_it_s: wall,
    until_all_are_recorded_s: recorded,
    failed_dials: failedDials,
    refused: { ...refusals },
    lost: losses,
  };
}

export interface Held {
  readonly anonymous: number;
  readonly heap: number;
}

/** Memory of the service without the files that it maps, with garbage collected. */
export async function held({ service }: World): Promise<Held> {
  const { heap } = await memoryOf(service.process);
  return { anonymous: (await residentBytes(service.process.program().pid)).anonymous, heap };
}

export const kibEach = (from: Held, to: Held, agents: number): Figure => ({
  rss: rounded((to.anonymous - from.anonymous) / agents / 1_024),
  heap: rounded((to.heap - from.heap) / agents / 1_024),
});

async function edit(caller: HttpCaller, id: string, port: number): Promise<void> {
  const body = JSON.stringify({ endpoint: `192.0.2.10:${port}` });
  const answer = await caller.send('PUT', `/api/l4-upstreams/${id}`, body);
  if (answer.status !== 200) throw new Error(`the edit answered ${answer.status}: ${answer.body}`);
}

let edits = 0;
/** Each edit differs from the last ones. */
const nextPort = (): number => 1_024 + ((edits += 1) % 60_000);

async function withCaller<T>({ service }: World, use: (caller: HttpCaller) => Promise<T>): Promise<T> {
  const callers = await service.callers(1);
  try {
    const [caller] = callers;
    if (caller === undefined) throw new Error('there is no caller');
    return await use(caller);
  } finally {
    for (const caller of callers) caller.close();
  }
}

/** Edits of one node each, one after the other: the time until its agent has the new configuration. */
export async function editOne(world: World, { own, rounds }: Extent): Promise<Figures> {
  return withCaller(world, async (caller) => {
    const times: number[] = [];
    const before = await world.cpu();
    for (let round = 0; round < rounds.one; round += 1) {
      const index = (round * 7_919) % own;
      const applied = world.applies.next([nodeId(index)]);
      const began = sharedClock();
      const [events] = await Promise.all([applied, edit(caller, upstreamId(index), nextPort())]);
      times.push((events.get(nodeId(index))?.at ?? Number.NaN) - began);
    }
    const cpu = rounded(((await world.cpu()) - before) * (1_000 / rounds.one));
    return { ms: { ...spread(times) }, cpu_ms_each: cpu };
  });
}

/** Edits that touch all nodes, with concurrent REST reads. */
export async function editAll(world: World, { agents, rounds }: Extent): Promise<Figures> {
  const everyone = world.groups.flatMap(({ ids }) => ids);
  const [walls, cpus, lags, reads]: [number[], number[], number[], number[]] = [[], [], [], []];
  for (let round = 0; round < rounds.all; round += 1) {
    await withCaller(world, (caller) =>
      withCaller(world, async (reader) => {
        // Reading the metrics also begins a new measurement of the event loop.
        await metricsOf(world.service.process.url);
        const [before, began] = [await world.cpu(), sharedClock()];
        const applied = world.applies.next(everyone, 120_000);
        const stop = new AbortController();
        const reading = readMeanwhile(reader, reads, stop.signal, agents);
        try {
          const [events] = await Promise.all([applied, edit(caller, sharedUpstreamId, nextPort())]);
          walls.push(Math.max(...Array.from(events.values(), ({ at }) => at)) - began);
          const gauge = await metricsOf(world.service.process.url);
          lags.push(gauge('nodejs_eventloop_lag_p99_seconds') * 1_000 - monitorMs);
          await world.recorded();
        } finally {
          stop.abort();
          await reading;
        }
        cpus.push(((await world.cpu()) - before) * (1e6 / agents));
        await allConverged(world, agents);
      }),
    );
  }
  return {
    until_all_have_it_ms: { ...spread(walls) },
    cpu_us_each: { ...spread(cpus) },
    event_loop_lag_p99_ms: { ...spread(lags.map((lag) => Math.max(0, lag))) },
    rest_get_ms: { ...spread(reads) },
  };
}

/** The event loop's monitor counts its own interval of 10 ms. */
const monitorMs = 10;
const readEveryMs = 2;

async function readMeanwhile(caller: HttpCaller, into: number[], signal: AbortSignal, agents: number): Promise<void> {
  for (let index = 0; !signal.aborted; index += 1) {
    const began = performance.now();
    const { status } = await caller.send('GET', `/api/nodes/${nodeId((index * 7_919) % agents)}`, undefined);
    if (status !== 200) throw new Error(`a read answered ${status}`);
    into.push(performance.now() - began);
    await delay(readEveryMs);
  }
}

/** Full heartbeats of all agents, with tables that stay and with tables that change. */
export async function heartbeats(world: World, extent: Extent): Promise<Figures> {
  const figures: Figures = {};
  for (const changing of [false, true]) {
    await world.beat({ everyMs: extent.heartbeatEveryMs, table: { ...fullTable, changing } });
    // After one interval each agent has sent its first.
    await delay(extent.heartbeatEveryMs + 1_000);
    const [first, before, began] = [await world.counts(), await world.cpu(), performance.now()];
    await delay(extent.heartbeatsMs);
    const [last, cpu, took] = [await world.counts(), (await world.cpu()) - before, performance.now() - began];
    figures[changing ? 'changing' : 'unchanged'] = {
      cores: rounded((cpu * 1_000) / took),
      us_each: rounded((cpu * 1e6) / (last.answers - first.answers)),
      per_second: rounded(((last.answers - first.answers) * 1_000) / took),
      lost: last.losses - first.losses,
    };
  }
  await world.beat({ everyMs: 0 });
  return figures;
}

/** The service is killed and started again; its agents come back by themselves, each after its backoff. */
export async function killed(world: World, { agents }: Extent): Promise<Figures> {
  const before = await world.counts();
  await world.service.process.kill();
  const killedAt = sharedClock();
  await until('all are gone', () => world.sum('connected'), 0);
  const gone = seconds(killedAt);
  const began = sharedClock();
  await world.service.process.start();
  const ready = seconds(began);
  await until('all are back', () => world.sum('connected'), agents);
  const back = seconds(began);
  await world.recorded();
  const [cpu, after] = [await world.cpu(), await world.counts()];
  await allConverged(world, agents);
  return {
    // Until the agents' processes notice the lost connections, which is not the service's time.
    gone_s: gone,
    ready_s: ready,
    until_all_are_back_s: back,
    cpu_ms_each: rounded((cpu - world.startSeconds) * (1_000 / agents)),
    cpu_s_of_a_start_alone: rounded(world.startSeconds),
    cpu_s_in_all: rounded(cpu),
    snapshots_sent_again: after.applies - before.applies,
    refused: { ...after.refusals },
  };
}
