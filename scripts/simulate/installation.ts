/** The service under simulation: the simulator's own in a temporary folder, or a running one. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { HostPort } from '../../src/kernel/host-port.js';
import { offlineAfterSeconds } from '../../src/domain/settings/settings.js';
import { CommandError, UsageError } from '../maintenance/command-line.js';
import { processorSeconds } from '../stack/processor-time.js';
import { clientOf, signIn, type RestClient } from '../stack/rest-client.js';
import { prepareService } from '../stack/service.js';
import type { Scenario } from './scenario.js';

export interface Installation {
  readonly url: string;
  readonly own: boolean;
  readonly endpoint: HostPort;
  readonly rest: RestClient;
  /** CPU seconds of the service so far; undefined where unknown. */
  cpuSeconds(): Promise<number | undefined>;
  /** Stops the simulator's own service and deletes its folder. */
  close(): Promise<void>;
}

/** @throws CommandError if a running service cannot be used, UsageError for an option that does not suit it */
export function openInstallation(scenario: Scenario, password: string | undefined): Promise<Installation> {
  return scenario.service === undefined ? startOwn(scenario) : useRunning(scenario, scenario.service, password);
}

async function startOwn({ agents, heartbeatSeconds }: Scenario): Promise<Installation> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-simulate-'));
  const env = { SVC_LOG_LEVEL: 'warn', SVC_MAX_CONNECTIONS: String(2 * agents + 1_000) };
  const service = await prepareService({ dataDir: join(folder, 'data'), env });
  const close = async (): Promise<void> => {
    await service.stop();
    await rm(folder, { recursive: true, force: true });
  };
  try {
    await service.start();
    const rest = await renewing(() => service.admin());
    if (heartbeatSeconds !== undefined) {
      const settings = { heartbeat_interval_secs: Math.max(1, Math.round(heartbeatSeconds)) };
      await rest.call('PUT', '/api/settings/connectivity', settings);
    }
    const { hostname, port } = new URL(service.controlEndpoint);
    return {
      url: service.url,
      own: true,
      endpoint: { host: hostname, port: Number(port) },
      rest,
      cpuSeconds: () => processorSeconds(service.program().pid).catch(() => undefined),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

async function useRunning(
  { heartbeatSeconds }: Scenario,
  { url, endpoint, user }: NonNullable<Scenario['service']>,
  password: string | undefined,
): Promise<Installation> {
  if (password === undefined) throw new UsageError('SVC_SIM_PASSWORD: expected the password of --user with --url');
  const rest = await renewing(() => signIn(url, user, password)).catch((error: unknown) => {
    throw new CommandError(
      `--url: cannot sign in to ${url} as ${user}: ${error instanceof Error ? error.message : String(error)}`,
    );
  });
  const settings = await rest.call<Parameters<typeof offlineAfterSeconds>[0]>('GET', '/api/settings/connectivity');
  const silentAfter = offlineAfterSeconds(settings);
  if (heartbeatSeconds !== undefined && heartbeatSeconds >= silentAfter) {
    throw new UsageError(`--heartbeat: expected less than ${silentAfter}, after which this service ends a session`);
  }
  return { url, own: false, endpoint, rest, cpuSeconds: async () => undefined, close: async () => undefined };
}

const unauthorized = 401;

/** A client that signs in again when its token has expired. */
async function renewing(open: () => Promise<RestClient>): Promise<RestClient> {
  let client = await open();
  return clientOf(async (...request) => {
    const answer = await client.send(...request);
    if (answer.status !== unauthorized) return answer;
    client = await open();
    return client.send(...request);
  });
}
