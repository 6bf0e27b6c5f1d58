/**
 * The listener with REALITY, before a real TLS server, with the agent's own client: who is let in, and what everybody else
 * meets (`docs/contract/agent-protocol.md#the-listener`).
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { openReality } from '../../src/agent/reality/handshake.js';
import { generateX25519 } from '../../src/kernel/crypto/crypto.js';
import { h2cPreface } from '../../src/transport/listener/sniff.js';
import { frame, FrameType, opening } from '../../scripts/stack/http2-frames.js';
import { GuardedStream } from '../../src/transport/agent/guarded-stream.js';
import { eventually } from '../support/eventually.js';
import { proxyHeader } from '../support/proxy-header.js';
import {
  startRealityFixture,
  startTlsTarget,
  targetName,
  type RealityFixture,
  type TlsTarget,
} from '../support/reality-fixture.js';
import type { RealitySettings } from '../../src/transport/listener/reality/settings.js';

let target: TlsTarget;
let reality: RealityFixture;

beforeAll(async () => {
  target = await startTlsTarget();
  reality = await startRealityFixture(target.port);
});
afterAll(async () => {
  await reality.close();
  await target.close();
});
afterEach(() => {
  reality.listener.refusals.length = 0;
});

/** Everything that a socket reads until it ends. */
async function untilEnd(socket: Socket): Promise<Buffer> {
  const parts: Buffer[] = [];
  socket.on('data', (bytes: Buffer) => parts.push(bytes));
  await once(socket, 'end');
  return Buffer.concat(parts);
}

describe('an agent', () => {
  test('is handed over, and its bytes pass both ways', async () => {
    const { stream, connection } = await reality.agent();
    const bytes = randomBytes(1_000_000);
    connection.stream.pipe(connection.stream);
    stream.write(bytes);
    const echoed: Buffer[] = [];
    stream.on('data', (chunk: Buffer) => echoed.push(chunk));
    await eventually(() => echoed.reduce((sum, { length }) => sum + length, 0)).toBe(bytes.length);
    expect(Buffer.concat(echoed).equals(bytes)).toBe(true);
    stream.end();
    await once(stream, 'close');
    await eventually(() => connection.closed).toBe(true);
  });

  test('that has no session may send no more inside REALITY than in the clear', async () => {
    const { stream, connection } = await reality.agent();
    const guarded = new GuardedStream(connection, () => true);
    guarded.resume();
    stream.write(Buffer.concat([opening, frame(FrameType.headers, 0, 1, Buffer.alloc(8_193)).subarray(0, 9)]));
    await eventually(() => connection.closed).toBe(true);
    expect(reality.listener.listener.stats().closed.costly).toBe(1);
  });

  test('speaks first: what the service says is held back until then', async () => {
    const { stream, connection } = await reality.agent();
    let heard = '';
    stream.on('data', (bytes: Buffer) => (heard += bytes.toString()));
    let written = false;
    connection.stream.write('settings', () => (written = true));
    connection.stream.resume();
    // What is on its way has arrived once another agent is connected.
    await reality.agent();
    expect([heard, written]).toEqual(['', false]);
    stream.write('hello');
    await eventually(() => heard).toBe('settings');
  });

  test('whose hello is older than the service meets the target: it may have been seen before', async () => {
    const restarted = await startRealityFixture(target.port);
    try {
      const { clock, refusals } = restarted.listener;
      const before = { now: () => clock.now() - 30_000, monotonic: () => clock.monotonic() };
      const opened = await openReality(await restarted.dial(), restarted.access, before, 5_000);
      expect(opened.ok).toBe(false);
      expect(refusals.map(({ reason }) => reason)).toEqual(['reality_replayed']);
    } finally {
      await restarted.close();
    }
  });

  test('is let in when the clock of the service was an hour ahead at its start', async () => {
    const restarted = await startRealityFixture(target.port);
    try {
      const { clock } = restarted.listener;
      clock.jump(-3_600_000);
      const opened = await openReality(await restarted.dial(), restarted.access, clock, 5_000);
      expect(opened.ok).toBe(true);
    } finally {
      await restarted.close();
    }
  });

  test('has its address, and the forced close is that of the socket', async () => {
    const { stream, connection } = await reality.agent();
    expect(connection.remoteAddress).toBe('127.0.0.1');
    stream.resume();
    connection.destroy();
    await eventually(() => stream.destroyed).toBe(true);
  });

  test('counts as a connection without a session, and is closed when it opens none', async () => {
    const { stream, connection } = await reality.agent();
    stream.resume();
    reality.listener.clock.advance(10_001);
    await eventually(() => stream.destroyed).toBe(true);
    await eventually(() => connection.closed).toBe(true);
  });

  test.each([
    ['a wrong public key', { publicKey: Buffer.from(generateX25519().publicKey) }, []],
    ['a wrong short id', { shortId: 'fe' }, ['reality_short_id']],
    ['a server name that is not listed', { serverName: 'other.example' }, ['reality_server_name']],
  ])('with %s meets the target', async (_what, wrong, noted) => {
    const before = reality.listener.accepted.length;
    const opened = await reality.open(wrong);
    expect(opened).toMatchObject({
      ok: false,
      error: expect.stringContaining('neither the certificate of the service'),
    });
    expect(reality.listener.accepted.length).toBe(before);
    expect(reality.listener.refusals.map(({ reason }) => reason)).toEqual(noted);
  });

  test.each([-62_000, 62_000])('whose clock differs by %i ms meets the target', async (difference) => {
    const { clock } = reality.listener;
    const skewed = { now: () => clock.now() + difference, monotonic: () => clock.monotonic() };
    const opened = await openReality(await reality.dial(), reality.access, skewed, 5_000);
    expect(opened.ok).toBe(false);
    expect(reality.listener.refusals.map(({ reason }) => reason)).toEqual(['reality_clock']);
  });

  test('whose hello is repeated by somebody else: the target answers the repetition', async () => {
    const before = reality.listener.accepted.length;
    const sent: Buffer[] = [];
    const socket = await reality.dial();
    const { write } = socket;
    socket.write = ((bytes: Buffer, ...rest: never[]) => {
      sent.push(bytes);
      return write.call(socket, bytes, ...rest);
    }) as typeof socket.write;
    const opened = await openReality(socket, reality.access, reality.listener.clock, 5_000);
    expect(opened.ok).toBe(true);
    await eventually(() => reality.listener.accepted.length).toBe(before + 1);
    const prober = await reality.dial();
    prober.write(sent[0] ?? Buffer.alloc(0));
    await once(prober, 'data');
    await eventually(() => reality.listener.refusals.map(({ reason }) => reason)).toEqual(['reality_replayed']);
    expect(reality.listener.accepted.length).toBe(before + 1);
    prober.destroy();
  });

  test('whose hello comes byte by byte is let in', async () => {
    const socket = await reality.dial();
    const { write } = socket;
    let hello = true;
    socket.write = ((bytes: Buffer, ...rest: never[]) => {
      if (!hello) return write.call(socket, bytes, ...rest);
      hello = false;
      for (const byte of bytes) write.call(socket, Buffer.of(byte));
      return true;
    }) as typeof socket.write;
    const opened = await openReality(socket, reality.access, reality.listener.clock, 5_000);
    expect(opened.ok).toBe(true);
  });
});

