/**
 * Traffic that must not stop: one connection that stays and is echoed on all the time, and new ones that come and go.
 * Whatever fails is noted with its reason; nothing is retried.
 */
import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

export interface SteadyTraffic {
  readonly failures: readonly string[];
  /** Echoes that came back on the connection that stays, and new connections that were served. */
  echoes(): { readonly stayed: number; readonly fresh: number };
  stop(): Promise<void>;
}

/** How long an answer may take on a busy machine before the traffic counts as stopped. */
const patienceMs = 15_000;
const everyMs = 100;

/** Starts it to a port of 127.0.0.1 that leads to an echo server. */
export function startSteadyTraffic(port: number): SteadyTraffic {
  const failures: string[] = [];
  const counts = { stayed: 0, fresh: 0 };
  let running = true;

  const opened = async (): Promise<Socket> => {
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect', { signal: AbortSignal.timeout(patienceMs) });
    return socket;
  };
  const echo = async (socket: Socket, text: string): Promise<void> => {
    const done = new AbortController();
    const signal = AbortSignal.any([done.signal, AbortSignal.timeout(patienceMs)]);
    const ended = once(socket, 'close', { signal }).then(() => Promise.reject(new Error('closed')));
    const back = once(socket, 'data', { signal }).then(([data]) => String(data));
    try {
      socket.write(text);
      const heard = await Promise.race([back, ended]);
      if (heard !== text) throw new Error(`"${heard}" came back for "${text}"`);
    } finally {
      for (const wait of [ended, back]) wait.catch(() => undefined);
      // Takes the listeners off again.
      done.abort();
    }
  };
  const note = (what: string, error: unknown): void => {
    if (running) failures.push(`${what}: ${error instanceof Error ? error.message : String(error)}`);
  };

  const staying = async (): Promise<void> => {
    const socket = await opened();
    socket.on('error', () => undefined);
    try {
      while (running) {
        await echo(socket, `stays ${counts.stayed}`);
        counts.stayed += 1;
        await delay(everyMs);
      }
    } finally {
      socket.destroy();
    }
  };
  const fresh = async (): Promise<void> => {
    while (running) {
      const socket = await opened();
      socket.on('error', () => undefined);
      await echo(socket, `fresh ${counts.fresh}`).finally(() => socket.destroy());
      counts.fresh += 1;
      await delay(everyMs);
    }
  };
  const both = [
    staying().catch((error: unknown) => note('the connection that stays', error)),
    fresh().catch((error: unknown) => note('a new connection', error)),
  ];
  return {
    failures,
    echoes: () => ({ ...counts }),
    async stop() {
      running = false;
      await Promise.all(both);
    },
  };
}
