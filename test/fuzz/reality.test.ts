/** The agent listener with REALITY: hellos of strangers, agents that break off or go mad, and targets that misbehave. */
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import fc, { type Arbitrary } from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openReality } from '../../src/agent/reality/handshake.js';
import { uint, vector } from '../../src/channel/tls/vectors.js';
import { eventually } from '../support/eventually.js';
import { startPlainTarget } from '../support/plain-target.js';
import {
  startRealityFixture,
  startTlsTarget,
  type RealityFixture,
  type TlsTarget,
} from '../support/reality-fixture.js';
import { fuzzTimeoutMs, inputs, sendAll } from './support.js';

let target: TlsTarget;
beforeAll(async () => {
  target = await startTlsTarget();
});
afterAll(() => target.close());

interface Damage {
  /** Share of the bytes that is kept. */
  readonly keep: number;
  readonly flips: readonly { readonly at: number; readonly by: number }[];
  readonly tail: Uint8Array;
  /** Length of the pieces in which it is sent. */
  readonly piece: number;
  readonly leave: 'end' | 'destroy' | 'reset';
}

const damage: Arbitrary<Damage> = fc.record({
  keep: fc.oneof(fc.constant(1), fc.double({ min: 0, max: 1, noNaN: true })),
  flips: fc.array(fc.record({ at: fc.nat(4000), by: fc.integer({ min: 1, max: 255 }) }), { maxLength: 4 }),
  tail: fc.uint8Array({ maxLength: 300 }),
  piece: fc.integer({ min: 1, max: 4000 }),
  leave: fc.constantFrom('end', 'destroy', 'reset'),
});

function damaged(bytes: Buffer, { keep, flips, tail }: Damage): Buffer {
  const kept = Buffer.from(bytes.subarray(0, Math.ceil(bytes.length * keep)));
  for (const { at, by } of flips) if (kept.length > 0) kept[at % kept.length] = (kept[at % kept.length] ?? 0) ^ by;
  return Buffer.concat([kept, tail]);
}

/** Sends in pieces and leaves. */
function speak(socket: Socket, bytes: Buffer, { piece, leave }: Damage): void {
  socket.resume();
  for (let at = 0; at < bytes.length; at += piece) socket.write(bytes.subarray(at, at + piece));
  if (leave === 'end') socket.end();
  else if (leave === 'destroy') socket.destroy();
  else socket.resetAndDestroy();
}

/** Waits until the connection is over as well. */
async function sayAndLeave(socket: Socket, bytes: Buffer, how: Damage): Promise<void> {
  // A reset is as good an end as any.
  const closed = new Promise((resolve) => socket.once('close', resolve));
  speak(socket, bytes, how);
  await closed;
}

const nothingLeft = {
  open: { sniffing: 0, mirrored: 0, without_session: 0, with_session: 0 },
  targetConnections: 0,
};

/** Nothing is left of the others, and an agent comes in as before. */
async function unharmed(fixture: RealityFixture): Promise<void> {
  await eventually(() => {
    // Nobody reads those that were handed over, and one may still be handed over while this waits.
    for (const { stream } of fixture.listener.accepted) stream.destroy();
    return fixture.listener.listener.stats();
  }).toMatchObject(nothingLeft);
  const { stream, connection } = await fixture.agent();
  connection.stream.pipe(connection.stream);
  stream.write('still here');
  const [answer] = (await once(stream, 'data')) as [Buffer];
  expect(answer.toString()).toBe('still here');
  stream.destroy();
}

test(
  'hellos that were cut, altered, extended and sent in pieces',
  async () => {
    const fixture = await startRealityFixture(target.port);
    await sendAll(inputs(damage, 90), 8, async (one) => {
      await sayAndLeave(await fixture.dial(), damaged(fixture.hello(), one), one);
    });
    await unharmed(fixture);
    await fixture.close();
  },
  fuzzTimeoutMs,
);

test(
  'clients before a target that neither answers nor ends',
  async () => {
    const silent = await startPlainTarget((socket) => socket.resume());
    // More clients than the listener lets in, so that some are closed for others.
    const fixture = await startRealityFixture(silent.port);
    await sendAll(inputs(damage, 150), 8, async (one) => {
      speak(await fixture.dial(), damaged(fixture.hello(), one), one);
    });
    await silent.close();
    await eventually(() => fixture.listener.listener.stats()).toMatchObject(nothingLeft);
    await fixture.close();
  },
  fuzzTimeoutMs,
);

test(
  'agents that answer the flight with anything but Finished',
  async () => {
    const fixture = await startRealityFixture(target.port);
    const record = fc
      .tuple(fc.constantFrom(20, 21, 22, 23, 24), fc.uint8Array({ maxLength: 80 }))
      .map(([type, content]) => Buffer.concat([uint(1, type), uint(2, 0x0303), vector(2, content)]));
    const answers = fc.tuple(
      fc.array(record, { maxLength: 20 }).map((records) => Buffer.concat(records)),
      damage,
    );
    await sendAll(inputs(answers, 50), 8, async ([bytes, how]) => {
      const socket = await fixture.dial();
      socket.write(fixture.hello());
      await once(socket, 'data');
      await sayAndLeave(socket, damaged(bytes, { ...how, flips: [] }), how);
    });
    await unharmed(fixture);
    await fixture.close();
  },
  fuzzTimeoutMs,
);

test(
  'targets that alter, cut, extend and delay their flight end that connection alone',
  async () => {
    let next: Damage | undefined;
    const sockets = new Set<Socket>();
    /** In front of the target; damages its first answer. */
    const front = createServer({ allowHalfOpen: true }, (socket) => {
      const how = next;
      next = undefined;
      const behind = connect({ host: '127.0.0.1', port: target.port, allowHalfOpen: true });
      for (const one of [socket, behind]) {
        sockets.add(one);
        one.on('error', () => undefined);
        one.on('close', () => sockets.delete(one));
      }
      socket.on('close', () => behind.destroy());
      behind.on('close', () => socket.destroy());
      socket.pipe(behind);
      if (how === undefined) behind.pipe(socket);
      else
        behind.once('data', (bytes: Buffer) => {
          socket.write(damaged(bytes, how));
          if (how.leave === 'reset') socket.resetAndDestroy();
          else socket.end();
        });
    });
    front.listen(0, '127.0.0.1');
    await once(front, 'listening');
    const fixture = await startRealityFixture((front.address() as AddressInfo).port);
    const [first] = [await fixture.open()];
    expect(first.ok).toBe(true);
    for (const how of inputs(damage, 40)) {
      next = how;
      // Whatever comes of it, it comes in time.
      const opened = await openReality(await fixture.dial(), fixture.access, fixture.listener.clock, 8_000);
      if (opened.ok) opened.value.destroy();
      else expect(opened.error).not.toContain('no complete handshake');
    }
    await unharmed(fixture);
    await fixture.close();
    for (const socket of sockets) socket.destroy();
    front.close();
  },
  fuzzTimeoutMs,
);
