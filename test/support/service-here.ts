/**
 * The service in the process of the test, for tests that meet it over its ports alone: a process of its own takes a second
 * of processor time to start, and runs code that is still cold. Tests that kill, signal or measure it start a process
 * (`scripts/stack/service.ts`).
 */
import { startApp, type RunningApp } from '../../src/app/app.js';
import { readConfig } from '../../src/app/config/config.js';
import { createServiceLog } from '../../src/instance/service-log.js';
import { eventually, freePorts } from '../../scripts/stack/process.js';
import { signIn } from '../../scripts/stack/rest-client.js';
import { statusOf, type ServiceOptions, type ServiceProcess } from '../../scripts/stack/service.js';

export interface ServiceHere extends Pick<
  ServiceProcess,
  'url' | 'controlEndpoint' | 'start' | 'stop' | 'admin' | 'adminPassword'
> {
  /** Starts it on the same ports and folder and waits until it is ready. @throws StartError, ConfigError */
  start(): Promise<void>;
  /** All that it has logged. */
  output(): string;
}

const adminPassword = 'a password for the tests only';

/** Prepares a service; `start()` runs it. */
export async function prepareServiceHere({
  dataDir,
  env = {},
}: Pick<ServiceOptions, 'dataDir' | 'env'>): Promise<ServiceHere> {
  const [http, control] = await freePorts(2);
  const url = `http://127.0.0.1:${http}`;
  const config = readConfig({
    SVC_HTTP_LISTEN_ADDR: `127.0.0.1:${http}`,
    SVC_REALITY_LISTEN_ADDR: `127.0.0.1:${control}`,
    SVC_DATA_DIR: dataDir,
    SVC_ADMIN_PASSWORD: adminPassword,
    ...env,
  });
  let output = '';
  const log = createServiceLog('info', { write: (line) => void (output += line) });
  let app: RunningApp | undefined;
  return {
    url,
    controlEndpoint: `http://127.0.0.1:${control}`,
    async start() {
      app = await startApp(config, log, (sentence) => {
        throw new Error(sentence);
      });
      const ready = async (): Promise<true | undefined> => (await statusOf(`${url}/readyz`)) === 200 || undefined;
      await eventually('the service is ready', ready, 60_000);
    },
    async stop() {
      await app?.close();
      app = undefined;
    },
    output: () => output,
    admin: () => signIn(url, 'admin', adminPassword),
    adminPassword,
  };
}
