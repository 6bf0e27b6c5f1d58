/** The service under test, its temporary folder, and its memory as seen from outside. */
import { rmSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createRestClient, type RestClient } from '../scripts/stack/rest-client.js';
import { prepareService, type ServiceProcess } from '../scripts/stack/service.js';
export { processorSeconds } from '../scripts/stack/processor-time.js';
import { startChild } from './child.js';
import type { WrittenFleet } from './processes/fleet-writer.js';
import { openCaller, type HttpCaller } from './http-caller.js';

const folders = new Set<string>();
const services = new Set<ServiceProcess>();

/** Cleans up an interrupted run: kills the services and removes the folders. Other children exit with their IPC. */
export function abandon(): void {
  for (const service of services) service.program().child.kill('SIGKILL');
  for (const folder of folders) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}

/** Runs `use` with a temporary folder. */
export async function withFolder<T>(use: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  folders.add(folder);
  try {
    return await use(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
    folders.delete(folder);
  }
}

const writeWithinMs = 600_000;

/** Writes the log of a fleet into a new data folder, in a process of its own. */
export async function writeFleet(dataDir: string, fleet: WrittenFleet): Promise<void> {
  const writer = startChild('processes/fleet-writer', [dataDir]);
  try {
    await writer.ask('write', fleet, writeWithinMs);
  } finally {
    await writer.close();
  }
}

/** Starts the service, runs `use` with the milliseconds until it was ready, and stops it. */
export async function whileRunning<T>(service: ServiceProcess, use: (readyMs: number) => Promise<T>): Promise<T> {
  services.add(service);
  try {
    const began = performance.now();
    await service.start();
    return await use(performance.now() - began);
  } finally {
    await service.stop();
    services.delete(service);
  }
}

/** Of the admin. */
export const password = 'a password for benchmarks only';
/** The first start on a written log fills the read models. */
const startWithinMs = 600_000;

export interface BenchService {
  readonly process: ServiceProcess;
  /** Signed in once, because sign-ins are limited per address. */
  readonly admin: RestClient;
  readonly token: string;
  /** Callers with one connection each; the caller of this function closes them. */
  callers(count: number): Promise<readonly HttpCaller[]>;
}

/** Runs `use` with a new service on a temporary folder, or on `dataDir`. */
export async function withService<T>(
  options: { readonly dataDir?: string; readonly env?: { readonly [name: string]: string } },
  use: (service: BenchService) => Promise<T>,
): Promise<T> {
  return withFolder(async (folder) => {
    const process = await prepareService({
      dataDir: options.dataDir ?? join(folder, 'data'),
      env: { SVC_LOG_LEVEL: 'warn', SVC_ADMIN_PASSWORD: password, ...options.env },
      readyWithinMs: startWithinMs,
    });
    return whileRunning(process, async () => {
      const token = await signIn(process.url);
      return use({
        process,
        admin: createRestClient(process.url, token),
        token,
        callers: (count) => Promise.all(Array.from({ length: count }, () => openCaller(process.url, token))),
      });
    });
  });
}

async function signIn(url: string): Promise<string> {
  const body = { username: 'admin', password };
  return (await createRestClient(url).call<{ token: string }>('POST', '/api/auth/login', body)).token;
}

export interface Resident {
  /** The peak, with mapped files: LMDB maps its stores, so this grows with the disk cache. */
  readonly peak: number;
  /** The current value, without mapped files. */
  readonly anonymous: number;
}

/** Resident bytes of a process, from the kernel. */
export async function residentBytes(pid: number): Promise<Resident> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  const field = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) * 1024;
  return { peak: field('VmHWM'), anonymous: field('RssAnon') };
}

/** A reader of the metrics without labels that the service shows now. */
export async function metricsOf(url: string): Promise<(name: string) => number> {
  const text = await (await fetch(`${url}/metrics`, { signal: AbortSignal.timeout(10_000) })).text();
  return (name) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
}

/** Memory of a service that was started with `collectable`, after a garbage collection. */
export async function memoryOf(service: ServiceProcess): Promise<{ readonly rss: number; readonly heap: number }> {
  service.program().child.kill('SIGUSR2');
  await delay(1_000);
  const gauge = await metricsOf(service.url);
  return { rss: gauge('process_resident_memory_bytes'), heap: gauge('nodejs_heap_size_used_bytes') };
}