describe('a stranger', () => {
  test('that speaks TLS talks with the target', async () => {
    const socket = connectTls({
      host: '127.0.0.1',
      port: reality.port,
      servername: targetName,
      ca: target.certificate,
    });
    await once(socket, 'secureConnect');
    expect(socket.authorized).toBe(true);
    socket.write('hello');
    const [answer] = (await once(socket, 'data')) as [Buffer];
    expect(answer.toString()).toBe('target: hello');
    socket.destroy();
  });

  test.each([
    ['the preface of h2c', Buffer.from(h2cPreface)],
    ['junk', Buffer.from('GET / HTTP/1.1\r\n\r\n')],
    ['a record that is too long', Buffer.of(22, 3, 1, 255, 255, 1)],
    ['an alert', Buffer.of(21, 3, 1, 0, 2, 2, 40)],
  ])('that sends %s reads what the target answers, byte for byte', async (_what, bytes) => {
    const answers = await Promise.all(
      [reality.port, target.port].map(async (port) => {
        const socket = await reality.dial(port);
        socket.write(bytes);
        const answer = await untilEnd(socket);
        socket.destroy();
        return answer.toString('hex');
      }),
    );
    expect(answers[0]).toBe(answers[1]);
    expect(reality.listener.refusals).toEqual([]);
  });
});

