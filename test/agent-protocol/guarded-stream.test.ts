/**
 * The stream that HTTP/2 gets: what it lets through, and that it is otherwise the stream beneath it. What the whole listener
 * does with strangers is in `strangers.test.ts`.
 */
import { once } from 'node:events';
import { duplexPair, type Duplex } from 'node:stream';
import { beforeEach, describe, expect, test } from 'vitest';
import { endHeaders, frame, FrameType, opening } from '../../scripts/stack/http2-frames.js';
import { createStrangersBytes, GuardedStream } from '../../src/transport/agent/guarded-stream.js';
import type { AgentConnection } from '../../src/transport/listener/connection.js';
import { eventually } from '../support/eventually.js';
import { createManualClock } from '../support/manual-clock.js';

let peer: Duplex;
let inner: Duplex;
let guarded: GuardedStream;
/** What HTTP/2 was given. */
let received: Buffer;
let connection: { hasSession: boolean; ended: number };
let taken: number;

beforeEach(() => {
  [peer, inner] = duplexPair();
  connection = { hasSession: false, ended: 0 };
  [received, taken] = [Buffer.alloc(0), 0];
  const fake: Pick<AgentConnection, 'stream' | 'remoteAddress' | 'hasSession' | 'endCostly'> = {
    stream: inner,
    remoteAddress: '192.0.2.1',
    get hasSession() {
      return connection.hasSession;
    },
    endCostly() {
      connection.ended += 1;
      inner.destroy();
    },
  };
  guarded = new GuardedStream(fake as AgentConnection, (_, bytes) => {
    taken += bytes;
    return taken <= 100_000;
  });
  guarded.on('data', (bytes: Buffer) => (received = Buffer.concat([received, bytes])));
});

const pings = (count: number): Buffer =>
  Buffer.concat(Array.from({ length: count }, () => frame(FrameType.ping, 0, 0, Buffer.alloc(8))));
const data = (length: number): Buffer => frame(FrameType.data, 0, 1, Buffer.alloc(length));
const headersOf = (length: number): Buffer => frame(FrameType.headers, endHeaders, 1, Buffer.alloc(length));

describe('without a session', () => {
  test.each<[string, Buffer]>([
    ['a header block over 8 KiB', headersOf(8_193)],
    ['the head of one', headersOf(8_193).subarray(0, 9)],
    ['three header blocks of 6 KiB', Buffer.concat([1, 2, 3].map(() => headersOf(6_000)))],
    ['200 frames beside the first', pings(200)],
  ])('%s ends the connection, and HTTP/2 sees nothing of it', async (_, bytes) => {
    peer.write(opening);
    await eventually(() => received.length).toBe(opening.length);
    peer.write(bytes);
    await eventually(() => connection.ended).toBe(1);
    expect(received).toEqual(opening);
  });

  test('what a call may have passes, and after it as much again', async () => {
    peer.write(opening);
    for (let round = 1; round <= 3; round += 1) {
      peer.write(Buffer.concat([headersOf(8_000), pings(100)]));
      await eventually(() => received.length).toBe(opening.length + round * (9 + 8_000 + 1_700));
      guarded.pardon();
    }
    expect(connection.ended).toBe(0);
  });

  test('bytes beyond 4 KiB are taken from what all may send, and end the connection when there are none', async () => {
    const sent = Buffer.concat([opening, data(10_000)]);
    peer.write(sent);
    await eventually(() => received.length).toBe(sent.length);
    expect(taken).toBe(sent.length - 4_096);
    for (let piece = 0; piece < 10; piece += 1) peer.write(data(10_000));
    await eventually(() => connection.ended).toBe(1);
    expect(received.length).toBeLessThan(110_000);
  });
});

test('with a session nothing is counted, and without one again from then on', async () => {
  connection.hasSession = true;
  const much = Buffer.concat([opening, headersOf(8_193), pings(1_000), data(16_000)]);
  peer.write(much);
  await eventually(() => received.length).toBe(much.length);
  connection.hasSession = false;
  peer.write(pings(150));
  await eventually(() => received.length).toBe(much.length + 150 * 17);
  expect([connection.ended, taken]).toEqual([0, 0]);
  peer.write(pings(100));
  await eventually(() => connection.ended).toBe(1);
});

describe('is otherwise the stream beneath it', () => {
  test('what is written reaches the peer in order, and the end of either side the other', async () => {
    let told = '';
    peer.on('data', (bytes: Buffer) => (told += bytes.toString()));
    guarded.cork();
    for (const word of ['one ', 'two ', 'three']) guarded.write(word);
    guarded.uncork();
    const [peerEnded, ended] = [once(peer, 'end'), once(guarded, 'end')];
    guarded.end();
    await peerEnded;
    expect(told).toBe('one two three');
    peer.end();
    await ended;
  });

  test('a reader that pauses holds the peer back', async () => {
    connection.hasSession = true;
    guarded.pause();
    let unsent = true;
    peer.write(Buffer.concat([opening, data(1_000_000)]));
    peer.write(data(1_000_000), () => (unsent = false));
    for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(unsent).toBe(true);
    guarded.resume();
    await eventually(() => unsent).toBe(false);
  });

  test('destroying either destroys the other', async () => {
    guarded.destroy();
    await eventually(() => inner.destroyed).toBe(true);
    const [, other] = duplexPair();
    const second = new GuardedStream({ stream: other, hasSession: true } as AgentConnection, () => true);
    other.destroy(new Error('reset'));
    await eventually(() => second.destroyed).toBe(true);
  });
});

describe('what connections without a session may send together', () => {
  test('is 512 KiB of one address, then 64 KiB a second, and 8 MiB of all', () => {
    const clock = createManualClock();
    const take = createStrangersBytes(clock);
    const kib = 1_024;
    expect([take('192.0.2.1', 512 * kib), take('192.0.2.1', 1)]).toEqual([true, false]);
    expect(take('::ffff:192.0.2.1', 1)).toBe(false);
    for (let other = 2; other <= 16; other += 1) expect(take(`192.0.2.${other}`, 512 * kib)).toBe(true);
    // What an address is refused takes nothing from the others, and the other way round.
    expect(take('192.0.2.17', 1)).toBe(false);
    clock.advance(1_000);
    expect([take('192.0.2.1', 64 * kib), take('192.0.2.1', 1)]).toEqual([true, false]);
    expect([take('192.0.2.17', 512 * kib), take('192.0.2.18', 448 * kib), take('192.0.2.18', 1)]).toEqual([
      true,
      true,
      false,
    ]);
  });
});
