/**
 * Requests per second and processor time per request of a list, a get and a command, with 32 callers. Floor: a bare fastify
 * route that returns the same bytes. Every service here checks a token, answers from the read store, and counts and measures
 * each request; a command is also durable, and shown by queries, before its answer.
 */
import { randomUUID } from 'node:crypto';
import { startChild } from './child.js';
import { beside, rounded, median, type Figure, type Report } from './figures.js';
import type { BareAnswer } from './floors/bare-answers.js';
import { createNodes } from './fleet-over-rest.js';
import { openCaller, throughput, warmUpMs, type HttpCaller } from './http-caller.js';
import type { BenchOptions } from './options.js';
import { processorSeconds, withService, type BenchService } from './stack.js';

const callerCount = 32;
const nodeCount = 500;

interface Route {
  readonly name: string;
  readonly method: BareAnswer['method'];
  readonly path: string;
  readonly status: number;
  body(): string | undefined;
}

const upstream = (): string =>
  JSON.stringify({ name: `upstream-${randomUUID()}`, endpoint: '192.0.2.10:8443', server_names: ['one.example.org'] });

function routesOf(nodeId: string): readonly Route[] {
  const get = { method: 'GET', status: 200, body: () => undefined } as const;
  let edit = 0;
  return [
    { name: 'list_of_50_nodes', ...get, path: '/api/nodes?page_size=50' },
    { name: 'get_node', ...get, path: `/api/nodes/${nodeId}` },
    { name: 'create_upstream', method: 'POST', status: 201, path: '/api/l4-upstreams', body: upstream },
    {
      name: 'create_node',
      method: 'POST',
      status: 201,
      path: '/api/nodes',
      body: () => JSON.stringify({ name: `node-${randomUUID()}`, address: '192.0.2.1' }),
    },
    {
      name: 'update_node',
      method: 'PUT',
      status: 200,
      path: `/api/nodes/${nodeId}`,
      body: () => JSON.stringify({ description: `edit ${(edit += 1)}` }),
    },
  ];
}

/** The service's answer, which the floor returns too. */
async function answerOf(service: BenchService, route: Route): Promise<BareAnswer> {
  const { method, path, status } = route;
  const body = route.body();
  const answer = await fetch(service.process.url + path, {
    method,
    headers: {
      authorization: `Bearer ${service.token}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body }),
    signal: AbortSignal.timeout(10_000),
  });
  if (answer.status !== status) throw new Error(`${method} ${path} answered ${answer.status}: ${await answer.text()}`);
  const kept = [...answer.headers].filter(
    ([name]) => !['connection', 'date', 'keep-alive', 'content-length'].includes(name),
  );
  return {
    method,
    path: path.replace(/\?.*/, ''),
    status,
    headers: Object.fromEntries(kept),
    body: await answer.text(),
  };
}

export async function rest({ quick }: BenchOptions): Promise<Report> {
  const rounds = quick ? 2 : 5;
  const forMs = quick ? 400 : 1_500;
  return withService({}, async (service) => {
    const [node] = await createNodes(service, quick ? 50 : nodeCount);
    const routes = routesOf(node?.nodeId ?? '');
    const floor = startChild('floors/bare-answers');
    const opened: HttpCaller[] = [];
    try {
      const answers = [];
      for (const route of routes) answers.push(await answerOf(service, route));
      const floorUrl = await floor.ask<string>('serve', answers);
      const callers = {
        service: await service.callers(callerCount),
        floor: await Promise.all(Array.from({ length: callerCount }, () => openCaller(floorUrl, undefined))),
      };
      opened.push(...callers.service, ...callers.floor);
      const pids = { service: service.process.program().pid, floor: floor.pid };
      const figures: Record<string, Figure> = { callers: callerCount, rounds, round_ms: forMs };
      for (const [place, route] of routes.entries()) {
        const run = async (
          target: 'service' | 'floor',
          forMs: number,
        ): Promise<{ perSecond: number; cpuMs: number }> => {
          const request = () => ({ method: route.method, path: route.path, body: route.body() });
          const before = await processorSeconds(pids[target]);
          const { perSecond, latenciesMs } = await throughput(callers[target], forMs, request, route.status);
          const cpu = (await processorSeconds(pids[target])) - before;
          return { perSecond, cpuMs: (cpu * 1000) / latenciesMs.length };
        };
        await run('floor', forMs);
        await run('service', quick ? forMs : warmUpMs);
        const [perSecond, cpuMs] = [
          { service: [] as number[], floor: [] as number[] },
          { service: [] as number[], floor: [] as number[] },
        ];
        for (let round = 0; round < rounds; round += 1) {
          for (const target of ['floor', 'service'] as const) {
            const measured = await run(target, forMs);
            perSecond[target].push(measured.perSecond);
            cpuMs[target].push(measured.cpuMs);
          }
        }
        figures[route.name] = {
          bytes: answers[place]?.body.length ?? 0,
          requests_per_second: beside(perSecond.service, perSecond.floor),
          cpu_ms_per_request: {
            service: rounded(median(cpuMs.service)),
            floor: rounded(median(cpuMs.floor)),
            ratio: rounded(median(cpuMs.service) / median(cpuMs.floor)),
          },
        };
      }
      return { bench: 'rest', figures };
    } finally {
      for (const caller of opened) caller.close();
      await floor.close();
    }
  });
}
