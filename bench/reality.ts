/**
 * REALITY beside a TLS server of Node: handshakes per second with the processor time of the server for each, and bytes per
 * second inside one connection. A handshake of REALITY includes the dial of its target.
 */
import { once } from 'node:events';
import { connect } from 'node:net';
import type { Duplex } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import { buildBrowserHello } from '../src/agent/reality/browser-hello.js';
import { openReality } from '../src/agent/reality/handshake.js';
import { systemClock } from '../src/kernel/clock.js';
import { x25519PairOf } from '../src/kernel/crypto/crypto.js';
import { readClientHello } from '../src/channel/tls/client-hello.js';
import { group } from '../src/channel/tls/codes.js';
import { answerShare, createClientShares } from '../src/channel/tls/key-exchange.js';
import { startChild, type Child } from './child.js';
import { alternately, beside, median, rounded, type Figure, type Report } from './figures.js';
import type { BenchOptions } from './options.js';
import type { ListenerSetup } from './processes/tls-servers.js';

const callers = 8;
const MiB = 1024 * 1024;
const serverName = 'target.example';
const shortId = '01';
/** Used only by this benchmark. */
const privateKey = Buffer.alloc(32, 7);

interface State {
  readonly bytes: number;
  readonly accepted: number;
  readonly cpuMs: number;
}

interface Measured {
  readonly child: Child;
  open(): Promise<Duplex>;
}

export async function reality({ quick }: BenchOptions): Promise<Report> {
  const [rounds, handshakes, megabytes] = quick ? [2, 40, 8] : [5, 400, 128];
  const [target, floor, listener] = [1, 2, 3].map(() => startChild('processes/tls-servers'));
  if (target === undefined || floor === undefined || listener === undefined) throw new Error('expected three servers');
  try {
    const floorPort = await floor.ask<number>('tls', serverName);
    const targetPort = await target.ask<number>('tls', serverName);
    const setup = { targetPort, privateKey: privateKey.toString('base64url'), serverName, shortId };
    const port = await listener.ask<number>('listener', setup satisfies ListenerSetup);
    const service: Measured = { child: listener, open: () => openAgent(port) };
    const bare: Measured = { child: floor, open: () => openTls(floorPort) };
    // The first agent waits until it is known what the target sends after a handshake.
    for (const one of [service, bare]) (await one.open()).destroy();
    const cost: Record<'service' | 'floor', number[]> = { service: [], floor: [] };
    const perSecond = await alternately(
      rounds,
      () => shake(service, handshakes, cost.service),
      () => shake(bare, handshakes, cost.floor),
    );
    const throughput = await alternately(
      rounds,
      () => send(service, megabytes),
      () => send(bare, megabytes),
    );
    return {
      bench: 'reality',
      figures: {
        handshakes_per_second: perSecond,
        server_cpu_ms_per_handshake: beside(cost.service, cost.floor),
        megabytes_per_second: throughput,
        key_exchange_of_the_server_microseconds: keyExchanges(quick ? 20 : 200),
      },
    };
  } finally {
    await Promise.all([target.close(), floor.close(), listener.close()]);
  }
}

async function openAgent(port: number): Promise<Duplex> {
  const socket = connect({ host: '127.0.0.1', port, noDelay: true });
  await once(socket, 'connect');
  const publicKey = Buffer.from(x25519PairOf(privateKey).publicKey);
  const opened = await openReality(socket, { publicKey, shortId, serverName }, systemClock, 10_000);
  if (!opened.ok) throw new Error(opened.error);
  return opened.value;
}

async function openTls(port: number): Promise<Duplex> {
  const socket = connectTls({ host: '127.0.0.1', port, servername: serverName, rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  return socket;
}

/** @returns handshakes per second; adds the processor time of the server for one of them to `cost` */
async function shake({ child, open }: Measured, count: number, cost: number[]): Promise<number> {
  const before = await child.ask<State>('state');
  const began = performance.now();
  let left = count;
  const call = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      (await open()).destroy();
    }
  };
  await Promise.all(Array.from({ length: callers }, call));
  const seconds = (performance.now() - began) / 1000;
  const after = await child.ask<State>('state');
  cost.push((after.cpuMs - before.cpuMs) / count);
  return count / seconds;
}

/** @returns MiB per second that the server has read */
async function send({ child, open }: Measured, megabytes: number): Promise<number> {
  const stream = await open();
  const before = await child.ask<State>('state');
  const began = performance.now();
  const chunk = Buffer.alloc(64 * 1024);
  for (let sent = 0; sent < megabytes * MiB; sent += chunk.length)
    if (!stream.write(chunk)) await once(stream, 'drain');
  while ((await child.ask<State>('state')).bytes - before.bytes < megabytes * MiB)
    await new Promise((resolve) => setTimeout(resolve, 1));
  const seconds = (performance.now() - began) / 1000;
  stream.destroy();
  return megabytes / seconds;
}

function keyExchanges(count: number): Figure {
  const hello = readClientHello(buildBrowserHello(serverName, createClientShares()).bytes);
  if (hello === undefined) throw new Error('the hello does not parse');
  const time = (id: (typeof group)[keyof typeof group]): number => {
    const times = Array.from({ length: count }, () => {
      const began = performance.now();
      answerShare(id, hello);
      return (performance.now() - began) * 1000;
    });
    return rounded(median(times));
  };
  return { x25519: time(group.x25519), x25519_mlkem768: time(group.x25519MlKem768) };
}
