/** Connections to the target, each within a time limit, with a bound on dials at once. Nothing is sent on them here. */
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import type { HostPort } from '../../../kernel/host-port.js';
import { createSemaphore } from '../../../kernel/semaphore.js';
import { tuning } from './tuning.js';

export interface Target {
  /** A connection, paused; undefined if there is none in time. */
  dial(): Promise<Socket | undefined>;
  /** Turns away all dials that wait; connections stay. */
  close(): void;
}

export function createTarget({ host, port }: HostPort): Target {
  const places = createSemaphore({ places: tuning.dials, waiting: tuning.dialsWaiting, waitMs: tuning.dialMs });
  return {
    async dial() {
      const leave = await places.enter();
      if (leave === undefined) return undefined;
      try {
        return await dialOnce(host, port);
      } finally {
        leave();
      }
    },
    close: () => places.close(),
  };
}

function dialOnce(host: string, port: number): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    // An end in one direction is passed on; the other one stays open.
    const socket = connect({ host, port, noDelay: true, allowHalfOpen: true });
    const timer = setTimeout(() => fail(), tuning.dialMs);
    const fail = (): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(undefined);
    };
    // Stays, so that a later error without another listener ends nothing.
    socket.on('error', fail);
    socket.once('connect', () => {
      clearTimeout(timer);
      socket.pause();
      resolve(socket);
    });
  });
}
