/**
 * A mirrored connection and its connection to the target: whichever ends, by itself or because the listener closes it, ends
 * the other one, whatever is awaited at that moment. The target is a TCP server whose sockets the test holds.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openReality } from '../../src/agent/reality/handshake.js';
import { splice } from '../../src/transport/listener/reality/splice.js';
import type { RealitySettings } from '../../src/transport/listener/reality/settings.js';
import { eventually } from '../support/eventually.js';
import { startPlainTarget, type PlainTarget } from '../support/plain-target.js';
import {
  startRealityFixture,
  startTlsTarget,
  targetName,
  type RealityFixture,
  type TlsTarget,
} from '../support/reality-fixture.js';

let target: PlainTarget;
let fixture: RealityFixture;
afterEach(async () => {
  await fixture.close();
  await target.close();
});

/** The service's own visits have no part here. */
const noVisits: Partial<RealitySettings> = { serverNames: [] };

async function start(serve?: (socket: Socket) => void, settings: Partial<RealitySettings> = {}): Promise<void> {
  target = await startPlainTarget(serve);
  fixture = await startRealityFixture(target.port, { ...noVisits, ...settings });
}

/** A client, and the target's side of its connection. Both are read, so that an end is noticed. */
async function join(): Promise<{ readonly client: Socket; readonly behind: Socket }> {
  const before = target.sockets.length;
  const client = await fixture.dial();
  await eventually(() => target.sockets.length).toBe(before + 1);
  const behind = target.sockets[before]!;
  return { client: client.resume(), behind: behind.resume() };
}

const openConnections = (): { readonly mirrored: number; readonly targets: number } => {
  const { open, targetConnections } = fixture.listener.listener.stats();
  return { mirrored: open.mirrored, targets: targetConnections };
};

/** A connection counts as silent from the first look that finds no new bytes, so time goes on until that has come. */
async function silentForTooLong(): Promise<void> {
  await eventually(() => {
    fixture.listener.clock.advance(121_000);
    return openConnections();
  }).toEqual({ mirrored: 0, targets: 0 });
}

const tls = Buffer.of(22, 3, 1);

describe.each<[string, (client: Socket, behind: Socket) => Promise<unknown>]>([
  ['silent', async () => undefined],
  ['in the middle of a ClientHello', async (client, behind) => (client.write(tls), await once(behind, 'data'))],
  ['joined to the target', async (client, behind) => (client.write('GET /'), await once(behind, 'data'))],
  ['half-closed', async (client, behind) => (client.end('GET /'), await once(behind, 'end'))],
  ['half-closed by the target', async (client, behind) => (behind.end('bye'), await once(client, 'end'))],
  ['half-closed without a word', async (client, behind) => (client.end(), await once(behind, 'end'))],
])('a connection that is %s', (_state, reach) => {
  async function reached(): Promise<{ readonly client: Socket; readonly behind: Socket }> {
    // One is as many as there may be, so it makes room.
    await start(undefined, { mirrored: 1 });
    const both = await join();
    await reach(both.client, both.behind);
    expect(openConnections()).toEqual({ mirrored: 1, targets: 1 });
    return both;
  }
  /** A socket that nobody reads does not tell its end otherwise. */
  const isOver = (socket: Socket): boolean => socket.readableEnded || socket.destroyed;

  test('ends the target’s side when the listener closes it', async () => {
    const { client, behind } = await reached();
    await silentForTooLong();
    await eventually(() => isOver(client) && isOver(behind)).toBe(true);
  });

  test('ends the target’s side when the client resets it', async () => {
    const { client, behind } = await reached();
    client.resetAndDestroy();
    // After an end, only a write notices a reset.
    if (behind.writable) behind.write('more');
    await eventually(openConnections).toEqual({ mirrored: 0, targets: 0 });
    await eventually(() => isOver(behind)).toBe(true);
  });

  test('is ended when the target resets its side', async () => {
    const { client, behind } = await reached();
    behind.resetAndDestroy();
    if (client.writable) client.write('more');
    await eventually(openConnections).toEqual({ mirrored: 0, targets: 0 });
    await eventually(() => isOver(client)).toBe(true);
  });

  test('does not hold up the end of the listener', async () => {
    const { behind } = await reached();
    await fixture.listener.listener.close(60_000);
    expect(openConnections()).toEqual({ mirrored: 0, targets: 0 });
    expect(fixture.listener.refusals).toEqual([]);
    await eventually(() => isOver(behind)).toBe(true);
  });
});

