/**
 * The agent's status for the machine it runs on: `/healthz`, and the Prometheus text at `/metrics`, in the clear and
 * without a password, so its address must be local or in a private network. The service learns the same from
 * heartbeats; this helps while the service is away. See `docs/how-to/add-an-agent.md`.
 */
import { createServer, type Server } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client';
import { formatHostPort, type HostPort } from '../kernel/host-port.js';
import type { AgentHandle } from './agent.js';

/** Enough for a monitor and a person. */
const connectionsMax = 16;
const timeoutMs = 5_000;

export interface MetricsServer {
  /** `host:port`. */
  readonly address: string;
  close(): Promise<void>;
}

/** @throws Error when the address cannot be listened on */
export async function startMetricsServer(
  { host, port }: HostPort,
  agent: Pick<AgentHandle, 'state'>,
): Promise<MetricsServer> {
  const registry = metricsOf(agent);
  const server = createServer({ requestTimeout: timeoutMs, headersTimeout: timeoutMs }, (request, response) => {
    const path = request.url?.split('?')[0];
    if (request.method !== 'GET' && request.method !== 'HEAD') response.writeHead(405, { allow: 'GET, HEAD' }).end();
    else if (path === '/healthz') {
      const { connected, generation = null } = agent.state();
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ connected, generation }));
    } else if (path === '/metrics') {
      registry.metrics().then(
        (text) => response.writeHead(200, { 'content-type': registry.contentType }).end(text),
        () => response.writeHead(500).end(),
      );
    } else response.writeHead(404).end();
  });
  server.maxConnections = connectionsMax;
  // Also for a client that does not read its answer.
  server.setTimeout(timeoutMs);
  server.listen(port, host);
  await once(server, 'listening');
  // A later error, such as too many open files, does not end any relay.
  server.on('error', () => undefined);
  return { address: addressOf(server), close: () => closed(server) };
}

function addressOf(server: Server): string {
  const { address, port } = server.address() as AddressInfo;
  return formatHostPort({ host: address, port });
}

async function closed(server: Server): Promise<void> {
  server.close();
  server.closeAllConnections();
  await once(server, 'close');
}

type Listeners = ReturnType<AgentHandle['state']>['listeners'];

/** Read on request. */
function metricsOf(agent: Pick<AgentHandle, 'state'>): Registry {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  // promtool refuses these gauges, because they are named like counters; the gauges by type have other names.
  for (const name of ['handles', 'requests', 'resources']) registry.removeSingleMetric(`nodejs_active_${name}_total`);
  const gauge = (name: string, help: string, value: () => number): void =>
    void new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(value());
      },
    });
  gauge('svc_agent_connected', 'Whether a session with the service is open', () => Number(agent.state().connected));
  gauge(
    'svc_agent_generation',
    'Generation of the running configuration; 0 before the first',
    () => agent.state().generation ?? 0,
  );
  const ofListeners = (
    Metric: typeof Gauge | typeof Counter,
    name: string,
    help: string,
    values: (listener: Listeners[number]) => readonly (readonly [value: number | bigint, more?: object])[],
  ): void =>
    void new Metric({
      name,
      help,
      labelNames: ['transport', 'address', 'port', 'direction'],
      registers,
      collect() {
        this.reset();
        for (const listener of agent.state().listeners) {
          const { transport, listenAddr: address, listenPort: port } = listener;
          for (const [value, more] of values(listener)) this.inc({ transport, address, port, ...more }, Number(value));
        }
      },
    });
  ofListeners(Gauge, 'svc_agent_listener_running', 'Whether a listener takes connections', ({ state }) => [
    [Number(state === 'running')],
  ]);
  ofListeners(Gauge, 'svc_agent_listener_sessions', 'Sessions through a listener now', ({ activeSessions = 0n }) => [
    [activeSessions],
  ]);
  ofListeners(
    Counter,
    'svc_agent_listener_bytes_total',
    'Bytes through a listener since it was opened, from and to clients',
    ({ bytesIn = 0n, bytesOut = 0n }) => [
      [bytesIn, { direction: 'in' }],
      [bytesOut, { direction: 'out' }],
    ],
  );
  ofListeners(
    Counter,
    'svc_agent_listener_errors_total',
    'Sessions of a listener that failed since it was opened',
    ({ errorSessions = 0n }) => [[errorSessions]],
  );
  return registry;
}
