/**
 * An L4 load balancer for tests: a connection goes to the first instance that accepts it, and stays there. Like HAProxy with
 * `send-proxy-v2`, it can name the client in a PROXY header.
 */
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { proxyHeader } from './proxy-header.js';

export interface Balancer {
  readonly port: number;
  /** Cuts every connection. */
  drop(): void;
  close(): Promise<void>;
}

interface BalancerOptions {
  /** Begins each connection with a PROXY protocol v2 header that names this address. */
  readonly clientAddress?: (client: Socket) => string;
}

/** Listens on a free port of 127.0.0.1. `order` is called per connection: ports of the instances, preferred first. */
export async function startBalancer(
  order: () => readonly number[],
  { clientAddress }: BalancerOptions = {},
): Promise<Balancer> {
  const clients = new Set<Socket>();
  const server = createServer((client) => {
    clients.add(client);
    client.on('error', () => undefined);
    client.on('close', () => clients.delete(client));
    const tryNext = ([port, ...rest]: readonly number[]): void => {
      if (port === undefined) return void client.destroy();
      const upstream = connect(port, '127.0.0.1');
      upstream.once('error', () => tryNext(rest));
      upstream.once('connect', () => {
        upstream.removeAllListeners('error');
        upstream.on('error', () => client.destroy());
        if (clientAddress !== undefined) upstream.write(proxyHeader(clientAddress(client), client.remotePort));
        client.pipe(upstream).pipe(client);
        client.on('close', () => upstream.destroy());
        upstream.on('close', () => client.destroy());
      });
    };
    tryNext(order());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    drop() {
      for (const client of clients) client.destroy();
    },
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const client of clients) client.destroy();
      await closed;
    },
  };
}