test('above the bound the oldest mirrored connection makes room, with its side at the target', async () => {
  await start(undefined, { mirrored: 3 });
  const joined = [];
  for (let number = 0; number < 10; number += 1) joined.push(await join());
  await eventually(openConnections).toEqual({ mirrored: 3, targets: 3 });
  await eventually(() => target.sockets.filter(({ readableEnded }) => !readableEnded).length).toBe(3);
  expect(joined.map(({ behind }) => behind.readableEnded)).toEqual([...Array(7).fill(true), false, false, false]);
});

test('a client that never reads is closed with the target’s side, and what it has left unread with it', async () => {
  const chunk = Buffer.alloc(64 * 1024);
  await start((socket) => {
    const fill = (): void => {
      while (socket.writable && socket.write(chunk));
    };
    socket.on('drain', fill);
    fill();
  });
  const client = await fixture.dial();
  client.pause().end();
  await eventually(openConnections).toEqual({ mirrored: 1, targets: 1 });
  await silentForTooLong();
  await eventually(() => target.sockets[0]?.destroyed).toBe(true);
});

test('a client that ends at once meets the end of the target as soon as at the target itself', async () => {
  // As most servers do, it ends when its client has ended.
  await start((socket) => socket.resume().on('end', () => socket.end()));
  for (let number = 0; number < 20; number += 1) {
    const client = await fixture.dial();
    client.end();
    await once(client.resume(), 'close');
  }
  await eventually(openConnections).toEqual({ mirrored: 0, targets: 0 });
});

describe('an agent', () => {
  let real: TlsTarget;
  /** The service's own visits, which are not answered: three for each of three offers of protocols. */
  let visits: Socket[];
  beforeEach(async () => {
    real = await startTlsTarget();
    visits = [];
  });
  afterEach(() => real.close());

  /** @param serve is given each connection but the visits */
  async function startVisited(serve: (socket: Socket) => void): Promise<void> {
    const settings = { serverNames: [targetName], probeMs: 60_000 };
    await start((socket) => (visits.length < 9 ? visits.push(socket) : serve(socket)), settings);
    await eventually(() => visits.length).toBe(9);
  }
  const endVisits = (): void => visits.forEach((visit) => visit.destroy());

  /** Its handshake is over, but it is handed over only after the visits: until then, what the target sends is not known. */
  async function startFinished(): Promise<Socket> {
    await startVisited((socket) => {
      const onward = connect({ host: '127.0.0.1', port: real.port });
      onward.on('error', () => undefined);
      socket.pipe(onward).pipe(socket);
    });
    const client = await fixture.dial();
    const opened = await openReality(client, fixture.access, fixture.listener.clock, 5_000);
    expect(opened.ok).toBe(true);
    // What was sent before has arrived once another client's connection is served.
    const other = await join();
    other.client.destroy();
    other.behind.destroy();
    await eventually(openConnections).toEqual({ mirrored: 1, targets: 9 });
    return client;
  }

  test('that leaves before the target has answered takes the target’s side with it, and the target is not blamed', async () => {
    await startVisited(() => undefined);
    const { client, behind } = await join();
    client.write(fixture.hello());
    await once(behind, 'data');
    client.resetAndDestroy();
    await eventually(openConnections).toEqual({ mirrored: 0, targets: 9 });
    await eventually(() => behind.readableEnded || behind.destroyed).toBe(true);
    expect(fixture.listener.refusals).toEqual([]);
  });

  test('that does not finish is closed by the target’s clock, and its side at the target is open until then', async () => {
    const behind: Socket[] = [];
    await startVisited((socket) => {
      behind.push(socket);
      const onward = connect({ host: '127.0.0.1', port: real.port });
      onward.on('error', () => undefined);
      socket.pipe(onward).pipe(socket);
    });
    const client = await fixture.dial();
    const heard: Buffer[] = [];
    client.on('data', (bytes: Buffer) => heard.push(bytes));
    client.write(fixture.hello());
    await eventually(() => heard.length).toBeGreaterThan(0);
    // Longer than an agent's connection may be without a session.
    fixture.listener.clock.advance(30_000);
    const [other] = [await join()];
    other.client.destroy();
    expect([client.readableEnded, behind[0]!.destroyed]).toEqual([false, false]);
    behind[0]!.end();
    await once(client, 'end');
    await eventually(() => fixture.listener.listener.stats().met).toMatchObject({ agent: 0, unfinished: 1 });
  });

  test('that leaves before it is handed over is not', async () => {
    const client = await startFinished();
    client.resetAndDestroy();
    await eventually(openConnections).toEqual({ mirrored: 0, targets: 9 });
    endVisits();
    await eventually(() => fixture.listener.listener.stats().met).toMatchObject({ agent: 0, unfinished: 1 });
    expect(fixture.listener.accepted).toEqual([]);
  });

  test('that ends its side before it is handed over is noticed', async () => {
    const client = await startFinished();
    client.end();
    // Its end has arrived before the visits end.
    (await join()).client.destroy();
    endVisits();
    await eventually(() => fixture.listener.accepted.length).toBe(1);
    // Without close_notify it is no regular end.
    const stream = fixture.listener.accepted[0]!.stream.resume();
    await eventually(() => stream.destroyed).toBe(true);
  });
});

