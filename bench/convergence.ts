/**
 * Time from an edit over REST to the agents' apply, with 1, 100 and more connected agents, for edits that touch one node
 * and edits that touch all. Floor: a bare durable append, then a push of the same size over bare grpc-js streams.
 */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '../scripts/stack/process.js';
import { watchApplies } from './applies.js';
import type { Applies } from './applies.js';
import { startChild } from './child.js';
import type { Child } from './child.js';
import { rounded, sharedClock, spread } from './figures.js';
import type { Figure, Report, Spread } from './figures.js';
import type { Push } from './floors/bare-grpc.js';
import { createFleet, snapshotBytes } from './fleet-over-rest.js';
import type { BenchFleet } from './fleet-over-rest.js';
import { usualAgents } from './options.js';
import type { BenchOptions } from './options.js';
import type { StartAgents } from './processes/agents.js';
import { withFolder, withService } from './stack.js';
import type { BenchService } from './stack.js';

/** Milliseconds since the start of the edit. */
interface Latencies {
  /** An edit of one node, until its agent has applied it. */
  readonly one: number[];
  /** The same, until REST shows the node applied; for the floor, until the server has the agent's answer. */
  readonly known: number[];
  /** An edit of all nodes, until each agent has applied it. */
  readonly all: number[];
  /** The same, until the last agent has applied it. */
  readonly last: number[];
}

const none = (): Latencies => ({ one: [], known: [], all: [], last: [] });

interface Rounds {
  readonly one: number;
  readonly all: number;
}

export async function convergence(options: BenchOptions): Promise<Report> {
  const { quick } = options;
  const agents = usualAgents(options);
  const counts = [...new Set([1, Math.min(100, agents), agents])];
  const size = snapshotBytes();
  const figures: Record<string, Figure> = { snapshot_bytes: size };
  for (const count of counts) {
    const rounds = { one: quick ? 10 : 100, all: quick ? 3 : 15 };
    figures[`agents_${count}`] = await withFolder((folder) =>
      withService({}, async (service) => {
        const fleet = await createFleet(service, count);
        const subject = startChild('processes/agents');
        const [server, bareAgents] = [
          startChild('floors/bare-grpc', [join(folder, 'floor')]),
          startChild('processes/bare-agents'),
        ];
        try {
          const applies = await connectAgents(service, fleet, subject);
          const bareApplies = watchApplies(bareAgents);
          await bareAgents.ask('start', { port: await server.ask<number>('listen'), count });
          await eventually('the bare agents are connected', async () =>
            (await server.ask<number>('connected')) === count ? true : undefined,
          );
          const [measured, floor, deploys] = [none(), none(), [] as number[]];
          // A few rounds of each in turn, so that other load on the machine affects both.
          const turns = 5;
          for (let turn = 0; turn < turns; turn += 1) {
            const part = { one: Math.ceil(rounds.one / turns), all: Math.ceil(rounds.all / turns) };
            await measureFloor(floor, server, bareApplies, { count, size, rounds: part });
            await measureService(measured, service, fleet, applies, part, turn);
            deploys.push(await deployAndWait(service, fleet, turn));
          }
          return { ...compare(measured, floor), deploy_wait_applied_ms: { ...spread(deploys) } };
        } finally {
          await Promise.all([subject.close(), server.close(), bareAgents.close()]);
        }
      }),
    );
  }
  return { bench: 'convergence', figures };
}

async function connectAgents(service: BenchService, fleet: BenchFleet, child: Child): Promise<Applies> {
  const applies = watchApplies(child);
  const { hostname, port } = new URL(service.process.controlEndpoint);
  const first = applies.next(
    fleet.nodes.map((node) => node.nodeId),
    120_000,
  );
  await child.ask('start', { host: hostname, port: Number(port), agents: fleet.nodes } satisfies StartAgents, 120_000);
  await first;
  // Let the facts and presence leases of the new connections be written before the measurement.
  await delay(2_000);
  return applies;
}

