/** REALITY hops between agents: who gets in, what flows, what strangers meet, and sharing of a socket. */
import { once } from 'node:events';
import { type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { connect as connectTls, type TlsOptions } from 'node:tls';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { openReality } from '../../src/agent/reality/handshake.js';
import { relayLimits } from '../../src/agent/relays/limits.js';
import { createRuntime } from '../../src/agent/runtime.js';
import { systemClock } from '../../src/kernel/clock.js';
import { generateX25519 } from '../../src/kernel/crypto/crypto.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { applied } from '../support/agent-runtime.js';
import { createCertificate } from '../support/certificate.js';
import { eventually } from '../support/eventually.js';
import { startTlsTarget, targetName, type TlsTarget } from '../support/reality-fixture.js';
import { tcpPeers } from '../support/tcp-peers.js';
import {
  freePort,
  overReality,
  realityRule,
  snapshot,
  tcpRule,
  tcpServer,
  tlsRule,
  type RealityOfHop,
} from '../support/snapshots.js';

const { closers, runtime, server, client: tcpClient } = tcpPeers();
const times = { ...relayLimits };
let target: TlsTarget;
beforeAll(async () => void (target = await startTlsTarget({ ALPNProtocols: ['h2', 'http/1.1'] })));
afterAll(() => target.close());
beforeEach(() => void Object.assign(relayLimits, { realityProbeMs: 100 }));
afterEach(() => void Object.assign(relayLimits, times));

const echo = (): Promise<string> => server((socket) => socket.pipe(socket));
const says = (text: string): Promise<string> => server((socket) => socket.end(text));

const hopOf = (serverNames: readonly string[] = [targetName]): RealityOfHop => ({
  keys: generateX25519(),
  serverNames,
  targetPort: target.port,
});
async function dial(port: number): Promise<Socket> {
  const socket = tcpClient(port);
  await once(socket, 'connect');
  return socket;
}

/** Everything that comes until the end; `failed` if there is no regular end. */
async function readAll(stream: Duplex): Promise<string> {
  const parts: Buffer[] = [];
  let ended = false;
  stream.on('data', (bytes: Buffer) => parts.push(bytes));
  stream.on('end', () => (ended = true));
  stream.on('error', () => undefined);
  await eventually(() => ended || stream.destroyed).toBe(true);
  stream.end();
  return ended ? Buffer.concat(parts).toString() : 'failed';
}

/** What a client of TLS gets at a port: the common name of the certificate. */
async function certificateAt(port: number, servername: string): Promise<string> {
  const socket = connectTls({ host: '127.0.0.1', port, servername, rejectUnauthorized: false });
  closers.push(async () => void socket.destroy());
  await once(socket, 'secureConnect');
  return String(socket.getPeerCertificate().subject.CN);
}

async function enter(port: number, hop: RealityOfHop, name = hop.serverNames[0] ?? '', shortId = '0a') {
  const access = { publicKey: Buffer.from(hop.keys.publicKey), shortId, serverName: name };
  return openReality(await dial(port), access, systemClock, 15_000);
}

async function inside(port: number, hop: RealityOfHop, name?: string): Promise<Duplex> {
  const opened = await enter(port, hop, name);
  if (!opened.ok) throw new Error(opened.error);
  return opened.value;
}

describe('a REALITY hop', () => {
  it('carries a chain: bytes both ways, half-closes, and a server that speaks first', async () => {
    const [first, second] = [hopOf(), hopOf()];
    const [entry, spoken] = [await freePort(), await freePort()];
    const [middle, exit, greeting] = [await freePort(), await freePort(), await freePort()];
    const [edge, relay, last] = [runtime(), runtime(), runtime()];
    await applied(last, 1, {
      tcp: [realityRule(exit, await echo(), second), realityRule(greeting, await says('220 hello'), second)],
    });
    const onward = overReality(`127.0.0.1:${exit}`, second.keys.publicKey, targetName);
    await applied(relay, 1, { tcp: [{ ...realityRule(middle, '', first), ...onward }] });
    await applied(edge, 1, {
      tcp: [
        tcpRule(entry, '', overReality(`127.0.0.1:${middle}`, first.keys.publicKey, targetName)),
        tcpRule(spoken, '', overReality(`127.0.0.1:${greeting}`, second.keys.publicKey, targetName)),
      ],
    });
    const client = await dial(entry);
    const sent = Buffer.alloc(2_000_000, 'bytes through two hops of REALITY, ');
    client.end(sent);
    expect((await readAll(client)) === sent.toString()).toBe(true);
    expect(await readAll(await dial(spoken))).toBe('220 hello');
    await eventually(() => last.report().connections).toMatchObject({ accepted: 2n, active: 0n, failed: 0n });
    expect(relay.runtimeListeners()[0]?.routes).toEqual([
      expect.objectContaining({ security: 'reality', matchKind: 'reality', matchValue: targetName }),
    ]);
    expect(Number(edge.linkMetrics()[0]?.bytesOut)).toBeGreaterThanOrEqual(sent.length);
  });

  it('passes a reset on as a reset', async () => {
    const hop = hopOf();
    const [port, entry] = [await freePort(), await freePort()];
    const gateway = runtime();
    const breaking = await server((socket) => socket.once('data', () => socket.resetAndDestroy()));
    await applied(gateway, 1, {
      tcp: [
        realityRule(port, breaking, hop),
        tcpRule(entry, '', overReality(`127.0.0.1:${port}`, hop.keys.publicKey, targetName)),
      ],
    });
    const client = await dial(entry);
    client.write('x');
    expect(await readAll(client)).toBe('failed');
    await eventually(() => gateway.report().connections?.failed).toBe(2n);
  });

  it('resets its client when the next hop is killed, whose connections then end without close_notify', async () => {
    const hop = hopOf();
    const [port, entry] = [await freePort(), await freePort()];
    const gateway = runtime();
    const killed: Socket[] = [];
    const middle = await server((socket) => {
      const onward = tcpClient(port);
      killed.push(socket);
      socket.pipe(onward);
      onward.on('data', (bytes) => socket.write(bytes));
    });
    await applied(gateway, 1, {
      tcp: [
        realityRule(port, await echo(), hop),
        tcpRule(entry, '', overReality(middle, hop.keys.publicKey, targetName)),
      ],
    });
    const client = await dial(entry);
    client.write('x');
    expect(String((await once(client, 'data'))[0])).toBe('x');
    // As the kernel does for a process that is gone.
    for (const socket of killed) socket.end();
    expect(await readAll(client)).toBe('failed');
  });

  it('is the target to everybody else: another name, a wrong short id, no TLS at all, a client that ends at once', async () => {
    const hop = hopOf();
    const port = await freePort();
    const gateway = runtime();
    await applied(gateway, 1, { tcp: [realityRule(port, await echo(), hop)] });
    expect(await certificateAt(port, targetName)).toBe(targetName);
    expect(await certificateAt(port, 'else.example')).toBe(targetName);
    const refused = await enter(port, hop, targetName, 'ff');
    expect(refused).toMatchObject({ ok: false });
    const direct = await dial(target.port);
    const through = await dial(port);
    for (const socket of [direct, through]) socket.end('GET / HTTP/1.1\r\n\r\n');
    const [met, expected] = await Promise.all([readAll(through), readAll(direct)]);
    expect(met).toBe(expected);
    expect(gateway.report().connections?.active).toBe(0n);
    await eventually(() => gateway.runtimeListeners()[0]?.errorSessions).toBeGreaterThanOrEqual(4n);
    // Nobody who did not hold the key was relayed.
    expect(gateway.runtimeListeners()[0]).toMatchObject({ bytesIn: 0n, bytesOut: 0n });
  });

  it('is not entered by a replayed hello, nor by one of another clock', async () => {
    const hop = hopOf();
    const port = await freePort();
    await applied(runtime(), 1, { tcp: [realityRule(port, await echo(), hop)] });
    const access = { publicKey: Buffer.from(hop.keys.publicKey), shortId: '0a', serverName: targetName };
    for (const wrong of [-130_000, 130_000]) {
      const clock = { ...systemClock, now: () => Date.now() + wrong };
      expect(await openReality(await dial(port), access, clock, 15_000)).toMatchObject({ ok: false });
    }
    const clock = { ...systemClock, now: () => Date.now() + 100_000 };
    expect(await openReality(await dial(port), access, clock, 15_000)).toMatchObject({ ok: true });
  });

  it('resets its client if the next hop turns out to be the target, and says so', async () => {
    const [port, entry] = [await freePort(), await freePort()];
    const gateway = runtime();
    await applied(gateway, 1, {
      tcp: [
        realityRule(port, await echo(), hopOf()),
        tcpRule(entry, '', overReality(`127.0.0.1:${port}`, generateX25519().publicKey, targetName)),
      ],
    });
    expect(await readAll(await dial(entry))).toBe('failed');
    expect(gateway.report().connections).toMatchObject({ handshakeFailures: 1n });
  });

  it('shares a socket with other REALITY rules, TLS, names and RAW; each finds its own', async () => {
    const [one, two] = [hopOf(['one.example', targetName]), hopOf(['two.example'])];
    const port = await freePort();
    const gateway = runtime();
    const certificate = createCertificate('tls.example');
    const inner = await startTlsTarget();
    closers.push(() => inner.close());
    const rules = [
      realityRule(port, await says('one'), one, 'one'),
      realityRule(port, await says('two'), two, 'two'),
      tlsRule(port, await says('tls'), ['tls.example'], 'c', 'tls'),
      tcpRule(port, `127.0.0.1:${inner.port}`, { serverNames: ['*.named.example'] }, 'named'),
    ];
    const raw = tcpRule(port, await says('raw'), {}, 'raw');
    const of = { certificates: { c: certificate } };
    await applied(gateway, 1, { tcp: [...rules, raw], ...of });
    const eachItsOwn = async (): Promise<void> => {
      expect(await readAll(await inside(port, one, 'one.example'))).toBe('one');
      expect(await readAll(await inside(port, two))).toBe('two');
      expect(await certificateAt(port, 'tls.example')).toBe('tls.example');
      expect(await certificateAt(port, 'a.named.example')).toBe(targetName);
      // The key of one rule opens no name of the other.
      expect(await enter(port, { ...two, keys: one.keys })).toMatchObject({ ok: false });
    };
    await eachItsOwn();
    const plain = await dial(port);
    plain.write('GET');
    expect(await readAll(plain)).toBe('raw');
    expect(gateway.runtimeListeners()).toHaveLength(1);
    expect(gateway.runtimeListeners()[0]?.routes.map(({ matchKind }) => matchKind)).toEqual([
      'reality',
      'reality',
      'reality',
      'sni',
      'sni',
      'default',
    ]);
    // Without RAW, what is nobody's is the first REALITY rule's target's.
    await applied(gateway, 2, { tcp: rules, ...of });
    await eachItsOwn();
    expect(await certificateAt(port, 'nobody.example')).toBe(targetName);
    const [direct, through] = [await dial(target.port), await dial(port)];
    for (const socket of [direct, through]) socket.end('GET / HTTP/1.1\r\n\r\n');
    const [met, expected] = await Promise.all([readAll(through), readAll(direct)]);
    expect(met).toBe(expected);
  });

  it('keeps its connections when its key is replaced, and takes only the new one', async () => {
    const [old, fresh] = [hopOf(), hopOf()];
    const [port, target] = [await freePort(), await echo()];
    const gateway = runtime();
    await applied(gateway, 1, { tcp: [realityRule(port, target, old)] });
    const early = await inside(port, old);
    early.write('before');
    expect(String((await once(early, 'data'))[0])).toBe('before');
    await applied(gateway, 2, { tcp: [realityRule(port, target, fresh)] });
    expect(await enter(port, old)).toMatchObject({ ok: false });
    const late = await inside(port, fresh);
    for (const stream of [early, late]) {
      stream.write('after');
      expect(String((await once(stream, 'data'))[0])).toBe('after');
    }
  });

  it('takes clients on while its credential is edited, and none of them waits', async () => {
    const hop = hopOf();
    const [port, next] = [await freePort(), await echo()];
    const visitsBefore = target.accepted();
    let behindMs = 100_000;
    const clock = { ...systemClock, now: () => Date.now() - behindMs };
    const gateway = createRuntime({ rejectUnsupported: true, logger: silentLogger, clock });
    closers.push(() => gateway.close());
    const rule = realityRule(port, next, hop);
    const withIds = (...shortIds: string[]) => ({ ...rule, reality: { ...rule.reality!, shortIds } });
    await applied(gateway, 1, { tcp: [rule] });
    behindMs = 0;
    // By then every offer of protocols has been tried; from now on, learning anything takes longer than this test.
    await eventually(() => target.accepted()).toBeGreaterThanOrEqual(visitsBefore + 9);
    await eventually(() => target.open()).toBe(0);
    Object.assign(relayLimits, { realityProbeMs: 3_600_000 });
    await applied(gateway, 2, { tcp: [withIds('0a', '0b')] });
    expect(await enter(port, hop, targetName, '0b')).toMatchObject({ ok: true });
    expect(await enter(port, hop)).toMatchObject({ ok: true });
    // What was accepted before an edit is remembered after it, so a client whose clock is slow gets in too.
    const late = { ...systemClock, now: () => Date.now() - 60_000 };
    const access = { publicKey: Buffer.from(hop.keys.publicKey), shortId: '0b', serverName: targetName };
    expect(await openReality(await dial(port), access, late, 15_000)).toMatchObject({ ok: true });
    await applied(gateway, 3, { tcp: [withIds('0b')] });
    expect(await enter(port, hop, targetName, '0a')).toMatchObject({ ok: false });
    // Another target: until it is known, the hop is what it was.
    const other = await startTlsTarget();
    closers.push(() => other.close());
    await applied(gateway, 4, {
      tcp: [{ ...withIds('0b'), reality: { ...withIds('0b').reality, targetPort: other.port } }],
    });
    expect(await enter(port, hop, targetName, '0b')).toMatchObject({ ok: true });
  });

  it('takes a client whose hello comes after an edit of its credential', async () => {
    const hop = hopOf();
    const port = await freePort();
    const gateway = runtime();
    const rule = realityRule(port, await echo(), hop);
    const raw = tcpRule(port, await says('raw'), {}, 'raw');
    await applied(gateway, 1, { tcp: [rule, raw] });
    const early = await dial(port);
    // Connections are accepted in their order.
    const later = await dial(port);
    later.write('GET');
    expect(await readAll(later)).toBe('raw');
    await applied(gateway, 2, { tcp: [{ ...rule, reality: { ...rule.reality!, shortIds: ['0a', '0b'] } }, raw] });
    const access = { publicKey: Buffer.from(hop.keys.publicKey), shortId: '0a', serverName: targetName };
    expect(await openReality(early, access, systemClock, 15_000)).toMatchObject({ ok: true });
  });

  it('keeps strangers joined to the target when its credential is edited', async () => {
    const hop = hopOf();
    const port = await freePort();
    const gateway = runtime();
    const rule = realityRule(port, await echo(), hop);
    await applied(gateway, 1, { tcp: [rule] });
    const stranger = connectTls({ host: '127.0.0.1', port, servername: targetName, rejectUnauthorized: false });
    closers.push(async () => void stranger.destroy());
    stranger.on('error', () => undefined);
    await once(stranger, 'secureConnect');
    await applied(gateway, 2, { tcp: [{ ...rule, reality: { ...rule.reality!, shortIds: ['0b'] } }] });
    // Long after a handshake of the former hop would have ended.
    const edited = performance.now();
    await eventually(() => stranger.destroyed || performance.now() - edited > 11_000).toBe(true);
    expect(stranger.destroyed).toBe(false);
    stranger.write('still here');
    expect(String((await once(stranger, 'data'))[0])).toBe('target: still here');
  });

  it('goes over to another target as soon as that has answered', async () => {
    const hop = hopOf();
    const [port, next] = [await freePort(), await echo()];
    const gateway = runtime();
    await applied(gateway, 1, { tcp: [realityRule(port, next, hop)] });
    await inside(port, hop);
    const other = await startTlsTarget({ ALPNProtocols: ['h2'] });
    closers.push(() => other.close());
    await applied(gateway, 2, { tcp: [realityRule(port, next, { ...hop, targetPort: other.port })] });
    const met = async (): Promise<boolean> => {
      const before = other.accepted();
      await certificateAt(port, targetName);
      return other.accepted() > before;
    };
    await expect.poll(met, { timeout: 20_000 }).toBe(true);
    await inside(port, hop);
  });

  it('says of its routes whether its target can be reached, as long as that lasts', async () => {
    const [hop, dead] = [hopOf(), await freePort()];
    const [port, next] = [await freePort(), await echo()];
    const gateway = runtime();
    let changes = 0;
    gateway.watch({ onUpstreams: () => undefined, onRoutes: () => (changes += 1) });
    const [one, two] = [{ ...hop, targetPort: dead }, hopOf(['two.example'])];
    await applied(gateway, 1, { tcp: [realityRule(port, next, one, 'one'), realityRule(port, next, two, 'two')] });
    const states = () =>
      gateway.runtimeListeners().map(({ state, routes }) => [state, ...routes.map((route) => route.state)]);
    await eventually(states).toEqual([['running', 'target_unreachable', '']]);
    expect(changes).toBe(1);
    const revived = await startTlsTarget({}, dead);
    await inside(port, one);
    expect(states()).toEqual([['running', '', '']]);
    expect(changes).toBe(2);
    // If it dies again, the client that finds it dead shows that.
    await revived.close();
    expect(await enter(port, one)).toMatchObject({ ok: false });
    await eventually(states).toEqual([['running', 'target_unreachable', '']]);
  });

  it.each<[string, TlsOptions | 'no TLS']>([
    ['speaks no TLS', 'no TLS'],
    ['has no TLS 1.3', { maxVersion: 'TLSv1.2' }],
    ['agrees on no group that clients offer', { ecdhCurve: 'P-384' }],
  ])('says that its target %s', async (_what, options) => {
    const made =
      options === 'no TLS' ? await tcpServer((socket) => socket.end('220 hello\r\n')) : await startTlsTarget(options);
    closers.push(() => made.close());
    const port = await freePort();
    const gateway = runtime();
    await applied(gateway, 1, { tcp: [realityRule(port, await echo(), { ...hopOf(), targetPort: made.port })] });
    await eventually(() => gateway.runtimeListeners()[0]?.routes[0]?.state).toBe('target_unusable');
    expect(gateway.runtimeListeners()[0]?.state).toBe('running');
  });

  it('is named when its key, short ids or target cannot be used', async () => {
    const rule = realityRule(await freePort(), '127.0.0.1:9', hopOf(), 'c');
    const broken = { ...rule.reality!, shortIds: ['xyz'], targetPort: 0 };
    const report = await runtime().apply(snapshot(1, { tcp: [{ ...rule, reality: broken }] }));
    expect(report?.errors.map(({ path, message }) => `${path}: ${message}`)).toEqual([
      'hops[0].credential_id: expected a camouflage target host and port',
      'hops[0].credential_id: expected short ids of an even number of at most 16 hexadecimal digits',
    ]);
  });
});
