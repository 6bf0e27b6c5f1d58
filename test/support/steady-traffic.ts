/**
 * Traffic that must not stop: echoes on one lasting connection, and on a new connection each time. Every failure is
 * noted with its reason; nothing is retried.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

export interface SteadyTraffic {
  readonly failures: readonly string[];
  /** Echoes that came back on the lasting connection, and new connections that were served. */
  echoes(): { readonly lasting: number; readonly fresh: number };
  stop(): Promise<void>;
}

/** How long an echo may take on a busy machine before the traffic counts as stopped. */
const patienceMs = 15_000;
const everyMs = 100;

/** Starts the traffic to a port of 127.0.0.1 that leads to an echo server. */
export function startSteadyTraffic(port: number): SteadyTraffic {
  const failures: string[] = [];
  const counts = { lasting: 0, fresh: 0 };
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
      const reply = await Promise.race([back, ended]);
      if (reply !== text) throw new Error(`"${reply}" came back for "${text}"`);
    } finally {
      for (const wait of [ended, back]) wait.catch(() => undefined);
      // Removes the listeners.
      done.abort();
    }
  };
  const note = (what: string, error: unknown): void => {
    if (running) failures.push(`${what}: ${error instanceof Error ? error.message : String(error)}`);
  };

  const lasting = async (): Promise<void> => {
    const socket = await opened();
    socket.on('error', () => undefined);
    try {
      while (running) {
        await echo(socket, `lasting ${counts.lasting}`);
        counts.lasting += 1;
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
    lasting().catch((error: unknown) => note('the lasting connection', error)),
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
