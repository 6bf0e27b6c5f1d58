/**
 * Connections to the target, each dialled within a time limit, with a bound on simultaneous dials. Each belongs to the
 * client that meets the target on it and is closed with it. Nothing is sent on them here.
 */
import { connect, type Socket } from 'node:net';
import type { HostPort } from '../../../kernel/host-port.js';
import { byName } from '../../../kernel/resolve.js';
import { createSemaphore } from '../../../kernel/semaphore.js';
import { tuning } from './tuning.js';

export type Target = ReturnType<typeof createTarget>;

export function createTarget({ host, port }: HostPort) {
  const places = createSemaphore({ places: tuning.dials, waiting: tuning.dialsWaiting, waitMs: tuning.dialMs });
  const open = new Set<Socket>();

  const dialOnce = (client: Socket | undefined): Promise<Socket | undefined> =>
    new Promise((resolve) => {
      // An end in one direction is passed on; the other one stays open.
      const socket = connect({ host, port, noDelay: true, allowHalfOpen: true, ...byName(tuning.dialMs) });
      open.add(socket);
      const end = (): void => void socket.destroy();
      const timer = setTimeout(end, tuning.dialMs);
      client?.once('close', end);
      // Stays attached, so that a later error without another listener does not end the process.
      socket.on('error', () => undefined);
      socket.once('close', () => {
        clearTimeout(timer);
        client?.off('close', end);
        open.delete(socket);
        resolve(undefined);
      });
      socket.once('connect', () => {
        clearTimeout(timer);
        socket.pause();
        resolve(socket);
      });
    });

  return {
    /**
     * Dials the target.
     * @param client its end ends the connection, even while dialling; absent for a visit of the service itself
     * @returns a paused connection; undefined if none is established in time
     */
    async dial(client?: Socket): Promise<Socket | undefined> {
      const leave = await places.enter();
      if (leave === undefined) return undefined;
      try {
        return client?.destroyed === true ? undefined : await dialOnce(client);
      } finally {
        leave();
      }
    },
    /** Connections that are open or being opened. */
    get open(): number {
      return open.size;
    },
    /** Closes all connections and turns away all waiting and later dials. */
    close(): void {
      places.close();
      for (const socket of open) socket.destroy();
    },
  };
}
