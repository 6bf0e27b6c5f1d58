/** The service as a process on free loopback ports; can be killed and restarted. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { get as getOverTls } from 'node:https';
import { join } from 'node:path';
import {
  NoUseWaiting,
  eventually,
  freePorts,
  startProgram,
  type ProgramOptions,
  type RunningProgram,
} from './process.js';
import { signIn, type RestClient } from './rest-client.js';

export interface ServiceOptions {
  readonly dataDir: string;
  readonly env?: { readonly [name: string]: string };
  /** PEM texts; with them, REST is served over TLS, which `admin()` does not speak. */
  readonly tls?: { readonly cert: string; readonly key: string };
  /** How long a start may take; default 60 s. */
  readonly readyWithinMs?: number;
  /** Milliseconds between readiness checks during a start; default 50. */
  readonly askEveryMs?: number;
}

export interface StartOptions extends ProgramOptions {
  /** Only waits until it answers, for a service that is not expected to become ready. */
  readonly unready?: boolean;
}

export interface ServiceProcess {
  readonly url: string;
  /** For `SVC_CONTROL_ENDPOINT`. */
  readonly controlEndpoint: string;
  readonly program: () => RunningProgram;
  /** Starts it on the same ports and folder and waits until it is ready. */
  start(options?: StartOptions): Promise<void>;
  /** Sets the stores for later starts. */
  moveTo(stores: Pick<ServiceOptions, 'dataDir' | 'env'>): void;
  /** SIGKILL. */
  kill(): Promise<void>;
  stop(): Promise<void>;
  admin(): Promise<RestClient>;
  readonly adminPassword: string;
}

const password = 'a password for the demo only';

/** Prepares a service; `start()` runs it. */
export async function prepareService(options: ServiceOptions): Promise<ServiceProcess> {
  const [http, control] = await freePorts(2);
  const { tls } = options;
  const url = `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${http}`;
  let place: Pick<ServiceOptions, 'dataDir' | 'env'> = options;
  let program: RunningProgram | undefined;
  const running = (): RunningProgram => {
    if (program === undefined) throw new Error('the service was not started');
    return program;
  };
  return {
    url,
    controlEndpoint: `http://127.0.0.1:${control}`,
    program: running,
    async start(start = {}) {
      const env = {
        SVC_HTTP_LISTEN_ADDR: `127.0.0.1:${http}`,
        SVC_REALITY_LISTEN_ADDR: `127.0.0.1:${control}`,
        SVC_DATA_DIR: place.dataDir,
        SVC_ADMIN_PASSWORD: password,
        SVC_LOG_LEVEL: 'info',
        ...(tls === undefined ? {} : tlsFiles(place.dataDir, tls)),
        ...place.env,
      };
      program = startProgram('main', env, [], start);
      const started = program;
      const probe = start.unready === true ? '/openapi.json' : '/readyz';
      await eventually(
        'the service is ready',
        async () => {
          if (started.exited()) throw new NoUseWaiting('the service exited during its start');
          return (await statusOf(`${url}${probe}`, tls?.cert)) === 200 ? true : undefined;
        },
        options.readyWithinMs ?? 60_000,
        options.askEveryMs,
      ).catch((error: unknown) => {
        throw new Error(`${error instanceof Error ? error.message : String(error)}\n${started.output()}`);
      });
    },
    moveTo(stores) {
      place = stores;
    },
    async kill() {
      await running().stop('SIGKILL');
    },
    async stop() {
      await program?.stop();
    },
    admin: () => signIn(url, 'admin', password),
    adminPassword: password,
  };
}

/** Writes both beside the data folder. @returns the settings that name them */
function tlsFiles(dataDir: string, { cert, key }: NonNullable<ServiceOptions['tls']>): { [name: string]: string } {
  mkdirSync(join(dataDir, '..'), { recursive: true });
  const paths = { cert: join(dataDir, '..', 'tls.crt'), key: join(dataDir, '..', 'tls.key') };
  writeFileSync(paths.cert, cert);
  writeFileSync(paths.key, key, { mode: 0o600 });
  return { SVC_HTTP_TLS_CERT_FILE: paths.cert, SVC_HTTP_TLS_KEY_FILE: paths.key };
}

/** Status of a GET within 2 s. @param ca PEM, for https. @throws Error when nothing answers. @internal exported for tests */
export function statusOf(url: string, ca?: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const options = { signal: AbortSignal.timeout(2_000), agent: false, ...(ca === undefined ? {} : { ca }) };
    const request = (ca === undefined ? get : getOverTls)(url, options, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    request.on('error', reject);
    // An answer 101 ends this way, without an error.
    request.on('close', () => reject(new Error('no answer')));
  });
}

/** A module, as a data URL, that makes the service collect garbage on SIGUSR2. */
const collectOnSignal = `data:text/javascript,${encodeURIComponent(
  `import v8 from 'node:v8'; import vm from 'node:vm'; v8.setFlagsFromString('--expose-gc');
   const gc = vm.runInNewContext('gc'); process.on('SIGUSR2', () => { gc(); gc(); });`,
)}`;

/** Environment of a service whose memory is measured: it collects garbage on SIGUSR2. */
export const collectable = { NODE_OPTIONS: `--import=${collectOnSignal}` };
