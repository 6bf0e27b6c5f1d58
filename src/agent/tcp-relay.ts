/**
 * One TCP listener of a RAW rule: accepts connections, dials the next hop and joins the two. The endpoint is chosen in
 * `upstreams.ts`. Implements `docs/contract/agent-protocol.md#the-reference-agent`.
 */
import { createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { sleep } from '../kernel/background.js';
import { errorText } from '../kernel/errors.js';
import { createMeter } from './counters.js';
import { dialFirst } from './dial.js';
import type { RelayRoute } from './plan.js';
import type { RelayDependencies, RelayListener } from './relay.js';
import { reset, splice } from './splice.js';
import { tuning } from './tuning.js';

/** Opens the listener; rejects with the system's error if it cannot bind. */
export async function openTcpListener(
  addr: string,
  port: number,
  dependencies: RelayDependencies,
): Promise<RelayListener> {
  const { upstreams, links, clock, logger } = dependencies;
  const meter = createMeter(dependencies.totals);
  const sessions = new Map<Socket, Promise<void>>();
  const closing = new AbortController();
  let current: RelayRoute | undefined;
  let waiting: Socket[] = [];
  let state: RelayListener['state'] = 'running';

  const serve = async (client: Socket, route: RelayRoute): Promise<void> => {
    const picked = upstreams.pick(route);
    if (picked.kind === 'refused') {
      meter.refused();
      return reset(client);
    }
    const end = meter.begin();
    let complete = false;
    try {
      const gone = new AbortController();
      const abort = (): void => gone.abort();
      client.once('close', abort);
      const dialled = await dialFirst(picked.endpoints, route, links, clock, gone.signal);
      client.removeListener('close', abort);
      // A client that left during the dial says nothing about the upstream.
      if (!gone.signal.aborted) picked.settled(dialled?.connectMs);
      if (dialled === undefined) return reset(client);
      const endLink = dialled.link.meter.begin();
      complete = await splice(client, dialled.socket, {
        up(bytes) {
          meter.received(bytes);
          dialled.link.meter.sent(bytes);
        },
        down(bytes) {
          meter.sent(bytes);
          dialled.link.meter.received(bytes);
        },
      });
      endLink(!complete);
    } finally {
      end(!complete);
    }
  };

  const start = (client: Socket, route: RelayRoute): void => {
    const session = serve(client, route)
      .catch((error: unknown) => {
        logger.error({ error: errorText(error) }, 'a relayed connection failed');
        reset(client);
      })
      .finally(() => sessions.delete(client));
    sessions.set(client, session);
  };

  const accept = (client: Socket): void => {
    client.on('error', () => undefined);
    if (closing.signal.aborted || sessions.size + waiting.length >= tuning.tcpSessionsPerListener) {
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
    route(route) {
      current = route;
      const clients = waiting;
      waiting = [];
      for (const client of clients) start(client, route);
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
      closing.abort();
      server.close();
      for (const client of waiting) reset(client);
      waiting = [];
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
