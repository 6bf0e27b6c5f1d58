/** The real service as a process, one per test file, with a client that is signed in as administrator. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { prepareService, type ServiceProcess } from '../../../scripts/stack/service.js';
import { createApi, type Api } from './rest.js';

export const adminPassword = 'correct horse battery';

export interface Running {
  readonly service: ServiceProcess;
  readonly api: Api;
  readonly dataDir: string;
  /** Stops the process and removes its data folder. */
  close(): Promise<void>;
}

/** Starts a service with an empty data folder and signs in. */
export async function startService(env: Readonly<Record<string, string>> = {}): Promise<Running> {
  const dataDir = await mkdtemp(join(tmpdir(), 'conformance-'));
  const service = await prepareService({
    dataDir,
    env: { SVC_ADMIN_PASSWORD: adminPassword, ...env },
    readyWithinMs: 40_000,
  });
  await service.start();
  const anonymous = createApi(service.url);
  const login = { username: 'admin', password: adminPassword };
  const { token } = await anonymous.ok<{ token: string }>('POST', '/api/auth/login', login);
  anonymous.close();
  const api = createApi(service.url, token);
  return {
    service,
    api,
    dataDir,
    async close() {
      api.close();
      await service.stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

/** One service for all tests of a file. Its fields may be read only inside tests and hooks. */
export function sharedService(
  env: Readonly<Record<string, string>> = {},
): Pick<Running, 'service' | 'api' | 'dataDir'> {
  let running: Running | undefined;
  beforeAll(async () => {
    running = await startService(env);
  });
  afterAll(async () => {
    await running?.close();
  });
  const started = (): Running => {
    if (running === undefined) throw new Error('the service is not running');
    return running;
  };
  return {
    get service() {
      return started().service;
    },
    get dataDir() {
      return started().dataDir;
    },
    get api() {
      return started().api;
    },
  };
}
