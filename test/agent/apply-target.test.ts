/** Applying snapshots to the data plane: all or nothing, and what is reported and rejected. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once, type EventEmitter } from 'node:events';
import { connect, type Server } from 'node:net';
import { describe, expect, it } from 'vitest';
import { createRuntime } from '../../src/agent/runtime.js';
import type { Gateway } from '../../src/agent/gateway.js';
import { ConfigApplyStatus, type RuntimeConfigSnapshot } from '../../src/gen/svc/control/v1/config.js';
import { TcpProxyMode, UdpMode } from '../../src/gen/svc/control/v1/rules.js';
import { OuterTransport, PayloadProtocol, SecurityLayer } from '../../src/gen/svc/control/v1/transport.js';
import { systemClock } from '../../src/kernel/clock.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { cluster, freePort, snapshot, tcpRule, tcpServer, udpRule } from '../support/snapshots.js';
import { tcpPeers } from '../support/tcp-peers.js';

const { closers, server } = tcpPeers();

function runtime(rejectUnsupported = true): Gateway {
  const made = createRuntime({ rejectUnsupported, logger: silentLogger, clock: systemClock });
  closers.push(() => made.close());
  return made;
}

const greeter = (text: string): Promise<string> => server((socket) => socket.end(text));

/** What a connection receives, or the code of its error. */
function fetchText(port: number, host = '127.0.0.1'): Promise<string> {
  return new Promise((resolve) => {
    const parts: Buffer[] = [];
    const socket = connect({ host, port });
    socket.on('data', (chunk: Buffer) => parts.push(chunk));
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? 'error'));
    socket.on('end', () => resolve(Buffer.concat(parts).toString()));
  });
}

/** Where Node tells of the sockets that it makes. */
const channels = ['net.server.socket', 'udp.socket'];

const listenersOf = (gateway: Gateway): string[] =>
  gateway.runtimeListeners().map((row) => `${row.transport} ${row.listenAddr}:${row.listenPort} ${row.state}`);

/** A connection to a listener that leads to an echo. */
async function echoing(port: number): Promise<{ says(text: string): Promise<void> }> {
  const socket = connect({ host: '127.0.0.1', port });
  closers.push(async () => void socket.destroy());
  const says = async (text: string): Promise<void> => {
    const answer = once(socket, 'data');
    socket.write(text);
    expect(String((await answer)[0])).toBe(text);
  };
  await says('hello');
  return { says };
}

/** Rules that the agent can run beside some that it cannot, one of them on the socket of one that it can. */
async function mixedSnapshot(generation: number, target: string) {
  const [faked, shared, dialling, plain] = [await freePort(), await freePort(), await freePort(), await freePort()];
  const overQuic = { quicReality: { publicKey: Buffer.alloc(32, 1), serverName: 'b.example', shortId: '' } };
  const outbound = {
    ...tcpRule(1, target).outbound!,
    ...overQuic,
    transportProfile: {
      payload: PayloadProtocol.TCP,
      outer: OuterTransport.QUIC,
      security: SecurityLayer.REALITY,
    },
  };
  const overFakeTcp = { ...udpRule(1, target).transportProfile!, outer: OuterTransport.FAKE_TCP };
  const mixed: RuntimeConfigSnapshot = snapshot(generation, {
    tcp: [
      tcpRule(shared, target, { serverNames: ['b.example'], outbound }, 'named'),
      tcpRule(shared, target, {}, 'fallback'),
      tcpRule(dialling, target, { outbound }, 'dialling'),
      tcpRule(plain, target, {}, 'plain'),
    ],
    udp: [udpRule(faked, target, { transportProfile: overFakeTcp }, 'faked')],
  });
  return { mixed, ports: { faked, shared, dialling, plain } };
}