describe('while the target is dialled', () => {
  let frozen: ChildProcess;
  afterEach(() => {
    frozen.kill('SIGKILL');
  });

  /** A server whose process is stopped and whose queue of connections is full: a dial gets no answer. */
  async function startFrozen(): Promise<void> {
    frozen = spawn(process.execPath, [
      '-e',
      `require('net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, function () { console.log(this.address().port) })`,
    ]);
    const [port] = (await once(frozen.stdout!, 'data')) as [Buffer];
    frozen.kill('SIGSTOP');
    target = await startPlainTarget();
    fixture = await startRealityFixture(Number(port.toString()), noVisits);
    // The queue takes one more than its length.
    for (let number = 0; number < 2; number += 1) await fixture.dial(Number(port.toString()));
  }

  test('a client that leaves takes the dial with it, and is not taken for a target out of reach', async () => {
    await startFrozen();
    const client = await fixture.dial();
    await eventually(openConnections).toEqual({ mirrored: 1, targets: 1 });
    client.resetAndDestroy();
    // A dial gives up by itself after five seconds.
    await expect.poll(openConnections, { timeout: 4_500, interval: 10 }).toEqual({ mirrored: 0, targets: 0 });
    expect(fixture.listener.refusals).toEqual([]);
  });

  test('the end of the listener ends the dial', async () => {
    await startFrozen();
    await fixture.dial();
    await eventually(openConnections).toEqual({ mirrored: 1, targets: 1 });
    await fixture.listener.listener.close(60_000);
    expect(openConnections()).toEqual({ mirrored: 0, targets: 0 });
    expect(fixture.listener.refusals).toEqual([]);
  });
});

test('a connection that fails in the moment in which its end was passed on closes the other one', async () => {
  await start();
  const dial = (): Socket => connect({ port: target.port, host: '127.0.0.1', allowHalfOpen: true });
  const [client, server] = [dial(), dial()];
  await Promise.all([once(client, 'connect'), once(server, 'connect')]);
  void splice(client, server);
  client.once('end', () => client.destroy(Object.assign(new Error('reset'), { code: 'ECONNRESET' })));
  const closed = once(server, 'close');
  target.sockets.find(({ remotePort }) => remotePort === client.localPort)?.end();
  await closed;
});