describe('with a target that is no TLS server', () => {
  /** What a server of its own sees and says. */
  async function withServer(
    serve: (socket: Socket) => void,
    run: (fixture: RealityFixture) => Promise<void>,
    settings: Partial<RealitySettings> = {},
  ): Promise<void> {
    const sockets: Socket[] = [];
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      sockets.push(socket);
      socket.on('error', () => undefined);
      serve(socket);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const fixture = await startRealityFixture((server.address() as AddressInfo).port, settings);
    try {
      await run(fixture);
    } finally {
      await fixture.close();
      for (const socket of sockets) socket.destroy();
      server.close();
    }
  }

  test('the end of one direction is passed on, and the other stays open', async () => {
    const serve = (socket: Socket): void => {
      const parts: Buffer[] = [];
      socket.on('data', (bytes: Buffer) => parts.push(bytes));
      socket.on('end', () => socket.end(Buffer.concat([Buffer.from('got '), ...parts])));
    };
    await withServer(serve, async (fixture) => {
      const socket = await fixture.dial();
      socket.end('all of it');
      expect((await untilEnd(socket)).toString()).toBe('got all of it');
    });
  });

  test('a silent client is joined to the target, which may speak first', async () => {
    await withServer(
      (socket) => socket.write('220 ready\r\n'),
      async (fixture) => {
        const socket = await fixture.dial();
        const [greeting] = (await once(socket, 'data')) as [Buffer];
        expect(greeting.toString()).toBe('220 ready\r\n');
        // Only the target may lose patience.
        fixture.listener.clock.advance(30_000);
        expect(socket.destroyed).toBe(false);
        expect(fixture.listener.listener.stats().open).toMatchObject({ mirrored: 1, without_session: 0 });
      },
    );
  });

  test('a reset by the target reaches the client as one', async () => {
    await withServer(
      (socket) => socket.once('data', () => socket.resetAndDestroy()),
      async (fixture) => {
        const socket = await fixture.dial();
        const failed = once(socket, 'error');
        socket.on('data', () => undefined);
        socket.write('x');
        const [error] = (await failed) as [NodeJS.ErrnoException];
        expect(error.code).toBe('ECONNRESET');
      },
    );
  });

  test('an agent gets what the target says, because its answer cannot be taken over', async () => {
    await withServer(
      (socket) => socket.once('data', () => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')),
      async (fixture) => {
        const opened = await fixture.open();
        expect(opened).toEqual({ ok: false, error: 'the answer is not TLS 1.3' });
        expect(fixture.listener.refusals.map(({ reason }) => reason)).toEqual(['reality_unusable_target']);
      },
    );
  });

  test('a connection that is silent stays as long as the target lets it, unless there are many', async () => {
    await withServer(
      () => undefined,
      async (fixture) => {
        const mirrored = (): number => fixture.listener.listener.stats().open.mirrored;
        const first = await fixture.dial();
        await eventually(mirrored).toBe(1);
        const ended = once(first.resume(), 'end');
        // Two of four are not many. If the listener closed one, that would show within a second.
        await fixture.dial();
        await eventually(mirrored).toBe(2);
        fixture.listener.clock.advance(700_000);
        await new Promise((resolve) => setTimeout(resolve, 1_000));
        expect(mirrored()).toBe(2);
        await fixture.dial();
        await eventually(() => {
          fixture.listener.clock.advance(121_000);
          return mirrored();
        }).toBeLessThan(3);
        await ended;
        expect(fixture.listener.refusals).toEqual([]);
      },
      { mirrored: 4 },
    );
  });
});

test('without a target the connection is closed, as it would be at a host that is down', async () => {
  const nobody = createServer().listen(0, '127.0.0.1');
  await once(nobody, 'listening');
  const { port } = nobody.address() as AddressInfo;
  nobody.close();
  const fixture = await startRealityFixture(port);
  const socket = await fixture.dial();
  expect((await untilEnd(socket)).length).toBe(0);
  await eventually(() => fixture.listener.refusals.map(({ reason }) => reason)).toEqual(['connection_no_target']);
  await fixture.close();
});

describe('with h2c admitted beside', () => {
  test('the preface is handed over, and everything else meets the target', async () => {
    const fixture = await startRealityFixture(target.port, { allowH2c: true });
    const plain = await fixture.dial();
    plain.write(h2cPreface);
    await eventually(() => fixture.listener.accepted.length).toBe(1);
    const { stream } = await fixture.agent();
    expect(stream.destroyed).toBe(false);
    const junk = await fixture.dial();
    junk.write(Buffer.of(22, 3, 1, 255, 255, 1));
    expect((await untilEnd(junk))[0]).toBe(21);
    await fixture.close();
  });

  test('whoever is silent is joined to the target after five seconds', async () => {
    const fixture = await startRealityFixture(target.port, { allowH2c: true });
    await fixture.dial();
    await eventually(() => fixture.listener.listener.stats().open.sniffing).toBe(1);
    fixture.listener.clock.advance(5_001);
    await eventually(() => fixture.listener.listener.stats().open.mirrored).toBe(1);
    await fixture.close();
  });
});

describe('behind a balancer', () => {
  test('an agent comes in under the address that the header names, and a stranger without a header does not meet the target', async () => {
    const fixture = await startRealityFixture(target.port, {}, undefined, ['127.0.0.1/32']);
    const socket = await fixture.dial();
    socket.write(proxyHeader('198.51.100.7'));
    const opened = await openReality(socket, fixture.access, fixture.listener.clock, 5_000);
    expect(opened.ok).toBe(true);
    await eventually(() => fixture.listener.accepted.map(({ remoteAddress }) => remoteAddress)).toEqual([
      '198.51.100.7',
    ]);
    const bare = await fixture.dial();
    bare.write('GET / HTTP/1.1\r\n\r\n');
    expect((await untilEnd(bare)).length).toBe(0);
    expect(fixture.listener.refusals.map(({ reason }) => reason)).toEqual(['connection_no_proxy_header']);
    await fixture.close();
  });
});