describe('applying a snapshot', () => {
  it('is all or nothing: a port in use rejects the snapshot, and the whole old target keeps running', async () => {
    const target = await greeter('hello');
    const occupied = await tcpServer(() => undefined);
    closers.push(() => occupied.close());
    const [kept, removed, added] = [await freePort(), await freePort(), await freePort()];
    const gateway = runtime();
    await gateway.apply(snapshot(1, { tcp: [tcpRule(kept, target), tcpRule(removed, target)] }));
    const other = await greeter('other');
    const report = await gateway.apply(
      snapshot(2, {
        tcp: [
          tcpRule(kept, other),
          tcpRule(added, other),
          tcpRule(occupied.port, other, {
            origin: { resourceType: 'l4_chain', resourceId: 'c9', resourceName: 'nine', hopIndex: 1 },
          }),
        ],
      }),
    );
    expect(report).toMatchObject({ generation: 2n, status: ConfigApplyStatus.REJECTED });
    expect(report?.errors).toHaveLength(1);
    expect(report?.errors[0]).toMatchObject({
      resourceType: 'l4_chain',
      resourceId: 'c9',
      path: 'hops[1].listen_port',
    });
    expect(report?.errors[0]?.message).toContain('EADDRINUSE');
    expect(gateway.applied?.generation).toBe(1n);
    expect(await fetchText(kept)).toBe('hello');
    expect(await fetchText(removed)).toBe('hello');
    expect(await fetchText(added)).toBe('ECONNREFUSED');
    expect(listenersOf(gateway)).toEqual([`tcp 127.0.0.1:${kept} running`, `tcp 127.0.0.1:${removed} running`]);
  });

  it('blames listen_addr for an address that this machine does not have', async () => {
    const report = await runtime().apply(
      snapshot(1, { tcp: [tcpRule(await freePort(), '127.0.0.1:9', { listenAddr: '192.0.2.77' })] }),
    );
    expect(report?.errors[0]?.path).toBe('hops[0].listen_addr');
  });

  it('ignores a generation below the applied one and applies an equal one again', async () => {
    const [first, second] = [await freePort(), await freePort()];
    const gateway = runtime();
    await gateway.apply(snapshot(5, { tcp: [tcpRule(first, '127.0.0.1:9')] }));
    expect(await gateway.apply(snapshot(4, { tcp: [tcpRule(second, '127.0.0.1:9')] }))).toBeUndefined();
    expect(listenersOf(gateway)).toEqual([`tcp 127.0.0.1:${first} running`]);
    expect((await gateway.apply(snapshot(5, { tcp: [tcpRule(second, '127.0.0.1:9')] })))?.status).toBe(
      ConfigApplyStatus.APPLIED,
    );
    expect(listenersOf(gateway)).toEqual([`tcp 127.0.0.1:${second} running`]);
  });

  it('replaces a wildcard listener by one address of the same port, and restores it if the snapshot fails', async () => {
    const target = await greeter('hello');
    const port = await freePort();
    const gateway = runtime();
    const wild = tcpRule(port, target, { listenAddr: '0.0.0.0' });
    await gateway.apply(snapshot(1, { tcp: [wild] }));
    const failed = await gateway.apply(
      snapshot(2, { tcp: [tcpRule(port, target), tcpRule(await freePort(), target, { listenAddr: '192.0.2.77' })] }),
    );
    expect(failed?.status).toBe(ConfigApplyStatus.REJECTED);
    expect(listenersOf(gateway)).toEqual([`tcp 0.0.0.0:${port} running`]);
    expect(await fetchText(port)).toBe('hello');
    expect((await gateway.apply(snapshot(3, { tcp: [tcpRule(port, target)] })))?.errors).toEqual([]);
    expect(listenersOf(gateway)).toEqual([`tcp 127.0.0.1:${port} running`]);
    expect(await fetchText(port)).toBe('hello');
  });

  it('closes listeners that the new target does not have', async () => {
    const target = await greeter('hello');
    const port = await freePort();
    const gateway = runtime();
    await gateway.apply(snapshot(1, { tcp: [tcpRule(port, target)] }));
    await gateway.apply(snapshot(2));
    expect(listenersOf(gateway)).toEqual([]);
    expect(await fetchText(port)).toBe('ECONNREFUSED');
  });

  it('calls a listener failed only when its socket is gone, not after an error that it outlives', async () => {
    const [port, gateway, sockets] = [await freePort(), runtime(), new Set<EventEmitter>()];
    const found = (message: unknown): void => {
      const { socket } = message as { readonly socket: EventEmitter & { readonly server?: Server } };
      sockets.add(socket.server ?? socket);
    };
    for (const name of channels) subscribe(name, found);
    closers.push(async () => channels.forEach((name) => unsubscribe(name, found)));
    const target = await greeter('hello');
    await gateway.apply(snapshot(1, { tcp: [tcpRule(port, target)], udp: [udpRule(port, target)] }));
    expect(await fetchText(port)).toBe('hello');
    // Not those of this test.
    const own = [...sockets].filter((socket) => socket.listenerCount('error') > 0);
    for (const socket of own) socket.emit('error', new Error('accept EMFILE'));
    expect(own).toHaveLength(2);
    expect(listenersOf(gateway)).toEqual([`tcp 127.0.0.1:${port} running`, `udp 127.0.0.1:${port} running`]);
    expect(await fetchText(port)).toBe('hello');
  });

  it('lets live connections of a removed listener finish', async () => {
    const destination = await server((socket) => socket.pipe(socket));
    const port = await freePort();
    const gateway = runtime();
    await gateway.apply(snapshot(1, { tcp: [tcpRule(port, destination)] }));
    const open = await echoing(port);
    await gateway.apply(snapshot(2));
    await open.says('still');
  });

  it('checks every rule before it opens a socket', async () => {
    const port = await freePort();
    const gateway = runtime();
    const report = await gateway.apply(
      snapshot(1, {
        tcp: [
          tcpRule(port, '127.0.0.1:9'),
          tcpRule(await freePort(), 'cluster:none', {}, 'a'),
          tcpRule(await freePort(), 'no endpoint', {}, 'b'),
          tcpRule(70_000, '127.0.0.1:9', {}, 'c'),
          tcpRule(await freePort(), '127.0.0.1:9', { listenAddr: 'localhost' }, 'd'),
          tcpRule(port, '127.0.0.1:9', {}, 'e'),
        ],
        udp: [udpRule(await freePort(), '127.0.0.1:9', { mode: UdpMode.ENC }, 'f')],
        clusters: [cluster('u', ['nonsense'])],
      }),
    );
    expect(report?.errors.map(({ resourceId, path }) => `${resourceId} ${path}`).toSorted()).toEqual([
      'a target.upstream_id',
      'b target',
      'c hops[0].listen_port',
      'd hops[0].listen_addr',
      'e hops[0].listen_port',
      'f hops[0].credential_id',
      'u endpoint',
    ]);
    expect(listenersOf(gateway)).toEqual([]);
    expect(await fetchText(port)).toBe('ECONNREFUSED');
  });

  it('checks thousands of rules in pieces, between which other work runs', async () => {
    // One socket for all, so the snapshot is rejected, and nothing else in an apply waits.
    const rules = Array.from({ length: 5_000 }, (_, index) => tcpRule(1_000, '127.0.0.1:9', {}, `c${index}`));
    const gateway = runtime();
    let [turns, over] = [0, false];
    const count = (): void => {
      turns += 1;
      if (!over) setImmediate(count);
    };
    setImmediate(count);
    const report = await gateway.apply(snapshot(1, { tcp: rules }));
    over = true;
    expect(report?.status).toBe(ConfigApplyStatus.REJECTED);
    expect(turns).toBeGreaterThanOrEqual(10);
  });

  it('rejects a snapshot with rules that it cannot run, each with its resource and field, and serves on what it served', async () => {
    const echo = await server((socket) => socket.pipe(socket));
    const { mixed, ports } = await mixedSnapshot(2, await greeter('hello'));
    const gateway = runtime();
    await gateway.apply(snapshot(1, { tcp: [tcpRule(ports.shared, echo, {}, 'fallback')] }));
    const open = await echoing(ports.shared);
    const report = await gateway.apply(mixed);
    expect(report?.status).toBe(ConfigApplyStatus.REJECTED);
    expect(report?.errors.map(({ resourceId, path }) => `${resourceId} ${path}`)).toEqual([
      'named hops[1].outer',
      'dialling hops[1].outer',
      'faked hops[0].outer',
    ]);
    expect(gateway.applied?.generation).toBe(1n);
    expect(listenersOf(gateway)).toEqual([`tcp 127.0.0.1:${ports.shared} running`]);
    await open.says('still');
    await (await echoing(ports.shared)).says('anew');
    expect(await fetchText(ports.plain)).toBe('ECONNREFUSED');
  });

  it('blames the target for an upstream that it cannot dial, and says of an endpoint that it may be the target', async () => {
    const transportProfile = {
      payload: PayloadProtocol.TCP,
      outer: OuterTransport.QUIC,
      security: SecurityLayer.REALITY,
    };
    const access = { publicKey: Buffer.alloc(32, 1), serverName: 'b.example', shortId: '' };
    const dialling = async (next: string, quicReality: typeof access | undefined, id: string) => {
      const rule = tcpRule(await freePort(), next, {}, id);
      return { ...rule, outbound: { ...rule.outbound!, transportProfile, quicReality } };
    };
    const tcp = [
      await dialling('cluster:up', access, 'upstream'),
      await dialling('cluster:up', undefined, 'without a key'),
      await dialling('127.0.0.1:9', access, 'endpoint'),
    ];
    const report = await runtime().apply(snapshot(1, { tcp, clusters: [cluster('up', ['127.0.0.1:9'])] }));
    expect(report?.errors.map(({ resourceId, path }) => `${resourceId} ${path}`).toSorted()).toEqual([
      'endpoint hops[1].outer',
      'upstream target.upstream_id',
      'without a key target.upstream_id',
    ]);
    expect(report?.errors.find(({ resourceId }) => resourceId === 'endpoint')?.message).toContain('the target after');
  });

  it('leaves those rules out if configured to, reports their listeners as unsupported, and runs the rest', async () => {
    const { mixed, ports } = await mixedSnapshot(1, await greeter('hello'));
    const gateway = runtime(false);
    expect((await gateway.apply(mixed))?.errors).toEqual([]);
    expect(listenersOf(gateway)).toEqual([
      `tcp 127.0.0.1:${ports.shared} unsupported`,
      `tcp 127.0.0.1:${ports.dialling} unsupported`,
      `tcp 127.0.0.1:${ports.plain} running`,
      `tcp 127.0.0.1:${ports.faked} unsupported`,
    ]);
    expect(await fetchText(ports.shared)).toBe('ECONNREFUSED');
    expect(await fetchText(ports.plain)).toBe('hello');
  });

  it('rejects upstream TLS without a pin, TLS rules without a certificate and REALITY rules without a key', async () => {
    const target = '127.0.0.1:9';
    const report = await runtime().apply(
      snapshot(1, {
        tcp: [
          tcpRule(1001, target, { outbound: { ...tcpRule(1, target).outbound!, tls: true } }, 'a'),
          tcpRule(1002, target, { mode: TcpProxyMode.TLS, serverNames: ['x'], tlsCredentialId: 'gone' }, 'b'),
          tcpRule(1003, target, { mode: TcpProxyMode.REALITY, serverNames: ['x'] }, 'c'),
        ],
      }),
    );
    expect(report?.errors.map(({ resourceId, path }) => `${resourceId} ${path}`)).toEqual([
      'a target.tls',
      'b hops[0].credential_id',
      'c hops[0].credential_id',
    ]);
  });
});
