/** The real agent listener on a free port, with a manual clock, and sockets that dial it. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { Clock } from '../../src/kernel/clock.js';
import { silentLogger } from '../../src/kernel/logger.js';
import type { AgentConnection } from '../../src/transport/listener/connection.js';
import { startListener, type Listener } from '../../src/transport/listener/listener.js';
import type { SharedHellos } from '../../src/transport/listener/reality/reality.js';
import type { RealitySettings } from '../../src/transport/listener/reality/settings.js';
import { createManualClock, type ManualClock } from './manual-clock.js';

export interface ListenerFixture {
  readonly listener: Listener;
  readonly clock: ManualClock;
  /** The connections that the listener has handed over. */
  readonly accepted: AgentConnection[];
  /** What it noted of those that it closed: reason and address. */
  readonly refusals: { readonly reason: string; readonly address: string }[];
  /** Connects, from another loopback address if asked, and sends `bytes`. */
  dial(bytes?: Uint8Array, localAddress?: string): Promise<Socket>;
  close(): Promise<void>;
}

export async function startListenerFixture(
  options: {
    readonly maxConnections?: number;
    readonly proxyFrom?: readonly string[];
    readonly reality?: RealitySettings;
    readonly sharedHellos?: SharedHellos;
    /** Instead of the manual one. */
    readonly clock?: Clock;
  } = {},
): Promise<ListenerFixture> {
  const clock = createManualClock();
  const accepted: AgentConnection[] = [];
  const refusals: ListenerFixture['refusals'] = [];
  const clients = new Set<Socket>();
  const listener = await startListener(
    {
      host: '127.0.0.1',
      port: 0,
      maxConnections: 100,
      proxyFrom: [],
      clock,
      logger: silentLogger,
      refusals: { note: ({ reason, address = '' }) => refusals.push({ reason, address }) },
      ...options,
    },
    (connection) => accepted.push(connection),
  );
  const port = Number(listener.address.split(':')[1]);
  return {
    listener,
    clock,
    accepted,
    refusals,
    async dial(bytes, localAddress = '127.0.0.1') {
      const socket = connect({ host: '127.0.0.1', port, localAddress, noDelay: true });
      clients.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => clients.delete(socket));
      // Without a reader the end of the connection is not noticed.
      socket.resume();
      await once(socket, 'connect');
      if (bytes !== undefined) socket.write(bytes);
      return socket;
    },
    async close() {
      for (const client of clients) client.destroy();
      await listener.close(0);
    },
  };
}

/** What a connection reads from now on, as it grows. */
export function reading(connection: AgentConnection): { text: string } {
  const read = { text: '' };
  connection.stream.on('data', (bytes: Buffer) => (read.text += bytes.toString('latin1')));
  connection.stream.resume();
  return read;
}
