/** Real bytes through chains of real relays beside the simulated agents: clients send bytes and expect them back. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { randomBytes } from 'node:crypto';
import { startLoop } from '../../src/kernel/background.js';
import { startHopChains, type HopChain, type HopKind } from '../stack/hop-chains.js';
import type { Installation } from './installation.js';

/** The traffic of one chain. */
export interface HopResult {
  readonly kind: HopKind;
  /** Connections or UDP clients that got back everything they sent. */
  readonly served: number;
  /** Those that did not. */
  readonly failed: number;
  /** Bytes that came back. */
  readonly bytes: number;
}

export interface HopTraffic {
  /** @returns the traffic of each chain */
  stop(): Promise<readonly HopResult[]>;
}

const gateways = 3;
const pauseMs = 20;
const withinMs = 30_000;
const streamBytes = 1024 * 1024;
const datagrams = { count: 16, bytes: 1_200, againMs: 500 } as const;

/** Builds the chains in the service, starts their agents, and sends until stopped. */
export async function startHopTraffic(
  { rest, endpoint, own }: Installation,
  { kinds, prefix, keep }: { readonly kinds: readonly HopKind[]; readonly prefix: string; readonly keep: boolean },
): Promise<HopTraffic> {
  const echo = await startEchoes();
  const hops = await startHopChains({
    rest,
    controlEndpoint: `http://${endpoint.host}:${endpoint.port}`,
    kinds,
    gateways,
    targets: echo.ports,
    prefix,
  }).catch(async (error: unknown) => {
    echo.close();
    throw error;
  });
  const flows = hops.chains.map(startClients);
  return {
    async stop() {
      const results = await Promise.all(flows.map((flow) => flow.stop()));
      await hops.close();
      echo.close();
      if (!own && !keep) await hops.remove();
      return results;
    },
  };
}

/** One client after the other. */
function startClients({ kind, transport, port }: HopChain): { stop(): Promise<HopResult> } {
  const counts = { served: 0, failed: 0, bytes: 0 };
  const serve = transport === 'tcp' ? overTcp : overUdp;
  const loop = startLoop(
    pauseMs,
    async () => {
      try {
        counts.bytes += await serve(port);
        counts.served += 1;
      } catch {
        counts.failed += 1;
      }
    },
    () => undefined,
  );
  return {
    async stop() {
      await loop.close();
      return { kind, ...counts };
    },
  };
}

/** @throws Error unless all bytes and the end come back. @returns the number of bytes */
async function overTcp(port: number): Promise<number> {
  const socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true });
  socket.on('error', () => undefined);
  try {
    const sent = randomBytes(streamBytes);
    const parts: Buffer[] = [];
    socket.on('data', (part: Buffer) => parts.push(part));
    socket.end(sent);
    // Rejects if the connection breaks.
    await once(socket, 'end', { signal: AbortSignal.timeout(withinMs) });
    if (!Buffer.concat(parts).equals(sent)) throw new Error('different bytes came back');
    return sent.length;
  } finally {
    socket.destroy();
  }
}

/** The same with datagrams, which are resent until answered. */
async function overUdp(port: number): Promise<number> {
  const socket = createSocket('udp4');
  const missing = new Map<string, Buffer>();
  for (let number = 0; number < datagrams.count; number += 1) {
    const datagram = randomBytes(datagrams.bytes);
    missing.set(datagram.toString('latin1'), datagram);
  }
  const send = (): void => {
    for (const datagram of missing.values()) socket.send(datagram, port, '127.0.0.1', () => undefined);
  };
  const again = setInterval(send, datagrams.againMs);
  try {
    const done = new Promise<void>((resolve, reject) => {
      AbortSignal.timeout(withinMs).addEventListener('abort', () => reject(new Error('no answer in time')));
      socket.on('error', reject);
      socket.on('message', (answer) => {
        missing.delete(answer.toString('latin1'));
        if (missing.size === 0) resolve();
      });
    });
    send();
    await done;
    return datagrams.count * datagrams.bytes;
  } finally {
    clearInterval(again);
    socket.close();
  }
}

interface Echoes {
  readonly ports: { readonly tcp: number; readonly udp: number };
  close(): void;
}

async function startEchoes(): Promise<Echoes> {
  const sockets = new Set<Socket>();
  const tcp = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
    socket.pipe(socket);
  });
  tcp.listen(0, '127.0.0.1');
  const udp = createSocket('udp4');
  udp.on('message', (datagram, from) => udp.send(datagram, from.port, from.address, () => undefined));
  udp.bind(0, '127.0.0.1');
  await Promise.all([once(tcp, 'listening'), once(udp, 'listening')]);
  return {
    ports: { tcp: (tcp.address() as AddressInfo).port, udp: udp.address().port },
    close() {
      tcp.close();
      for (const socket of sockets) socket.destroy();
      udp.close();
    },
  };
}