async function measureService(
  into: Latencies,
  service: BenchService,
  fleet: BenchFleet,
  applies: Applies,
  rounds: Rounds,
  turn: number,
): Promise<void> {
  const [caller] = await service.callers(1);
  if (caller === undefined) return;
  const edit = async (upstreamId: string, interval: number): Promise<void> => {
    const body = JSON.stringify({ health_check_interval_ms: interval });
    const answer = await caller.send('PUT', `/api/l4-upstreams/${upstreamId}`, body);
    if (answer.status !== 200) throw new Error(`the edit answered ${answer.status}: ${answer.body}`);
  };
  try {
    for (let round = 0; round < rounds.one; round += 1) {
      const number = turn * rounds.one + round;
      const node = fleet.nodes[(number * 7919) % fleet.nodes.length];
      if (node === undefined) return;
      const applied = applies.next([node.nodeId]);
      const began = sharedClock();
      const [events] = await Promise.all([applied, edit(node.upstreamId, 1_000 + number)]);
      const event = events.get(node.nodeId);
      into.one.push((event?.at ?? Number.NaN) - began);
      // Only every fourth round: the fact is written in batches, so this takes a while.
      if (round % 4 !== 0) continue;
      const showsApplied = async (): Promise<boolean> => {
        const { body } = await caller.send('GET', `/api/nodes/${node.nodeId}`, undefined);
        const view = (JSON.parse(body) as { data: { applied_generation: number | null } }).data;
        return (view.applied_generation ?? -1) >= (event?.generation ?? 0);
      };
      while (!(await showsApplied())) await delay(4);
      into.known.push(sharedClock() - began);
    }
    for (let round = 0; round < rounds.all; round += 1) {
      const applied = applies.next(fleet.nodes.map((node) => node.nodeId));
      const began = sharedClock();
      const [events] = await Promise.all([applied, edit(fleet.sharedUpstreamId, 1_000 + turn * rounds.all + round)]);
      note(
        into,
        began,
        [...events.values()].map((event) => event.at),
      );
    }
  } finally {
    caller.close();
  }
}

/** Milliseconds of a deploy that waits until the agent has applied it. */
async function deployAndWait(service: BenchService, fleet: BenchFleet, turn: number): Promise<number> {
  const node = fleet.nodes[turn % fleet.nodes.length];
  const path = `/api/l4-chains/${node?.chainId}`;
  await service.admin.call('PUT', path, { target: { endpoint: `192.0.2.${turn + 20}:443` } });
  const began = sharedClock();
  await service.admin.call('POST', `${path}/deploy?wait=applied`);
  const ms = sharedClock() - began;
  // Back to the upstream, because its edits are measured next.
  await service.admin.call('PUT', path, { target: { upstream_id: node?.upstreamId } });
  await service.admin.call('POST', `${path}/deploy?wait=applied`);
  return ms;
}

async function measureFloor(
  into: Latencies,
  server: Child,
  applies: Applies,
  { count, size, rounds }: { readonly count: number; readonly size: number; readonly rounds: Rounds },
): Promise<void> {
  const edit = 'x'.repeat(500);
  for (let round = 0; round < rounds.one; round += 1) {
    const to = (round * 7919) % count;
    const applied = applies.next([String(to)]);
    const began = sharedClock();
    const [events, confirmedAt] = await Promise.all([
      applied,
      server.ask<number>('push', { to, size, edit } satisfies Push),
    ]);
    into.one.push((events.get(String(to))?.at ?? Number.NaN) - began);
    into.known.push(confirmedAt - began);
  }
  const everyone = Array.from({ length: count }, (_, index) => String(index));
  for (let round = 0; round < rounds.all; round += 1) {
    const applied = applies.next(everyone);
    const began = sharedClock();
    const [events] = await Promise.all([applied, server.ask('push', { to: 'all', size, edit } satisfies Push)]);
    note(
      into,
      began,
      [...events.values()].map((event) => event.at),
    );
  }
}

function note(into: Latencies, began: number, times: readonly number[]): void {
  for (const at of times) into.all.push(at - began);
  into.last.push(Math.max(...times) - began);
}

function compare(service: Latencies, floor: Latencies): { readonly [name: string]: Figure } {
  const both = (name: keyof Latencies): Figure => {
    const [subject, bare]: [Spread, Spread] = [spread(service[name]), spread(floor[name])];
    return {
      service: { ...subject },
      floor: { ...bare },
      ratio_p50: rounded(subject.p50 / bare.p50),
      ratio_p99: rounded(subject.p99 / bare.p99),
    };
  };
  return {
    edit_of_one_to_applied_ms: both('one'),
    edit_of_one_to_known_ms: both('known'),
    edit_of_all_to_applied_ms: both('all'),
    edit_of_all_to_last_applied_ms: both('last'),
  };
}
