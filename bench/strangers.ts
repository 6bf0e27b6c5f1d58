/**
 * Memory that connections without a key hold in the service, for each kind of them: how much the service has grown for
 * each connection while they are open, and again after it has closed those that it does not tolerate. There is no
 * floor.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '../scripts/stack/process.js';
import { collectable } from '../scripts/stack/service.js';
import { startChild } from './child.js';
import { rounded, type Figure, type Report } from './figures.js';
import type { BenchOptions } from './options.js';
import type { StartStrangers } from './processes/strangers.js';
import { kinds, type Kind } from './stranger-kinds.js';
import { memoryOf, metricsOf, residentBytes, withService, type BenchService } from './stack.js';

const balancer = '127.0.0.2';
/** The contract's limit. */
const allowedKib = 32;
/**
 * Longer than the interval at which the cost of connections without a session is checked, shorter than the time for
 * first bytes.
 */
const settledMs = 2_500;

export async function strangers({ quick }: BenchOptions): Promise<Report> {
  const count = quick ? 200 : 2_000;
  const figures: Record<string, Figure> = { connections: count, allowed_kib: allowedKib };
  for (const kind of kinds) {
    // A service of its own: memory that an earlier kind has left free would hide what this one takes.
    const env = { ...collectable, SVC_AGENT_PROXY_FROM: balancer };
    figures[kind] = await withService({ env }, (service) => held(service, kind, count));
  }
  return { bench: 'strangers', figures };
}

async function held(service: BenchService, kind: Kind, count: number): Promise<Figure> {
  const child = startChild('processes/strangers');
  const { pid } = service.process.program().child;
  if (pid === undefined) throw new Error('the service has no process id');
  try {
    const { hostname: host, port } = new URL(service.process.controlEndpoint);
    const before = await memoryOf(service.process);
    const { anonymous } = await residentBytes(pid);
    await child.ask('start', { kind, host, port: Number(port), count, balancer } satisfies StartStrangers);
    await eventually('every connection is accepted', async () =>
      (await metricsOf(service.process.url))('svc_agent_connections_accepted_total') >= count ? true : undefined,
    );
    const atOnce = (await residentBytes(pid)).anonymous;
    await delay(settledMs);
    const after = await memoryOf(service.process);
    const later = (await residentBytes(pid)).anonymous;
    const open = await child.ask<number>('open');
    const each = (bytes: number): number => rounded(bytes / count / 1_024);
    return {
      kib_per_connection_at_once: each(atOnce - anonymous),
      kib_per_connection_later: each(later - anonymous),
      heap_kib_per_connection_later: each(after.heap - before.heap),
      still_open: open,
    };
  } finally {
    await child.close();
  }
}
