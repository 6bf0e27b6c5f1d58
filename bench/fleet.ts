/**
 * The cost of ten thousand agents: connecting, reconnecting after a kill -9, memory, edits that touch one node or all, and
 * full heartbeats. Floor: bare grpc-js with as many connections and the same bytes, in the same run. `--only ROW`
 * measures one row.
 */
import { readFile } from 'node:fs/promises';
import { rounded, type Figure, type Report } from './figures.js';
import { measureFloor, type Figures } from './fleet/floor.js';
import { connectAll, editAll, editOne, heartbeats, held, kibEach, killed } from './fleet/measure.js';
import { extentOf, type Extent } from './fleet/rows.js';
import { until, withWorld, type World } from './fleet/world.js';
import type { BenchOptions } from './options.js';

/** Open files of a process besides its connections. */
const otherFiles = 500;

export async function fleet(options: BenchOptions): Promise<Report> {
  const extent = extentOf(options);
  await checkOpenFiles(extent.agents + otherFiles);
  const floor = await measureFloor(extent);
  const service = await withWorld(extent, (world) => measure(world, extent));
  const figures: Record<string, Figure> = { agents: extent.agents };
  for (const [row, found] of Object.entries(service)) {
    const beside = Object.entries(floor).find(([name]) => row === name || row === `${name}_of_${extent.agents}`)?.[1];
    figures[row] = { ...found, ...(beside === undefined ? {} : { floor: beside }) };
  }
  return { bench: 'fleet', figures };
}

async function measure(world: World, extent: Extent): Promise<Record<string, Figures>> {
  const { agents, few, wanted } = extent;
  const found: Record<string, Figures> = {};
  const empty = await held(world);
  const connect = await connectAll(world, extent);
  if (wanted.has('connect')) found['connect'] = connect;
  const memory: Figures = {};
  if (wanted.has('memory')) memory['idle_kib_each'] = kibEach(empty, await held(world), agents);
  if (wanted.has('one')) found[`one_of_${agents}`] = await editOne(world, extent);
  if (wanted.has('all')) found['all'] = await editAll(world, extent);
  if (wanted.has('heartbeats')) found['heartbeats'] = await heartbeats(world, extent);
  if (wanted.has('memory')) {
    found['memory'] = {
      ...memory,
      after_traffic_kib_each: kibEach(empty, await held(world), agents),
      without_agents_mib: rounded(empty.anonymous / 2 ** 20),
    };
  }
  if (wanted.has('kill')) found['kill'] = await killed(world, extent);
  if (wanted.has('one')) {
    const [, ...others] = world.groups;
    await Promise.all(others.map(({ child }) => child.ask('stop', undefined, 120_000)));
    await until('the others are gone', () => world.sum('connected'), few);
    found[`one_of_${few}`] = await editOne(world, extent);
  }
  return found;
}

/** @throws Error if this process, and so its children, may not open as many files */
async function checkOpenFiles(needed: number): Promise<void> {
  const text = await readFile('/proc/self/limits', 'utf8');
  const hard = /^Max open files\s+\S+\s+(\S+)/m.exec(text)?.[1];
  if (hard === 'unlimited' || Number(hard) >= needed) return;
  throw new Error(`ulimit -n is ${hard}: expected at least ${needed}, one file for each connection`);
}
