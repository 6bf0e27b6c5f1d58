/** The service under test and its temporary folder, as every benchmark needs them; measured from outside by its pid. */
import { rmSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createRestClient } from '../scripts/stack/rest-client.js';
import type { RestClient } from '../scripts/stack/rest-client.js';
import { prepareService } from '../scripts/stack/service.js';
import type { ServiceProcess } from '../scripts/stack/service.js';
import { openCaller } from './http-caller.js';
import type { HttpCaller } from './http-caller.js';

const folders = new Set<string>();
const services = new Set<ServiceProcess>();

/** For a run that is broken off: ends the services and removes the folders at once. Other children end with their line. */
export function abandon(): void {
  for (const service of services) service.program().child.kill('SIGKILL');
  for (const folder of folders) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}

/** Runs `use` with a folder that is gone afterwards. */
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

/** Runs `use` while the service runs, from its start to its stop; `use` gets the milliseconds until it was ready. */
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

const password = 'a password for benchmarks only';

export interface BenchService {
  readonly process: ServiceProcess;
  /** Signed in once: sign-ins are limited per address. */
  readonly admin: RestClient;
  readonly token: string;
  /** Callers with connections of their own, to be closed by who asked for them. */
  callers(count: number): Promise<readonly HttpCaller[]>;
}

/** Preloaded into the service by `env`: SIGUSR2 collects garbage. A data URL, so that it needs no file. */
const collectOnSignal = `data:text/javascript,${encodeURIComponent(
  `import v8 from 'node:v8'; import vm from 'node:vm'; v8.setFlagsFromString('--expose-gc');
   const gc = vm.runInNewContext('gc'); process.on('SIGUSR2', () => { gc(); gc(); });`,
)}`;

/** Environment for a service whose memory `memoryOf` can look at. */
export const collectable = { NODE_OPTIONS: `--import=${collectOnSignal}` };

/** Runs `use` with a service of its own, quiet and with a fresh folder unless `dataDir` names one. */
export async function withService<T>(
  options: { readonly dataDir?: string; readonly env?: { readonly [name: string]: string } },
  use: (service: BenchService) => Promise<T>,
): Promise<T> {
  return withFolder(async (folder) => {
    const process = await prepareService({
      dataDir: options.dataDir ?? join(folder, 'data'),
      env: { SVC_LOG_LEVEL: 'warn', SVC_ADMIN_PASSWORD: password, ...options.env },
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
  const asked = { username: 'admin', password };
  return (await createRestClient(url).call<{ token: string }>('POST', '/api/auth/login', asked)).token;
}

export interface Resident {
  /** The most so far, pages of mapped files included: LMDB maps its stores, so these grow with the disk cache. */
  readonly peak: number;
  /** Now, without mapped files. */
  readonly own: number;
}

/** Resident bytes of a process, as the kernel counts them. */
export async function residentBytes(pid: number): Promise<Resident> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  const field = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) * 1024;
  return { peak: field('VmHWM'), own: field('RssAnon') };
}

/** Memory of a service started with `collectable`, after its garbage was collected. */
export async function memoryOf(service: ServiceProcess): Promise<{ readonly rss: number; readonly heap: number }> {
  service.program().child.kill('SIGUSR2');
  await delay(1_000);
  const text = await (await fetch(`${service.url}/metrics`, { signal: AbortSignal.timeout(10_000) })).text();
  const gauge = (name: string): number => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
  return { rss: gauge('process_resident_memory_bytes'), heap: gauge('nodejs_heap_size_used_bytes') };
}
