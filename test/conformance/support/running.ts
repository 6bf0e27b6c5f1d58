/**
 * The real service, one per test file, with a client that is signed in as administrator. In the test's process, unless it is
 * killed or signalled.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import type { ServiceOptions } from '../../../scripts/stack/service.js';
import { prepareServiceHere, type ServiceHere } from '../../support/service-here.js';
import { createApi, type Api } from './rest.js';

export const adminPassword = 'correct horse battery';

type Service = Pick<ServiceHere, 'url' | 'controlEndpoint' | 'start' | 'stop'>;

export interface Running<S = Service> {
  readonly service: S;
  readonly api: Api;
  /** Stops it and removes its data folder. */
  close(): Promise<void>;
}

type Prepare<S> = (options: ServiceOptions) => Promise<S>;

/** Starts a service with an empty data folder and signs in. */
export async function startServiceOf<S extends Service>(
  prepare: Prepare<S>,
  env: Readonly<Record<string, string>> = {},
): Promise<Running<S>> {
  const dataDir = await mkdtemp(join(tmpdir(), 'conformance-'));
  const service = await prepare({ dataDir, env: { SVC_ADMIN_PASSWORD: adminPassword, ...env } });
  await service.start();
  const anonymous = createApi(service.url);
  const login = { username: 'admin', password: adminPassword };
  const { token } = await anonymous.ok<{ token: string }>('POST', '/api/auth/login', login);
  anonymous.close();
  const api = createApi(service.url, token);
  return {
    service,
    api,
    async close() {
      api.close();
      await service.stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

/** One service for all tests of a file. Its fields may be read only inside tests and hooks. */
export const sharedService = (): Shared => sharedServiceOf(prepareServiceHere);

type Shared<S = Service> = Pick<Running<S>, 'service' | 'api'>;

/** The same. @param prepare for a service of another kind */
export function sharedServiceOf<S extends Service>(prepare: Prepare<S>): Shared<S> {
  let running: Running<S> | undefined;
  beforeAll(async () => {
    running = await startServiceOf(prepare);
  });
  afterAll(async () => {
    await running?.close();
  });
  const started = (): Running<S> => {
    if (running === undefined) throw new Error('the service is not running');
    return running;
  };
  return {
    get service() {
      return started().service;
    },
    get api() {
      return started().api;
    },
  };
}
