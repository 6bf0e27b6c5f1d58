/**
 * Durable commands per second over REST with 1 and 64 callers. Floor: a bare server that validates the same bodies and
 * appends them durably. The service also shows each command to queries before it answers.
 */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { startChild } from './child.js';
import { beside, spread, type Figure, type Report } from './figures.js';
import { openCaller, throughput, warmUpMs, type HttpCaller } from './http-caller.js';
import type { BenchOptions } from './options.js';
import { withFolder, withService } from './stack.js';

/** The larger count first: its warm-up serves the other. */
const callerCounts = [64, 1];

export async function commands({ quick }: BenchOptions): Promise<Report> {
  const rounds = quick ? 2 : 5;
  const forMs = quick ? 500 : 2_000;
  return withFolder((folder) =>
    withService({}, async (service) => {
      const floor = startChild('floors/bare-rest', [join(folder, 'floor')]);
      const opened: HttpCaller[] = [];
      try {
        const floorUrl = await floor.ask<string>('url');
        const figures: Record<string, Figure> = { round_ms: forMs, rounds, body_bytes: body().length };
        for (const count of callerCounts) {
          const subject = await service.callers(count);
          const bare = await Promise.all(Array.from({ length: count }, () => openCaller(floorUrl, undefined)));
          opened.push(...subject, ...bare);
          const run = async (
            target: 'service' | 'floor',
            forMs: number,
          ): Promise<Awaited<ReturnType<typeof throughput>>> => {
            const path = target === 'service' ? '/api/l4-upstreams' : '/commands';
            const request = () => ({ method: 'POST', path, body: body() });
            return throughput(target === 'service' ? subject : bare, forMs, request, 201);
          };
          await run('floor', forMs);
          await run('service', quick ? forMs : warmUpMs);
          const none = (): { service: number[]; floor: number[] } => ({ service: [], floor: [] });
          const [perSecond, latencies] = [none(), none()];
          for (let round = 0; round < rounds; round += 1) {
            for (const target of ['floor', 'service'] as const) {
              const measured = await run(target, forMs);
              perSecond[target].push(measured.perSecond);
              for (const one of measured.latenciesMs) latencies[target].push(one);
            }
          }
          figures[`callers_${count}`] = {
            commands_per_second: beside(perSecond.service, perSecond.floor),
            service_latency_ms: { ...spread(latencies.service) },
            floor_latency_ms: { ...spread(latencies.floor) },
          };
        }
        return { bench: 'commands', figures };
      } finally {
        for (const caller of opened) caller.close();
        await floor.close();
      }
    }),
  );
}

/** A new upstream, always of the same size. */
function body(): string {
  return JSON.stringify({
    name: `upstream-${randomUUID()}`,
    endpoint: '192.0.2.10:8443',
    server_names: ['one.example.org', 'two.example.org'],
    health_check_interval_ms: 5_000,
  });
}
