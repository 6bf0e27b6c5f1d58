/**
 * One listening TCP socket with all its rules: accepts connections within bounds and hands them to `tcp-relay.ts`. What
 * it serves can be replaced while it runs: live connections stay with what they were accepted for, except that each
 * request of an HTTP connection takes the newest routes.
 */
import { createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { sleep } from '../kernel/background.js';
import { errorText } from '../kernel/errors.js';
import { createMeter } from './counters.js';
import { createHttpProxy } from './http-proxy.js';
import type { TcpService } from './plan.js';
import type { RelayDependencies, RelayListener, RoutedListener } from './relay.js';
import { reset } from './side.js';
import { createTcpRelay } from './tcp-relay.js';
import { tuning } from './tuning.js';

/** Opens the listener; rejects with the system's error if it cannot bind. */
export async function openTcpListener(
  addr: string,
  port: number,
  dependencies: RelayDependencies,
): Promise<RoutedListener<TcpService>> {
  const { logger } = dependencies;
  const meter = createMeter(dependencies.totals);
  const sessions = new Map<Socket, Promise<void>>();
  /** Connections of which it is not known yet who serves them, the oldest first. */
  const undecided = new Set<Socket>();
  const http = createHttpProxy(dependencies, meter);
  const serve = createTcpRelay({ dependencies, meter, http, decided: (client) => undecided.delete(client) });
  let closing = false;
  let current: TcpService | undefined;
  let waiting: Socket[] = [];
  let state: RelayListener['state'] = 'running';

  const start = (client: Socket, service: TcpService): void => {
    if (service.kind === 'names') {
      undecided.add(client);
      // Who opens connections and says nothing makes room for those who come after.
      const [oldest] = undecided;
      if (undecided.size > tuning.tcpUndecidedPerListener && oldest !== undefined) reset(oldest);
    }
    const session = serve(client, service)
      .catch((error: unknown) => {
        logger.error({ error: errorText(error) }, 'a relayed connection failed');
        reset(client);
      })
      .finally(() => {
        undecided.delete(client);
        sessions.delete(client);
      });
    sessions.set(client, session);
  };

  const accept = (client: Socket): void => {
    client.on('error', () => undefined);
    if (closing || sessions.size + waiting.length >= tuning.tcpSessionsPerListener) {
      meter.refused();
      return reset(client);
    }
    client.setKeepAlive(true, tuning.tcpKeepaliveMs);
    if (current === undefined) waiting.push(client);
    else start(client, current);
  };

  const listen = async (): Promise<Server> => {
    const opened = createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect: true }, accept);
    await new Promise<void>((resolve, reject) => {
      opened.once('error', reject);
      opened.listen({ host: addr, port }, () => {
        opened.removeListener('error', reject);
        resolve();
      });
    });
    opened.on('error', (error) => {
      state = 'failed';
      logger.error({ addr, port, error: errorText(error) }, 'a TCP listener failed');
    });
    state = 'running';
    return opened;
  };
  let server = await listen();

  return {
    meter,
    get state() {
      return state;
    },
    route(service) {
      current = service;
      const plain = service.kind === 'names' ? service.fallback : service;
      http.route(plain?.kind === 'http' ? plain.routes : undefined);
      const clients = waiting;
      waiting = [];
      for (const client of clients) start(client, service);
    },
    suspend() {
      // Releases the port at once. Its callback is not awaited: it comes only when all connections are closed.
      server.close();
      state = 'failed';
    },
    async resume() {
      server = await listen();
    },
    async close(drainMs) {
      closing = true;
      server.close();
      for (const client of [...waiting, ...undecided]) reset(client);
      waiting = [];
      http.drain();
      const all = Promise.all(sessions.values());
      if (drainMs > 0) {
        const drained = new AbortController();
        void all.finally(() => drained.abort());
        await sleep(drainMs, drained.signal);
      }
      for (const client of sessions.keys()) reset(client);
      await all;
    },
  };
}
