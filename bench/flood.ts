/**
 * What one authenticated node can cost: processor time of the service, and the time of `/healthz`, while its agent sends
 * the dearest heartbeats of 64 KiB that the limits allow, 20 a second. Beside it the same service without that agent.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { startChild } from './child.js';
import { rounded, spread } from './figures.js';
import type { Figure, Report } from './figures.js';
import { createNodes } from './fleet-over-rest.js';
import type { BenchOptions } from './options.js';
import type { Flood, Flooded } from './processes/flooder.js';
import { processorSeconds, withService } from './stack.js';

const perSecond = 20;

export async function flood({ quick }: BenchOptions): Promise<Report> {
  const seconds = quick ? 5 : 20;
  const figures = await withService({}, async (service): Promise<Record<string, Figure>> => {
    const [node] = await createNodes(service, 1);
    if (node === undefined) throw new Error('there is no node');
    const { pid } = service.process.program().child;
    if (pid === undefined) throw new Error('the service does not run');
    const idle = await observe(pid, service.process.url, () => delay(seconds * 1000));
    const child = startChild('processes/flooder');
    try {
      const target = new URL(service.process.controlEndpoint).host;
      const body: Flood = { ...node, target, perSecond, seconds };
      const flooded = await observe(pid, service.process.url, () =>
        child.ask<Flooded>('flood', body, (seconds + 30) * 1000),
      );
      const { bytesPerHeartbeat, entriesPerHeartbeat, taken } = flooded.result;
      return {
        heartbeats_per_second: perSecond,
        seconds,
        bytes_per_heartbeat: bytesPerHeartbeat,
        entries_per_heartbeat: entriesPerHeartbeat,
        heartbeats_taken: taken,
        cores: { flooded: flooded.cores, idle: idle.cores },
        healthz_ms: { flooded: flooded.healthz, idle: idle.healthz },
      };
    } finally {
      await child.close();
    }
  });
  return { bench: 'flood', figures };
}

interface Observed<T> {
  readonly result: T;
  /** Processor seconds per second of the service, over the whole time. */
  readonly cores: number;
  readonly healthz: ReturnType<typeof spread> & { readonly [name: string]: Figure };
}

async function observe<T>(pid: number, url: string, during: () => Promise<T>): Promise<Observed<T>> {
  const times: number[] = [];
  let over = false;
  const [cpu, began] = [await processorSeconds(pid), performance.now()];
  const polling = (async () => {
    while (!over) {
      const asked = performance.now();
      await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(10_000) });
      times.push(performance.now() - asked);
      await delay(50);
    }
  })();
  try {
    const result = await during();
    const seconds = (performance.now() - began) / 1000;
    const cores = rounded(((await processorSeconds(pid)) - cpu) / seconds);
    return { result, cores, healthz: { ...spread(times) } };
  } finally {
    over = true;
    await polling;
  }
}
